package exec

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

func TestDecide(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		record  runner.Record
		working bool
		want    Action
	}{
		"a new attempt starts":                              {runner.Record{}, false, Start},
		"work that runs is not started again":               {runner.Record{Phase: runner.Creating}, true, Wait},
		"work of a process that has ended is continued":     {runner.Record{Phase: runner.Creating, Request: "other"}, false, Start},
		"a created cluster is not created again":            {runner.Record{Phase: runner.Created, Request: "other"}, false, Report},
		"a failed attempt is not repeated":                  {runner.Record{Phase: runner.Failed, Request: "other"}, false, Report},
		"a rejected request is not repeated":                {runner.Record{Phase: runner.Rejected, Request: "same"}, false, Report},
		"a rejected request is repeated when it changes":    {runner.Record{Phase: runner.Rejected, Request: "other"}, false, Start},
		"without capacity, nothing is repeated for a while": {runner.Record{Phase: runner.NoRoom, Request: "same", RetryAt: noon.Add(time.Second)}, false, Report},
		"without capacity, the request is repeated later":   {runner.Record{Phase: runner.NoRoom, Request: "same", RetryAt: noon}, false, Start},
		"without capacity, a changed request is not kept":   {runner.Record{Phase: runner.NoRoom, Request: "other", RetryAt: noon.Add(time.Hour)}, false, Start},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(Seen{Working: c.working, Record: c.record, Request: "same", Now: noon}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDecideAfterCreate(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := func(o recipe.Outcome) error {
		return &recipe.VerbError{Recipe: "r", Verb: recipe.Create, Outcome: o, Problem: "why"}
	}
	limits := Limits{Run: time.Minute, NoRoom: time.Hour}
	for name, c := range map[string]struct {
		again bool
		err   error
		took  time.Duration
		want  Next
	}{
		"success":                             {false, nil, 0, Next{Phase: runner.Created}},
		"exit code 10 calls it again":         {true, nil, 12 * time.Minute, Next{Again: true, Phase: runner.Creating}},
		"exit code 10 for ever fails":         {true, nil, 12*time.Minute + 1, Next{Phase: runner.Failed, Problem: "12m0s"}},
		"exit code 20 rejects the request":    {false, failed(recipe.Invalid), 0, Next{Phase: runner.Rejected, Problem: "why"}},
		"exit code 30 waits for capacity":     {false, failed(recipe.NoRoom), 0, Next{Phase: runner.NoRoom, Problem: "why", RetryAt: noon.Add(time.Hour)}},
		"any other code fails":                {false, failed(recipe.Failed), 0, Next{Phase: runner.Failed, Problem: "why"}},
		"another process of hotspare runs it": {false, fault.New(fault.Conflict, errors.New("locked")), 0, Next{Again: true, Phase: runner.Creating}},
		"a program that cannot start fails":   {false, errors.New("no such file"), 0, Next{Phase: runner.Failed, Problem: "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := DecideAfterCreate(c.again, c.err, noon.Add(-c.took), noon, limits)
			if !strings.Contains(got.Problem, c.want.Problem) || (got.Problem == "") != (c.want.Problem == "") {
				t.Errorf("the problem is %q, want %q", got.Problem, c.want.Problem)
			}
			if got.Problem = c.want.Problem; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheScarcerResourceLimitsTheNumberOfClusters(t *testing.T) {
	const gigabyte = 1 << 30
	needs := recipe.Needs{Memory: resource.MustParse("2Gi"), Disk: resource.MustParse("10Gi")}
	for name, c := range map[string]struct {
		memory, disk int64
		want         int
		word         string
	}{
		"memory":                 {5 * gigabyte, 100 * gigabyte, 2, "memory"},
		"disk space":             {100 * gigabyte, 19 * gigabyte, 1, "disk space"},
		"nothing is left":        {-gigabyte, 100 * gigabyte, 0, "memory"},
		"exactly one more":       {2 * gigabyte, 10 * gigabyte, 1, "memory"},
		"one byte less than one": {2*gigabyte - 1, 10 * gigabyte, 0, "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			n, why := countNeeds(needs, c.memory, c.disk)
			if n != c.want || !strings.Contains(why, c.word) {
				t.Errorf("got %d: %s; want %d, limited by %s", n, why, c.want, c.word)
			}
		})
	}
}
