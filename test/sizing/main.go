// Command sizing replays traces on the policies that hotspare simulate compares, and prints a table: the
// one of docs/sizing.md, the variations of it, or what each part of the method contributes.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing"
)

func main() {
	e := evaluation{}
	flag.StringVar(&e.traces, "traces", "", "directory of CSV files with recorded traces; without it, only synthetic ones are replayed")
	flag.StringVar(&e.cache, "cache", "", "file that keeps the results in hindsight, which do not change with the method")
	flag.StringVar(&e.only, "only", "", "replay only the cases whose name has one of these texts, separated by commas")
	flag.StringVar(&e.set, "set", "base", "the cases: base, variations, held-out, jobs or all")
	flag.StringVar(&e.method, "without", "", "parts of the method to leave out, separated by commas: "+strings.Join(partNames(), ", "))
	flag.BoolVar(&e.ablation, "ablation", false, "print what leaving out each part of the method changes")
	write := flag.String("write", "", "write the traces as CSV files to this directory, and replay nothing")
	flag.Parse()
	err := e.run(*write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// evaluation is a call of the command.
type evaluation struct {
	traces, cache, only, set, method string
	ablation                         bool
	known                            map[string]hindsight
}

// hindsight has the best static setting and the best weekly schedule of a case.
type hindsight struct {
	Running        int
	Static, Weekly simulate.Result
}

func (e *evaluation) run(write string) error {
	cases, err := e.findCases()
	if err != nil {
		return err
	}
	if write != "" {
		return writeTraces(write, cases)
	}
	if err := e.readCache(); err != nil {
		return err
	}
	if e.ablation {
		return e.printAblation(cases)
	}
	method, err := parseMethod(e.method)
	if err != nil {
		return err
	}
	fmt.Println("| trace (test part) | claims | static in hindsight | weekly in hindsight | auto, no hindsight " +
		"| its waits p90, p99, max | cost: static, weekly, auto | gained of weekly |\n|---|---|---|---|---|---|---|---|")
	for _, c := range cases {
		h := e.hindsightOf(c)
		fmt.Println(newRow(c, h, c.replay(method)))
	}
	return e.writeCache()
}

// findCases returns the cases of the set.
func (e *evaluation) findCases() ([]replayCase, error) {
	recorded, err := readTraces(e.traces)
	if err != nil {
		return nil, err
	}
	var cases []replayCase
	switch e.set {
	case "base":
		cases = baseCases(recorded)
	case "variations":
		cases = variedCases(recorded)
	case "held-out":
		cases = heldOutCases(recorded)
	case "jobs":
		cases = jobCases()
	case "all":
		cases = slices.Concat(baseCases(recorded), variedCases(recorded), heldOutCases(recorded), jobCases())
	default:
		return nil, fmt.Errorf("--set %q is not known: use base, variations, held-out, jobs or all", e.set)
	}
	if e.only == "" {
		return cases, nil
	}
	return slices.DeleteFunc(cases, func(c replayCase) bool {
		return !slices.ContainsFunc(strings.Split(e.only, ","), func(text string) bool { return strings.Contains(c.name, text) })
	}), nil
}

func readTraces(dir string) (map[string]simulate.Trace, error) {
	out := map[string]simulate.Trace{}
	if dir == "" {
		return out, nil
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		trace, err := simulate.ReadTrace(path, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		out[strings.TrimSuffix(filepath.Base(path), ".csv")] = trace
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no CSV file: write traces to it, or omit --traces", dir)
	}
	return out, nil
}

func (e *evaluation) readCache() error {
	e.known = map[string]hindsight{}
	raw, err := os.ReadFile(e.cache)
	if e.cache == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, &e.known)
}

func (e *evaluation) writeCache() error {
	if e.cache == "" {
		return nil
	}
	raw, err := json.Marshal(e.known)
	if err != nil {
		return err
	}
	return os.WriteFile(e.cache, raw, 0o600)
}

// hindsightOf returns what the best settings in hindsight give.
func (e *evaluation) hindsightOf(c replayCase) hindsight {
	if h, ok := e.known[c.name]; ok {
		return h
	}
	o, share := c.options(), promise
	setting, static := simulate.BestStatic(c.trace, o, share, 0)
	_, weekly := simulate.BestWeekly(c.trace, o, share, 0, time.UTC)
	h := hindsight{setting.Running, static, weekly}
	e.known[c.name] = h
	return h
}

// promise is the share of claims that must be served at once.
const promise = 0.99

// newRow returns a row of the table.
func newRow(c replayCase, h hindsight, auto simulate.Result) string {
	idle := func(r simulate.Result) float64 { return r.Hours.RunningIdle }
	change := func(r simulate.Result) float64 { return 100 * (idle(r)/idle(h.Static) - 1) }
	gained := "-"
	if saved := -change(h.Weekly); saved > 0.5 {
		gained = fmt.Sprintf("%.0f%%", -100*change(auto)/saved)
	}
	return fmt.Sprintf("| %s | %d | static:%d: %s, %.0fh | %s, %.0fh (%+.1f%%) | %s, %.0fh (**%+.1f%%**) | %s, %s, %s | %.0f, %.0f, %.0f | %s |",
		c.name, auto.Claims, h.Running, formatShare(h.Static.Immediate), idle(h.Static),
		formatShare(h.Weekly.Immediate), idle(h.Weekly), change(h.Weekly),
		formatShare(auto.Immediate), idle(auto), change(auto),
		formatWait(auto.Waits.P90), formatWait(auto.Waits.P99), formatWait(auto.Waits.Max), h.Static.Cost, h.Weekly.Cost, auto.Cost, gained)
}

func formatShare(x float64) string { return fmt.Sprintf("%.2f%%", float64(int(x*10000+1e-9))/100) }

func formatWait(seconds float64) string { return (time.Duration(seconds) * time.Second).String() }

// parts are the parts of the method that can be left out.
var parts = []struct {
	name, about string
	method      sizing.Method
}{
	{"", "**this**", sizing.Method{}},
	{"profile", "without the hour of the week", sizing.Method{WithoutProfile: true}},
	{"recent", "without the last claims", sizing.Method{WithoutRecent: true}},
	{"bursts", "without the dispersion of each hour", sizing.Method{WithoutBursts: true}},
	{"model", "without what the forecasts expect at a price", sizing.Method{WithoutModel: true}},
	{"silence", "without what a long silence says", sizing.Method{WithoutSilence: true}},
	{"burst-limit", "without the limit for one burst", sizing.Method{WithoutBurstLimit: true}},
	{"repeated-bursts", "without bursts that come again", sizing.Method{WithoutRepeatedBursts: true}},
	{"next-hour", "without the hour in which a resume ends", sizing.Method{WithoutNextHour: true}},
	{"margin", "without the margin", sizing.Method{WithoutMargin: true}},
	{"feedback", "without what was served beyond the promise", sizing.Method{WithoutFeedback: true}},
}

func partNames() []string {
	var out []string
	for _, p := range parts[1:] {
		out = append(out, p.name)
	}
	return out
}

func parseMethod(names string) (sizing.Method, error) {
	for _, p := range parts {
		if p.name == names {
			return p.method, nil
		}
	}
	return sizing.Method{}, fmt.Errorf("--without %q is no part of the method: use one of %s", names, strings.Join(partNames(), ", "))
}

func (e *evaluation) printAblation(cases []replayCase) error {
	fmt.Print("| method |")
	for _, c := range cases {
		fmt.Printf(" %s |", c.name)
	}
	fmt.Println("\n|---|" + strings.Repeat("---|", len(cases)))
	for _, p := range parts {
		fmt.Printf("| %s |", p.about)
		for _, c := range cases {
			h, auto := e.hindsightOf(c), c.replay(p.method)
			fmt.Printf(" %.2f, %+.0f %% |", 100*auto.Immediate, 100*(auto.Hours.RunningIdle/h.Static.Hours.RunningIdle-1))
		}
		fmt.Println()
	}
	return e.writeCache()
}
