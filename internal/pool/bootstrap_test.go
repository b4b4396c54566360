package pool_test

import (
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

// bootstrapped returns the snapshot of a pool whose bootstrap has steps of version s1.
func bootstrapped(size, running int, list, waiting string, change ...func(*pool.Settings)) pool.Snapshot {
	s := pool.Snapshot{Settings: settings(size, running), Members: members(list), Claims: claims(waiting), Now: noon}
	s.Settings.Steps, s.Settings.StepsSince = "s1", noon.Add(-time.Hour)
	for _, c := range change {
		c(&s.Settings)
	}
	for i := range s.Members {
		s.Members[i].MarkUntakenSteps(&s.Settings)
		s.Members[i].MarkUnpassedGates(&s.Settings)
	}
	return s
}

// powerAndDeletions returns the steps of a plan that bind, start, stop and delete clusters.
func powerAndDeletions(s pool.Snapshot) string {
	var got []string
	for _, st := range pool.Decide(s).Steps {
		if st.Verb != pool.Create && st.Verb != pool.SetPosition {
			words, _, _ := strings.Cut(st.String(), ":")
			got = append(got, words)
		}
	}
	return strings.Join(got, ", ")
}

func TestOnlyClustersThatHaveTakenTheStepsAreAssigned(t *testing.T) {
	unknown := func(s *pool.Settings) { s.Steps, s.StepsUnknown = "unresolved", true }
	none := func(s *pool.Settings) { s.Steps = "" }
	for name, tc := range map[string]struct {
		size, running int
		list, waiting string
		change        func(*pool.Settings)
		want          string
	}{
		"one that has taken them":                                {1, 1, "a:assignable+stepped", "x", nil, "bind x to a"},
		"not one that has taken none":                            {1, 1, "a:assignable", "x", nil, ""},
		"not one that takes them":                                {1, 1, "a:assignable+stepping", "x", nil, ""},
		"a stale one, as always":                                 {1, 1, "a:assignable+oldstepped", "x", nil, "bind x to a"},
		"one that takes them is not hibernated":                  {1, 0, "a:assignable+stepping", "", nil, ""},
		"nor one that has not begun":                             {1, 0, "a:assignable", "", nil, ""},
		"an install runs first":                                  {1, 0, "a:installing+sleep", "", nil, "start a"},
		"one that has taken them hibernates":                     {1, 0, "a:assignable+stepped", "", nil, "hibernate a"},
		"a claim wakes another one rather than to wait for it":   {2, 0, "a:assignable+stepping b:standby+stepped", "x", nil, "start b"},
		"it waits for it rather than for an install":             {2, 0, "a:assignable+stepping b:installing", "x", nil, "start b"},
		"one that takes too long is replaced":                    {1, 1, "a:assignable+toostepping", "", nil, "delete a"},
		"one that takes long is no reason to wait":               {2, 1, "a:assignable+longstepping b:standby+stepped", "", nil, "start b"},
		"stale ones are replaced one at a time":                  {2, 0, "a:standby+oldstepped b:standby+oldstepped", "", nil, "delete a"},
		"the next one only when the new one has taken the steps": {2, 0, "a:standby+oldstepped b:assignable+stepping", "", nil, ""},
		"one that sleeps and has taken none is stale":            {1, 0, "a:standby", "", nil, "delete a"},
		"one that has begun others is deleted at once":           {3, 3, "a:assignable+oldstepping b:assignable+oldstepping c:assignable+stepped", "x", nil, "bind x to c, delete a, delete b"},
		"also while it sleeps":                                   {1, 0, "a:standby+oldstepping", "x", nil, "delete a"},
		"an adopted one is kept":                                 {1, 1, "a:assignable+oldstepping+adopted", "", nil, ""},
		"steps that are not known make none stale":               {2, 0, "a:standby+oldstepped b:standby", "", unknown, ""},
		"and one that has taken steps serves":                    {1, 1, "a:assignable+oldstepped", "x", unknown, "bind x to a"},
		"and one that has taken none waits":                      {1, 1, "a:assignable", "x", unknown, ""},
		"without steps, one that has taken some is stale":        {1, 1, "a:assignable+oldstepped", "", none, "delete a"},
		"and one that has not finished serves nobody":            {1, 1, "a:assignable+oldstepping", "x", none, "delete a"},
		"and the others serve":                                   {1, 1, "a:assignable", "x", none, "bind x to a"},
		"a claimed one is not judged":                            {0, 0, "a:claimed=x+toostepping", "x=a", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*pool.Settings)
			if tc.change != nil {
				change = append(change, tc.change)
			}
			if got := powerAndDeletions(bootstrapped(tc.size, tc.running, tc.list, tc.waiting, change...)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The first bootstrap of a pool that has spares takes them out of service one at a time, and costs one of them if it fails.
func TestOlderSparesTakeTheStepsAfterOneAnother(t *testing.T) {
	gates := func(s *pool.Settings) { s.Gates = "g1" }
	unrecorded := func(s *pool.Settings) { s.StepsSince = time.Time{} }
	unknown := func(s *pool.Settings) { s.Steps, s.StepsUnknown = "unresolved", true }
	failed := func(s *pool.Settings) { s.FailedSteps = pool.FailedSteps{Version: "s1", At: noon.Add(-time.Minute)} }
	failedLater := func(s *pool.Settings) { s.FailedSteps = pool.FailedSteps{Version: "s1", At: noon} }
	failedBefore := func(s *pool.Settings) { s.FailedSteps = pool.FailedSteps{Version: "s0", At: noon.Add(-time.Minute)} }
	addedNow := func(s *pool.Settings) { s.StepsSince = noon }
	full := func(s *pool.Settings) { s.Gates, s.Size, s.MaxSize = "g1", 1, new(1) }
	blocked := func(s *pool.Settings) { s.Blocked = "Secret x does not exist" }
	for name, tc := range map[string]struct {
		list, waiting string
		change        func(*pool.Settings)
		want          string
	}{
		"one begins, and the others serve":                     {"a:assignable+predating b:assignable+predating c:assignable+predating", "", nil, "bootstrap a"},
		"claims get theirs, and the new one tries":             {"a:assignable+predating b:assignable+predating c:assignable+predating", "x", nil, "bind x to a"},
		"the next one waits":                                   {"a:assignable+stepping b:assignable+predating c:assignable+predating", "", nil, ""},
		"it serves":                                            {"a:assignable+stepping b:assignable+predating c:assignable+predating", "x", nil, "bind x to b"},
		"it waits while one is being replaced":                 {"a:installing b:assignable+predating c:assignable+predating", "", nil, "start a"},
		"not while one is being deleted, if it has not failed": {"a:deleting b:assignable+predating c:assignable+predating d:assignable+predating", "", nil, "bootstrap b"},
		"one that fails costs one":                             {"a:assignable+toostepping b:assignable+predating c:assignable+predating", "", nil, "delete a"},
		"one has taken them":                                   {"a:assignable+stepped b:assignable+predating c:assignable+predating", "", nil, "bootstrap b"},
		"as many at a time as have":                            {"a:claimed=x+stepped b:assignable+stepped c:assignable+predating d:assignable+predating", "x=a", nil, "bootstrap c, bootstrap d"},
		"not more":                                             {"a:assignable+stepped b:assignable+stepping c:assignable+predating", "", nil, ""},
		"a version that others have taken shows none":          {"a:assignable+oldstepped b:assignable+predating c:assignable+predating", "", nil, "bootstrap b"},
		"not one that sleeps: it is stale":                     {"a:standby+predating b:assignable+predating c:assignable+stepped", "", nil, "start a, bootstrap b"},
		"a gate fails: it begins":                              {"a:assignable+predating+passed b:assignable+predating+red c:assignable+predating+passed", "", gates, "bootstrap b"},
		"a gate fails for long: it is kept":                    {"a:assignable+stepping b:assignable+predating+toored c:assignable+predating+passed", "", gates, ""},
		"after a failure, none begins":                         {"b:assignable+predating c:assignable+predating d:assignable+predating", "", failed, ""},
		"until a new cluster has taken them":                   {"a:assignable+stepped b:assignable+predating c:assignable+predating", "", failed, "bootstrap b"},
		"one that had completed them before":                   {"a:assignable+stepped b:assignable+predating c:assignable+predating", "", failedLater, ""},
		"one from before the pool had steps again":             {"a:claimed=x+stepped b:assignable+predating c:assignable+predating d:assignable+predating", "x=a", addedNow, "bootstrap b"},
		"those with other steps stay":                          {"a:assignable+oldstepped b:assignable+oldstepped c:assignable+oldstepped", "", failed, ""},
		"one that is paused meanwhile":                         {"a:assignable+stepping+paused b:assignable+predating c:assignable+predating", "", nil, ""},
		"one that fails to come up again":                      {"a:standby+run+unreachable+begun b:assignable+predating c:assignable+predating", "", nil, ""},
		"a red one, although a claim waits for it":             {"a:assignable+predating+red", "x", full, "bootstrap a"},
		"a failure of other steps does not count":              {"a:assignable+predating b:assignable+predating c:assignable+predating", "", failedBefore, "bootstrap a"},
		"gates that fail after the steps, too":                 {"a:assignable+stepped+red b:assignable+predating+passed c:assignable+predating+passed", "", gates, ""},
		"for long":                                             {"a:assignable+stepped+toored b:assignable+predating+passed c:assignable+predating+passed", "", gates, "delete a"},
		"a claimed one has passed them":                        {"a:claimed=x+stepped b:assignable+predating+passed c:assignable+predating+passed d:assignable+predating+passed", "x=a", gates, "bootstrap b"},
		"one that is stale is replaced":                        {"a:assignable+stale+predating b:assignable+stale+predating c:assignable+stepped", "", nil, "delete a"},
		"one that is stale, too, if a gate fails":              {"a:assignable+stale+predating+toored b:assignable+predating+passed c:assignable+predating+passed", "", gates, "delete a"},
		"the time is not recorded yet":                         {"a:assignable+predating b:assignable+predating", "x", unrecorded, ""},
		"the steps are not known":                              {"a:assignable+predating b:assignable+predating c:assignable+predating", "x", unknown, "bind x to a"},
		"the pool is blocked":                                  {"a:assignable+predating b:assignable+predating c:assignable+predating", "", blocked, ""},
		"an adopted one takes them at once":                    {"a:assignable+predating+adopted b:assignable+predating+adopted c:assignable", "x", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*pool.Settings)
			if tc.change != nil {
				change = append(change, tc.change)
			}
			if got := powerAndDeletions(bootstrapped(3, 3, tc.list, tc.waiting, change...)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An older spare of which a gate fails is not kept awake for that.
func TestAnOlderSpareHibernatesAlthoughAGateFails(t *testing.T) {
	gates := func(s *pool.Settings) { s.Gates, s.FailedSteps = "g1", pool.FailedSteps{Version: "s1", At: noon} }
	if got := powerAndDeletions(bootstrapped(1, 0, "a:assignable+predating+toored", "", gates)); got != "hibernate a" {
		t.Errorf("got %q", got)
	}
	if got := powerAndDeletions(bootstrapped(2, 1, "a:assignable+predating+toored b:standby+predating", "", gates)); got != "" {
		t.Errorf("it wakes another one: %q", got)
	}
}

func TestWhatAPoolSaysOfSteps(t *testing.T) {
	p := pool.Decide(bootstrapped(2, 2, "a:assignable+stepping b:assignable+stepped", ""))
	if p.Report.Words != "bootstrapping 1" || p.Report.Progress != pool.Advancing || len(p.Report.Stale) > 0 {
		t.Errorf("the pool is %s, %q, stale %v", p.Report.Progress, p.Report.Words, p.Report.Stale)
	}
	if p.Next <= 0 {
		t.Error("nothing wakes the pool when the step has taken too long")
	}
	p = pool.Decide(bootstrapped(1, 1, "a:assignable+toostepping", ""))
	if len(p.Steps) == 0 || p.Steps[len(p.Steps)-1].Cause != pool.StepFailed || !strings.Contains(p.String(), "step web fails") {
		t.Errorf("the plan is %s", p)
	}
	p = pool.Decide(bootstrapped(1, 1, "a:assignable+oldstepped", ""))
	if !strings.Contains(p.String(), "it has not taken the steps of the pool's bootstrap as they are now") {
		t.Errorf("the plan is %s", p)
	}
	p = pool.Decide(bootstrapped(2, 2, "a:assignable+toostepping b:assignable+predating", ""))
	if p.Report.FailedSteps.Version != "s1" || !p.Report.StepsFail || !strings.Contains(p.Report.Words, "the steps of the bootstrap have failed") {
		t.Errorf("the failed steps are %q, the pool says %q", p.Report.FailedSteps, p.Report.Words)
	}
	if p = pool.Decide(bootstrapped(2, 2, "a:assignable+stepped b:assignable+predating", "", func(s *pool.Settings) {
		s.FailedSteps = pool.FailedSteps{Version: "s1", At: noon.Add(-time.Minute)}
	})); p.Report.StepsFail || p.Report.FailedSteps.Version != "s1" {
		t.Errorf("the failed steps are %q", p.Report.FailedSteps)
	}
	if p = pool.Decide(bootstrapped(1, 1, "a:assignable", "", func(s *pool.Settings) { s.StepsSince = time.Time{} })); p.Next <= 0 || p.Next > time.Second {
		t.Errorf("the pass after the steps were recorded is in %s", p.Next)
	}
	p = pool.Decide(bootstrapped(2, 2, "a:assignable+stepping b:assignable+predating", ""))
	if strings.Join(p.Report.Stale, " ") != "b" || p.Report.Count[pool.Assignable] != 1 {
		t.Errorf("stale: %v, the counts are %v", p.Report.Stale, p.Report.Count)
	}
}
