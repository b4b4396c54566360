//go:build browser

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a tab of the browser with its own cookies. Errors in it fail the test.
type tab struct {
	testing.TB
	ctx  context.Context
	base string // the console's URL, without a path
	// scriptless is set if scripts are off.
	scriptless bool

	mu         sync.Mutex
	complaints []string
	// expected are parts of complaints that the test causes.
	expected []string
	// hosts are the hosts that the page may reach.
	hosts []string
}

// open opens a tab for a URL.
func open(tb testing.TB, base string) *tab {
	tb.Helper()
	ctx, closeTab, err := browser.tab()
	if err != nil {
		tb.Fatalf("opening a tab: %v", err)
	}
	p := &tab{TB: tb, ctx: ctx, base: base, hosts: []string{host(base)}}
	tb.Cleanup(func() {
		if tb.Failed() {
			p.takeScreenshot("failed-" + strings.NewReplacer("/", "-", " ", "-").Replace(tb.Name()))
		}
		if err := closeTab(); err != nil {
			tb.Errorf("closing a tab: %v", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, what := range p.complaints {
			tb.Errorf("the browser complains: %s", what)
		}
	})
	chromedp.ListenTarget(ctx, p.recordEvent)
	p.runActions("opening a tab", network.Enable(), emulation.SetFocusEmulationEnabled(true))
	p.setWindow(wide)
	return p
}

// recordEvent records errors that the browser reports about a page.
func (t *tab) recordEvent(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.recordComplaint("exception: " + e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			t.recordComplaint(fmt.Sprintf("console.%s: %s", e.Type, formatArguments(e.Args)))
		}
	case *log.EventEntryAdded: // also violations of the content security policy and failed downloads
		if e.Entry.Level == log.LevelError {
			t.recordComplaint(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; !strings.HasPrefix(at, "data:") && !slices.Contains(t.allowed(), host(at)) {
			t.recordComplaint("it asks another host: " + at)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled { // leaving a page cancels its live stream
			t.recordComplaint(fmt.Sprintf("a %s was not loaded: %s", e.Type, e.ErrorText))
		}
	}
}

func formatArguments(args []*runtime.RemoteObject) string {
	var out []string
	for _, a := range args {
		if a.Description == "" { // it is not an object
			a.Description = strings.Trim(string(a.Value), `"`)
		}
		out = append(out, a.Description)
	}
	return strings.Join(out, " ")
}

func host(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	return u.Host
}

func (t *tab) recordComplaint(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.ContainsFunc(t.expected, func(part string) bool { return strings.Contains(what, part) }) {
		t.complaints = append(t.complaints, what)
	}
}

// expect ignores complaints that contain one of the parts.
func (t *tab) expect(parts ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = append(t.expected, parts...)
}

// allow allows a page to reach another host.
func (t *tab) allow(more string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hosts = append(t.hosts, more)
}

func (t *tab) allowed() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.hosts)
}

// runActions runs browser actions. The test fails if they take too long.
func (t *tab) runActions(what string, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// size is the size of a window and its color scheme.
type size struct {
	name          string
	width, height int64
	dark          bool
}

var (
	middle = size{"middle", 830, 900, false} // tables are not cards yet
	wide   = size{"light", 1280, 800, false}
	dark   = size{"dark", 1280, 800, true}
	narrow = size{"narrow", 360, 740, false}
	night  = size{"narrow-dark", 360, 740, true}
)

// setWindow sets the size and the color scheme of the window.
func (t *tab) setWindow(s size) {
	t.Helper()
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	t.runActions("changing the window",
		emulation.SetDeviceMetricsOverride(s.width, s.height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // screenshots must not catch a transition
		}))
}

// withoutScript turns scripts off for the pages that open from now on.
func (t *tab) withoutScript() {
	t.Helper()
	t.scriptless = true
	t.runActions("turning scripts off", emulation.SetScriptExecutionDisabled(true))
}

// visit opens a path of the console.
func (t *tab) visit(path string) {
	t.Helper()
	t.runActions("opening "+path, chromedp.Navigate(t.base+path))
}

// path returns the path of the page.
func (t *tab) path() string {
	t.Helper()
	return evaluate[string](t, "location.pathname + location.search")
}

// evaluate evaluates an expression in the page.
func evaluate[T any](p *tab, expression string) (out T) {
	p.Helper()
	p.runActions("asking the page for "+expression, chromedp.Evaluate(expression, &out, awaitPromise))
	return out
}

func awaitPromise(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// waitUntil waits until an expression is true in the page, which may change in the meantime.
func (t *tab) waitUntil(what, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	var last error
	for {
		var holds bool
		if err := chromedp.Run(ctx, chromedp.Evaluate("!!("+expression+")", &holds)); ctx.Err() == nil {
			last = err // nothing can be evaluated between two pages
		}
		if holds {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("%s: waited in vain until %s holds (%v); the page says:\n%s", what, expression, last, t.text())
		}
	}
}

// waitForText waits until the page shows all the texts.
func (t *tab) waitForText(all ...string) {
	t.Helper()
	for _, one := range all {
		t.waitUntil("the page shows "+one, "document.body.innerText.includes("+quote(one)+")")
	}
}

// text returns the visible text of the page.
func (t *tab) text() string {
	var out string
	ctx, cancel := context.WithTimeout(t.ctx, 10*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Evaluate("document.body ? document.body.innerText : ''", &out)); err != nil {
		return err.Error()
	}
	return out
}

// html returns the HTML of the page.
func (t *tab) html() string {
	t.Helper()
	return evaluate[string](t, "document.documentElement.outerHTML")
}

func quote(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // encoding a string cannot fail
	}
	return string(raw)
}

// findElement returns an expression for the first visible element that matches a selector and has the
// words in its text or label; "" matches any.
func findElement(selector, words string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].find(e => e.getClientRects().length > 0 &&
		[e.innerText, e.getAttribute("aria-label"), e.value].some(s => (s ?? "").includes(%s)))`, quote(selector), quote(words))
}

// isVisible reports whether the page has such a visible element now.
func (t *tab) isVisible(selector, words string) bool {
	t.Helper()
	return evaluate[bool](t, "!!("+findElement(selector, words)+")")
}

// click waits for an element and clicks it with the mouse. The test fails if another element covers
// it.
func (t *tab) click(selector, words string) {
	t.Helper()
	what := fmt.Sprintf("clicking %s %q", selector, words)
	t.waitUntil(what, findElement(selector, words))
	at := evaluate[struct {
		X, Y  float64
		Cover string
	}](t, `(e => {
		e.scrollIntoView({block: "center"});
		const r = e.getClientRects()[0], x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
		return {X: x, Y: y, Cover: top === e || e.contains(top) || top?.contains(e) || top?.control === e ? "" : top?.outerHTML?.slice(0, 200) ?? "nothing"};
	})(`+findElement(selector, words)+`)`)
	if at.Cover != "" {
		t.Fatalf("%s: it is covered by %s", what, at.Cover)
	}
	t.runActions(what, chromedp.MouseClickXY(at.X, at.Y))
}

// submit clicks an element that opens another page, and waits for that page.
func (t *tab) submit(selector, words string) {
	t.Helper()
	t.waitForNewPage(func() { t.click(selector, words) })
}

// waitForNewPage calls do, which opens another page, and waits for that page.
func (t *tab) waitForNewPage(do func()) {
	t.Helper()
	t.runActions("marking the page", chromedp.Evaluate(`document.documentElement.dataset.left = ""`, nil))
	do()
	t.waitUntil("another page comes", `document.readyState === "complete" && document.documentElement.dataset.left === undefined`)
}

// endLiveStream ends the live stream, so that the page no longer changes.
func (t *tab) endLiveStream() {
	t.Helper()
	t.runActions("ending the live stream", chromedp.Evaluate(`dispatchEvent(new PageTransitionEvent("pagehide"))`, nil))
}

// enter replaces the content of a field.
func (t *tab) enter(selector, text string) {
	t.Helper()
	t.click(selector, "")
	evaluate[bool](t, "document.activeElement.select?.(), true")
	t.runActions("typing", chromedp.KeyEvent(text))
}

// takeScreenshot saves a screenshot of the whole page.
func (t *tab) takeScreenshot(name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	var png []byte
	err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if err == nil {
		err = os.WriteFile(filepath.Join(shots, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Errorf("keeping screenshot %s: %v", name, err)
	}
}
