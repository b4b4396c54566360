package pool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

func TestParsingALadder(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"stop":                     "stop",
		"freeze:1,stop":            "freeze:1,stop",
		"freeze:1, suspend:2,stop": "freeze:1,suspend:2,stop",
		"freeze:0":                 "freeze:0",
		"freeze":                   "freeze",
	} {
		if got, err := pool.ParseLadder(text); err != nil || got.String() != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"nap":                  "choose one of freeze, suspend, stop",
		"freeze:x,stop":        `"x": write a number`,
		"freeze:-1,stop":       `"-1": write a number`,
		"freeze:100001":        `"100001": write a number`,
		"stop:1,freeze":        "depth freeze comes after stop",
		"freeze:1,freeze:2":    "depth freeze comes after freeze",
		"freeze,stop":          "depth freeze has no count",
		",":                    "choose one of freeze, suspend, stop",
		"freeze:1,stop,":       `there is no depth ""`,
		"freeze:1:2":           `"1:2": write a number`,
		"freeze:9999999999999": "write a number",
	} {
		if got, err := pool.ParseLadder(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// spares are installed spare clusters, from the oldest: "run", "freeze", "suspend", "stop" or "old", which sleeps at a depth
// that nobody has recorded. "freeze>stop" sleeps deeper than was wanted.
func spares(text string) []pool.Member {
	var out []pool.Member
	for i, word := range strings.Fields(text) {
		m := pool.Member{
			Name: string(rune('a' + i)), Created: noon.Add(time.Duration(i-100) * time.Hour), Installed: true, Version: "v1", Wanted: pool.Hibernating,
		}
		wanted, depth, _ := strings.Cut(word, ">")
		switch wanted {
		case "run":
			m.Wanted, m.Running = pool.Running, true
		case "old":
		default:
			m.WantedDepth, m.Depth = wanted, depth
		}
		out = append(out, m)
	}
	return out
}

func TestTheLadderOfDepths(t *testing.T) {
	for name, c := range map[string]struct {
		ladder, spares string
		running, claim int
		want           string
	}{
		"the oldest that goes to sleep gets the shallowest place":   {"freeze:1,stop", "run run run", 1, 0, "hibernate b at depth freeze; hibernate c at depth stop"},
		"a place that is taken is not given away":                   {"freeze:1,stop", "run run freeze", 1, 0, "hibernate b at depth stop"},
		"surplus goes deeper, the youngest first":                   {"freeze:1,stop", "freeze freeze stop", 0, 0, "hibernate b at depth stop"},
		"and not deeper than there is room":                         {"freeze:1,suspend:1,stop", "freeze freeze freeze", 0, 0, "hibernate b at depth suspend; hibernate c at depth stop"},
		"nothing is made shallower":                                 {"freeze:2,stop", "stop old freeze", 0, 0, ""},
		"a depth that the platform has made deeper takes no place":  {"freeze:1,stop", "freeze>stop run", 0, 0, "hibernate b at depth freeze"},
		"a ladder that ends lets the rest stop":                     {"freeze:1", "run run", 0, 0, "hibernate a at depth freeze; hibernate b at depth stop"},
		"an empty rung takes nobody":                                {"freeze:0,stop", "run freeze", 0, 0, "hibernate a at depth stop; hibernate b at depth stop"},
		"a claim wakes the one that sleeps least deeply":            {"freeze:1,stop", "stop stop freeze", 0, 1, "start c"},
		"one that could not be moved deeper wakes as it sleeps":     {"", "stop stop>suspend", 0, 1, "start b"},
		"a place among the running ones is filled from there, too":  {"freeze:1,stop", "stop stop freeze", 1, 0, "start c"},
		"one that runs stays, whatever sleeps beside it":            {"freeze:1,stop", "stop freeze run", 1, 0, ""},
		"without a ladder, depths are left alone":                   {"", "freeze freeze run", 0, 0, "hibernate c"},
		"without a ladder, a claim wakes the shallowest, too":       {"", "stop freeze", 0, 1, "start b"},
		"without a ladder, the oldest is to run, however it sleeps": {"", "stop freeze", 1, 0, "start a"},
		"without any depth, the oldest is woken for a claim":        {"", "old old", 0, 1, "start a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Now: noon, Members: spares(c.spares)}
			s.Settings = pool.Settings{Size: len(s.Members) - c.claim, RunningCount: c.running, Version: "v1", Sleep: ladder(t, c.ladder)}
			for i := range c.claim {
				s.Claims = append(s.Claims, pool.Claim{Name: fmt.Sprint("x", i), Created: noon})
			}
			var got []string
			for _, step := range pool.Decide(s).StepsOf(pool.Start, pool.Hibernate) {
				text, _, _ := strings.Cut(step.String(), ": ")
				got = append(got, text)
			}
			slices.Sort(got)
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

func ladder(t *testing.T, text string) pool.Ladder {
	t.Helper()
	l, err := pool.ParseLadder(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLaddersSettle plays random pools with ladders until nothing more is to be done, and checks that each depth has at most as many
// clusters as its rung, that no cluster was made to sleep less deeply, and that a pool settles soon.
func TestLaddersSettle(t *testing.T) {
	first := rand.Uint64()
	ladders := []string{"freeze:1,stop", "freeze:2,suspend:1,stop", "freeze:0,suspend:2,stop", "freeze:3", "suspend:1,stop", "stop"}
	for i := range uint64(500) {
		seed := first + i
		r := rand.New(rand.NewPCG(seed, 0))
		var words []string
		for range r.IntN(10) {
			words = append(words, []string{"run", "freeze", "suspend", "stop", "old", "freeze>stop"}[r.IntN(6)])
		}
		s := pool.Snapshot{Now: noon, Members: spares(strings.Join(words, " "))}
		s.Settings = pool.Settings{Size: len(words), RunningCount: r.IntN(4), Version: "v1", Sleep: ladder(t, ladders[r.IntN(len(ladders))])}
		rounds := 0
		for ; rounds < 10; rounds++ {
			steps := pool.Decide(s).StepsOf(pool.Start, pool.Hibernate)
			if len(steps) == 0 {
				break
			}
			for _, step := range steps {
				obeyLadder(t, seed, &s, step)
			}
			r.Shuffle(len(s.Members), func(i, j int) { s.Members[i], s.Members[j] = s.Members[j], s.Members[i] })
		}
		if rounds == 10 {
			t.Errorf("seed %d: a pool of %v with ladder %s does not settle", seed, words, s.Settings.Sleep)
		}
		checkRungs(t, seed, s)
	}
}

var depthRank = map[string]int{"freeze": 0, "suspend": 1, "": 2, "stop": 2}

func obeyLadder(t *testing.T, seed uint64, s *pool.Snapshot, step pool.Step) {
	t.Helper()
	m := &s.Members[slices.IndexFunc(s.Members, func(m pool.Member) bool { return m.Name == step.Cluster })]
	if step.Verb == pool.Start {
		m.Wanted, m.Running, m.Depth = pool.Running, true, ""
		return
	}
	if m.Wanted == pool.Hibernating && depthRank[step.Depth] <= max(depthRank[m.WantedDepth], depthRank[cmpDepth(m.Depth)]) {
		t.Errorf("seed %d: %s sleeps at depth %q (%q), and this makes it no deeper: %s", seed, m.Name, m.WantedDepth, m.Depth, step)
	}
	m.Wanted, m.Running, m.WantedDepth, m.Depth = pool.Hibernating, false, step.Depth, step.Depth
}

// cmpDepth is the depth that is observed; one that is unknown makes nothing deeper.
func cmpDepth(depth string) string {
	if depth == "" {
		return "freeze"
	}
	return depth
}

func checkRungs(t *testing.T, seed uint64, s pool.Snapshot) {
	t.Helper()
	count := map[string]int{}
	for _, m := range s.Members {
		if m.Wanted == pool.Hibernating {
			depth := m.WantedDepth
			if m.Depth != "" && depthRank[m.Depth] > depthRank[depth] {
				depth = m.Depth
			}
			count[depth]++
		}
	}
	for _, rung := range s.Settings.Sleep {
		if rung.Count != nil && count[rung.Depth] > *rung.Count {
			t.Errorf("seed %d: %d clusters sleep at depth %s, ladder %s", seed, count[rung.Depth], rung.Depth, s.Settings.Sleep)
		}
	}
}
