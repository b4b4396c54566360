//go:build browser

package browser

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axe is axe-core, which finds accessibility problems: see testdata/axe-core.
//
//go:embed testdata/axe-core/axe.min.js
var axe string

// checkAccessibility checks the page against the rules of WCAG 2.2, levels A and AA.
func (t *tab) checkAccessibility(where string) {
	t.Helper()
	if t.scriptless {
		return // axe-core is a script
	}
	if !evaluate[bool](t, "!!window.axe") {
		t.runActions("bringing axe-core in", chromedp.Evaluate(axe, nil))
	}
	faults := evaluate[[]struct {
		Rule, Help string
		Nodes      []string
	}](t, `axe.run(document, {
		runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
		resultTypes: ["violations"], preload: false,
	}).then(found => found.violations.map(v => ({
		Rule: v.id, Help: v.help, Nodes: v.nodes.map(n => n.html.slice(0, 200) + "\n      " + (n.failureSummary ?? "").replaceAll("\n", "\n      ")),
	})))`)
	for _, f := range faults {
		t.Errorf("%s: %s: %s, %d times:\n    %s", where, f.Rule, f.Help, len(f.Nodes), strings.Join(f.Nodes[:min(3, len(f.Nodes))], "\n    "))
	}
}

// checkWidth checks that the page does not scroll sideways.
func (t *tab) checkWidth(where string) {
	t.Helper()
	over := evaluate[[]string](t, `(() => {
		const page = document.documentElement;
		if (page.scrollWidth <= page.clientWidth) return [];
		const out = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > page.clientWidth + 1);
		return ["the page is " + page.scrollWidth + " wide, the window " + page.clientWidth, ...out.slice(0, 5).map(e => e.outerHTML.slice(0, 160))];
	})()`)
	if len(over) > 0 {
		t.Errorf("%s: it is wider than the window:\n    %s", where, strings.Join(over, "\n    "))
	}
}

// stops is a script that collects the elements that can be operated. The order in it identifies
// them while Tab moves through the page.
const stops = `(() => {
	const own = e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && !e.closest("[inert]");
	const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex], [role=button]")].filter(own)
		// Tab reaches only one of the radio buttons with the same name.
		.filter(e => e.type !== "radio" || e.checked || !document.querySelector("input[type=radio]:checked[name=" + CSS.escape(e.name) + "]"));
	window.stops = all;
	return all.map(e => e.outerHTML.replace(/\s+/g, " ").slice(0, 120));
})()`

// focused is a script that returns the element with the focus, and whether the focus is visible: an
// outline, or a shadow.
const focused = `(() => {
	const e = document.activeElement, at = window.stops.indexOf(e);
	if (!e || e === document.body) return {At: -1, Seen: true, What: "body"};
	const style = () => { const s = getComputedStyle(e); return [s.outlineStyle + s.outlineWidth + s.outlineColor, s.boxShadow, s.borderColor, s.backgroundColor].join() };
	const s = getComputedStyle(e), r = e.getBoundingClientRect();
	const ringed = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1 || s.boxShadow !== "none";
	const inside = r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth && r.width > 0;
	return {At: at, Seen: ringed && inside, What: e.outerHTML.replace(/\s+/g, " ").slice(0, 120)};
})()`

// checkTabOrder checks that Tab reaches every element that can be operated, and that the focus is
// visible.
func (t *tab) checkTabOrder(where string) {
	t.Helper()
	t.endLiveStream() // an update would add elements that are not in stops
	t.runActions("going to the top", chromedp.Evaluate("document.activeElement?.blur(); scrollTo(0, 0)", nil))
	all := evaluate[[]string](t, stops)
	reached := map[int]bool{}
	for range len(all) + 20 {
		t.runActions("pressing Tab", chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(input.ModifierNone)))
		at := evaluate[struct {
			At   int
			Seen bool
			What string
		}](t, focused)
		if !at.Seen && !reached[at.At] {
			t.Errorf("%s: one does not see that this has the focus: %s", where, at.What)
		}
		if reached[at.At] {
			break
		}
		reached[at.At] = true
	}
	var never []string
	for i, what := range all {
		if !reached[i] {
			never = append(never, what)
		}
	}
	if len(all) == 0 {
		never = []string{"anything: there is nothing to operate"}
	}
	if len(never) > 0 {
		t.Errorf("%s: Tab does not reach %d of %d:\n    %s", where, len(never), len(all), strings.Join(never[:min(5, len(never))], "\n    "))
	}
}

// checkOutline checks that the page has the structure that screen readers need.
func (t *tab) checkOutline(where string) {
	t.Helper()
	got := evaluate[struct {
		Title, Lang string
		Headings    []string
		Mains       int
	}](t, `({Title: document.title, Lang: document.documentElement.lang, Mains: document.querySelectorAll("main").length,
		Headings: [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(e => e.checkVisibility()).map(e => e.tagName)})`)
	if got.Title == "" || got.Lang == "" || got.Mains != 1 {
		t.Errorf("%s: title %q, language %q, %d <main>: each should be there, and one main", where, got.Title, got.Lang, got.Mains)
	}
	if first := slices.Index(got.Headings, "H1"); first != 0 || slices.Contains(got.Headings[1:], "H1") {
		t.Errorf("%s: one h1 should come before the other headings: %v", where, got.Headings)
	}
	for i := 1; i < len(got.Headings); i++ {
		if got.Headings[i][1] > got.Headings[i-1][1]+1 {
			t.Errorf("%s: heading %d leaves a level out: %v", where, i, got.Headings)
			break
		}
	}
}

// checkPage opens a page in all window sizes and themes, checks it and takes screenshots.
func (t *tab) checkPage(name, path string, shows ...string) {
	t.Helper()
	for _, s := range []size{wide, dark, narrow, night} {
		t.setWindow(s)
		t.visit(path)
		t.waitForText(shows...)
		where := fmt.Sprintf("%s at %d px, %s", path, s.width, s.name)
		t.takeScreenshot(name + "-" + s.name)
		t.checkAccessibility(where)
		t.checkWidth(where)
		t.checkOutline(where)
		if !s.dark {
			t.checkTabOrder(where)
		}
	}
	t.setWindow(middle)
	t.checkWidth(fmt.Sprintf("%s at %d px", path, middle.width))
	t.setWindow(wide)
}
