package exec

import (
	"context"
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
	limits := Limits{Run: time.Minute, NoRoomRetry: time.Hour}
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

func TestDecideAfterDestroy(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := &recipe.VerbError{Recipe: "r", Verb: recipe.Destroy, Outcome: recipe.Failed, Problem: "why"}
	locked := fault.New(fault.Conflict, errors.New("locked"))
	for name, c := range map[string]struct {
		again bool
		err   error
		took  time.Duration
		want  string
	}{
		"success":                               {false, nil, time.Hour, "done"},
		"exit code 10 calls it again":           {true, nil, 12 * time.Minute, "again"},
		"exit code 10 for ever is reported":     {true, nil, 12*time.Minute + 1, "destroy has exited with code 10 for more than 12m0s: correct the recipe, or increase spec.platform.exec.timeouts.destroy"},
		"another process runs a program":        {false, locked, 0, "again"},
		"another process for ever is reported":  {false, locked, time.Hour, "locked"},
		"any other code is reported":            {false, failed, 0, failed.Error()},
		"a program that cannot start is, too":   {false, errors.New("no such file"), 0, "no such file"},
		"the end of hotspare ends it, as well":  {false, context.Canceled, 0, "context canceled"},
		"a program that is written is repeated": {false, fault.New(fault.Wait, errors.New("busy")), 0, "again"},
	} {
		t.Run(name, func(t *testing.T) {
			again, err := DecideAfterDestroy(c.again, c.err, noon.Add(-c.took), noon, time.Minute)
			got := map[bool]string{true: "again", false: "done"}[again]
			if err != nil {
				got = err.Error()
			}
			if got != c.want || again && err != nil {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAddedLinesOfALog(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"nothing":                    {"a\nb\n", "a\nb\n", ""},
		"the whole log is there":     {"a\nb\n", "a\nb\nc\n", "c\n"},
		"its beginning is cut":       {"a\nb\n", "b\nc\nd\n", "c\nd\n"},
		"all of it is cut":           {"a\nb\n", "c\nd\n", "c\nd\n"},
		"the first line":             {"", "a\n", "a\n"},
		"a line that is not the end": {"a\nb\n", "a\nc\n", "a\nc\n"},
	} {
		if got := findAddedLines(c.before, c.after); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestTheScarcerResourceLimitsTheNumberOfClusters(t *testing.T) {
	const gigabyte = 1 << 30
	needs := recipe.Needs{Memory: resource.MustParse("2Gi"), Disk: resource.MustParse("10Gi")}
	for name, c := range map[string]struct {
		memory, disk int64
		want         int
		why          string
	}{
		"memory":                 {5 * gigabyte, 100 * gigabyte, 2, "2048 MB of memory are needed for each and about 5 GB are available: hibernate or delete clusters, or stop other programs"},
		"disk space":             {100 * gigabyte, 19 * gigabyte, 1, "10240 MB of disk space are needed for each and about 19 GB are free: delete clusters or other files"},
		"nothing is left":        {-gigabyte, 100 * gigabyte, 0, "2048 MB of memory are needed for each and about 0 MB are"},
		"less than a gigabyte":   {950 * megabyte, 100 * gigabyte, 0, "2048 MB of memory are needed for each and about 900 MB are"},
		"exactly one more":       {2 * gigabyte, 10 * gigabyte, 1, "about 2 GB"},
		"one byte less than one": {2*gigabyte - 1, 10 * gigabyte, 0, "about 2 GB"},
	} {
		t.Run(name, func(t *testing.T) {
			n, why := countNeeds(needs, c.memory, c.disk)
			if n != c.want || !strings.Contains(why, c.why) {
				t.Errorf("got %d: %s; want %d: %s", n, why, c.want, c.why)
			}
		})
	}
}
