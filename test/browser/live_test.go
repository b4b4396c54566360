//go:build browser

package browser

import (
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

func navigate(at string) chromedp.Action { return chromedp.Navigate(at) }

// Pages show other users' changes without a reload, and do not disturb the user.
func TestPagesAreLive(t *testing.T) {
	h := sharedDemoHub(t)
	p := signedIn(t, h)
	createFakePool(p, h, "lively")
	p.runActions("marking the page", chromedp.Evaluate(`window.same = true`, nil))

	t.Log("a claim appears, and its tile changes")
	h.hotspare(t, "claim", "create", "lively", "--name", "guest", "--wait")
	p.waitUntil("the claim appears", claimRow("guest"))
	p.waitUntil("a tile is claimed", `document.querySelector(".tile.claimed")?.innerText.includes("guest")`)

	t.Log("what is typed stays while the page changes, and so does the caret")
	p.click("button", "Claim a cluster")
	p.enter("#claim-name", "half-typ")
	p.runActions("putting the caret elsewhere", chromedp.Evaluate(`document.activeElement.setSelectionRange(2, 4)`, nil))
	h.hotspare(t, "claim", "create", "lively", "--name", "another", "--wait")
	p.waitUntil("the other claim appears", claimRow("another"))
	got := evaluate[struct {
		ID, Value  string
		Start, End int
		Open       bool
	}](p, `(e => ({ID: e.id, Value: e.value, Start: e.selectionStart, End: e.selectionEnd, Open: !!e.closest(":popover-open")}))(document.activeElement)`)
	if got.ID != "claim-name" || got.Value != "half-typ" || got.Start != 2 || got.End != 4 || !got.Open {
		t.Errorf("the focus, the text and the caret are now %+v", got)
	}
	p.runActions("typing on", chromedp.KeyEvent("x"))
	p.click("#claim button", "Cancel")

	t.Log("a button keeps the focus")
	p.runActions("going on by keyboard", chromedp.Evaluate(`document.querySelector("#claim-guest button").focus()`, nil))
	h.hotspare(t, "claim", "release", "another", "--wait")
	p.waitUntil("it goes", "!"+claimRow("another"))
	if !evaluate[bool](p, `document.activeElement?.closest("tr")?.id === "claim-guest" && document.activeElement.tagName === "BUTTON"`) {
		t.Errorf("the focus is on %s", evaluate[string](p, `document.activeElement.outerHTML.slice(0, 200)`))
	}

	t.Log("a question that is open stays open")
	p.click("#claim-guest button", "Release")
	h.hotspare(t, "pool", "scale", "lively", "--size", "4")
	p.waitUntil("a cluster comes", `document.querySelectorAll(".tile").length === 5`)
	p.waitForText("Release claim guest?")

	t.Log("ages tick")
	before := evaluate[string](p, `document.querySelector("#claim-guest time").innerText`)
	p.waitUntil("an age changes", `document.querySelector("#claim-guest time").innerText !== `+quote(before))
	if !evaluate[bool](p, "window.same === true") {
		t.Error("the page was loaded again")
	}
}

// The focus stays on an event while new events arrive.
func TestNewEventsLeaveTheFocusWhereItIs(t *testing.T) {
	h := sharedDemoHub(t)
	p := signedIn(t, h)
	createFakePool(p, h, "eventful")
	p.visit("/activity?name=eventful")
	p.waitUntil("there are events", `document.querySelectorAll(".events a").length > 3`)
	p.runActions("going to the third link", chromedp.Evaluate(`document.querySelectorAll(".events a")[2].focus(); window.at = document.activeElement.closest("li").innerText.split("\n").slice(1).join()`, nil))
	n := evaluate[int](p, `document.querySelectorAll(".events li").length`)
	h.hotspare(t, "pool", "scale", "eventful", "--size", "4")
	p.waitUntil("more come", fmt.Sprintf(`document.querySelectorAll(".events li").length > %d`, n))
	if !evaluate[bool](p, `document.activeElement.closest("li")?.innerText.split("\n").slice(1).join() === window.at`) {
		t.Errorf("the focus was on %s, and is on %s", evaluate[string](p, "window.at"), evaluate[string](p, "document.activeElement.outerHTML.slice(0, 200)"))
	}
}

// A page reports a lost connection and recovers automatically.
func TestALostConnectionIsSaid(t *testing.T) {
	h := sharedDemoHub(t)
	w := wireTo(t, host(h.console))
	p := open(t, "http://"+w.Addr().String())
	p.allow(host(h.console))
	p.enterByLink(h)
	p.visit("/pools/default/dev")
	p.waitUntil("it is live", `document.querySelector("#state")?.checkVisibility()`)
	p.expect("net::ERR_", "a EventSource was not loaded")
	w.cut()
	p.waitForText("The connection to hotspare is lost")
	p.takeScreenshot("lost")
	p.checkAccessibility("a page that is lost")
	p.click(".who button", "Sign out")
	p.waitForText("Nothing was sent")
	h.hotspare(t, "pool", "scale", "dev", "--size", "9")
	w.mend()
	p.waitUntil("it is live again", `!document.querySelector("#lost").checkVisibility() && document.querySelector("#state").checkVisibility()`)
	p.waitForText("9 spare")
	h.hotspare(t, "pool", "scale", "dev", "--size", "8")
	p.waitForText("8 spare")
	p.submit(".who button", "Sign out")
	p.waitUntil("one is out", `location.pathname === "/signin"`)
}

// A restarted hub has no sessions: users sign in again and return to their page.
func TestAHubThatIsStartedAgainAsksWhoOneIs(t *testing.T) {
	h := startOwnHub(t)
	p := signedIn(t, h)
	p.waitForText("Nothing here yet", "hotspare pool create")
	p.checkPage("overview-empty", "/", "Nothing here yet")
	p.waitUntil("it is live", `document.querySelector("#state")?.checkVisibility()`)
	p.expect("net::ERR_", "a EventSource was not loaded")
	at := h.console
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	p.waitForText("The connection to hotspare is lost")
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	if h.console != at {
		t.Fatalf("the console was at %s and is at %s now: open pages do not find it", at, h.console)
	}
	p.waitUntil("it asks who one is", `location.pathname === "/signin"`)
	p.enterByLink(h)
}

// Pages report a hub that hangs, and recover.
func TestAHubThatHangsIsSaid(t *testing.T) {
	h := startOwnHub(t)
	p := signedIn(t, h)
	p.waitUntil("it is live", `document.querySelector("#state")?.checkVisibility()`)
	if err := h.up.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.expect("net::ERR_", "a EventSource was not loaded")
	p.waitForText("hotspare does not answer")
	if err := h.up.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.waitUntil("it is live again", `!document.querySelector("#lost").checkVisibility() && document.querySelector("#state").checkVisibility()`)
}

// wire forwards bytes between the browser and a console until it is cut.
type wire struct {
	net.Listener
	to string

	mu     sync.Mutex
	broken bool
	ends   []net.Conn
}

func wireTo(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to}
	go w.carry()
	t.Cleanup(func() {
		w.cut()
		l.Close()
	})
	return w
}

func (w *wire) carry() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil || !w.hold(near, far) {
			near.Close()
			continue
		}
		go func() { _, _ = io.Copy(far, near); far.Close() }()
		go func() { _, _ = io.Copy(near, far); near.Close() }()
	}
}

func (w *wire) hold(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, ends...)
	if w.broken {
		ends[1].Close()
	}
	return !w.broken
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	for _, c := range w.ends {
		c.Close()
	}
	w.ends = nil
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = false
}
