//go:build browser

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// listener is a testing.TB that records failures instead of failing the test.
type listener struct {
	testing.TB
	said  strings.Builder
	later []func()
}

func (l *listener) Helper()                      {}
func (l *listener) Cleanup(do func())            { l.later = append(l.later, do) }
func (l *listener) Failed() bool                 { return false }
func (l *listener) Errorf(text string, a ...any) { fmt.Fprintf(&l.said, text+"\n", a...) }
func (l *listener) Fatalf(text string, a ...any) { l.Errorf(text, a...); runtime.Goexit() }

// try runs a test with a tab and returns the failures.
func try(t *testing.T, base string, do func(p *tab)) string {
	t.Helper()
	l := &listener{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(open(l, base))
	}()
	<-done
	for _, do := range l.later {
		do()
	}
	return l.said.String()
}

// aPage is a page without problems.
const aPage = `<!doctype html><html lang="en"><head><title>A page</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"></head><body><main><h1>A page</h1>%s</main></body></html>`

func TestFaultsOfPagesAreFound(t *testing.T) {
	pages := map[string]struct{ body, want string }{
		"nothing":                   {`<a href="/">all</a>`, ""},
		"a script that fails":       {`<a href="/">all</a><script>nowhere()</script>`, "nowhere is not defined"},
		"a complaint":               {`<a href="/">all</a><script>console.error("oh", 7)</script>`, "console.error: oh 7"},
		"what is not there":         {`<a href="/">all</a><img alt="none" src="/none.png">`, "404"},
		"another host":              {`<a href="/">all</a><img alt="none" src="http://cdn.example/a.png">`, "it asks another host: http://cdn.example/a.png"},
		"faint words":               {`<a href="/">all</a><p style="color: #bbb">faint</p>`, "color-contrast"},
		"a field without a name":    {`<input>`, "label"},
		"what is too wide":          {`<a href="/">all</a><div style="width: 1500px">wide</div>`, "wider than the window"},
		"a focus that is not seen":  {`<a href="/" style="outline: none">all</a>`, "does not see that this has the focus"},
		"what Tab does not reach":   {`<a href="/">all</a><div onkeydown="event.preventDefault()"><button>one</button><button>two</button></div>`, "Tab does not reach"},
		"nothing that can be used":  {`<p>words</p>`, "there is nothing to operate"},
		"headings that leave a gap": {`<a href="/">all</a><h3>deep</h3>`, "leaves a level out"},
		"two titles":                {`<a href="/">all</a><h1>another</h1>`, "one h1"},
		"a forbidden style":         {`<a href="/" style="color: red">all</a>`, "Content Security Policy"},
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, is := pages[strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/"), "-", " ")]
		if !is {
			http.NotFound(w, r)
			return
		}
		if strings.Contains(c.want, "Policy") {
			w.Header().Set("Content-Security-Policy", "style-src 'self'")
		}
		fmt.Fprintf(w, aPage, c.body)
	}))
	defer served.Close()
	for name, c := range pages {
		t.Run(name, func(t *testing.T) {
			path := "/" + strings.ReplaceAll(name, " ", "-")
			said := try(t, served.URL, func(p *tab) {
				p.visit(path)
				p.checkAccessibility(path)
				p.checkWidth(path)
				p.checkOutline(path)
				p.checkTabOrder(path)
			})
			if c.want == "" && said != "" || !strings.Contains(said, c.want) {
				t.Errorf("it should say %q, and says:\n%s", c.want, said)
			}
		})
	}
}

func TestWhatIsCoveredCannotBeClicked(t *testing.T) {
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, aPage, `<button>go</button><div style="position: fixed; inset: 0">a curtain</div>`)
	}))
	defer served.Close()
	said := try(t, served.URL, func(p *tab) {
		p.visit("/")
		p.click("button", "go")
	})
	if !strings.Contains(said, "it is covered by <div") {
		t.Errorf("it says:\n%s", said)
	}
}
