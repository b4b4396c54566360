package processtree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestTheStatusOfAProcess(t *testing.T) {
	rest := " 12 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0"
	for line, want := range map[string]process{
		"12 (sh) S 1" + rest:         {12, 1, "S", 987654},
		"7 (a) Z 9 (b) ) T 3" + rest: {7, 3, "T", 987654},
		"9 (x\ny) R 1" + rest:        {9, 1, "R", 987654},
	} {
		if got, err := parseStat(line); err != nil || got != want {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "12", "12 (sh", "12 (sh) S 1 2 3", "x (sh) S 1" + rest, "12 (sh) S y" + rest, ")( 1" + rest} {
		if _, err := parseStat(line); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

// parse parses "1:0:S 2:1:T": ID, parent and state.
func parse(t *testing.T, text string) []process {
	t.Helper()
	var all []process
	for one := range strings.FieldsSeq(text) {
		var p process
		if _, err := fmt.Sscanf(one, "%d:%d:%s", &p.id, &p.parent, &p.state); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func format(all []process) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%d ", p.id)
	}
	return strings.TrimSpace(b.String())
}

func TestDescendants(t *testing.T) {
	for text, want := range map[string]string{
		"1:0:S 5:1:S 6:5:S 7:6:S 8:1:S": "5 6 7",
		"7:6:S 6:5:S 5:1:S":             "5 6 7",
		"6:5:S":                         "",
		"5:5:S":                         "5",
		"5:6:S 6:5:S":                   "5 6",
	} {
		if got := format(descendants(parse(t, text), 5)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestSignalsOfAFreeze(t *testing.T) {
	for name, c := range map[string]struct {
		tree, stopped, want string
		frozen              bool
	}{
		"all that run are stopped":                       {"5:1:S 6:5:R 7:5:D", "", "5 6 7", false},
		"one whose signal has not arrived is waited for": {"5:1:T 6:5:R", "5:1:S 6:5:R", "", false},
		"one that waits in the kernel will not run":      {"5:1:D 6:5:T", "5:1:S 6:5:R", "", true},
		"one that has ended needs no signal":             {"5:1:T 6:5:Z", "5:1:S", "", true},
		"one that its user has stopped is left alone":    {"5:1:T 6:5:T", "5:1:S", "", true},
		"a new child is stopped":                         {"5:1:T 6:5:R", "5:1:S", "6", false},
	} {
		t.Run(name, func(t *testing.T) {
			stop, frozen := decideSignals(parse(t, c.tree), parse(t, c.stopped))
			if got := format(stop); got != c.want || frozen != c.frozen {
				t.Errorf("got %q, %t", got, frozen)
			}
		})
	}
	later := []process{{id: 6, parent: 5, state: "R", start: 9}}
	if stop, _ := decideSignals(later, []process{{id: 6, parent: 5, state: "R", start: 8}}); len(stop) != 1 {
		t.Error("another process with the ID of one that was stopped is not stopped")
	}
}

func TestParentsComeBeforeChildren(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is a test
	for range 200 {
		all := []process{{id: 1}}
		for id := 2; id < 40; id++ {
			all = append(all, process{id: id, parent: 1 + random.IntN(id-1)})
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		got := descendants(all, 1)
		if len(got) != len(all) {
			t.Fatalf("seed %d: %d of %d processes", seed, len(got), len(all))
		}
		for i, p := range got[1:] {
			if !slices.ContainsFunc(got[:i+1], func(q process) bool { return q.id == p.parent }) {
				t.Fatalf("seed %d: %d comes before its parent %d", seed, p.id, p.parent)
			}
		}
	}
}
