package poolpolicy_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func ladder(rungs ...v1alpha1.SleepRung) func(*v1alpha1.PoolPolicySpec) {
	return func(s *v1alpha1.PoolPolicySpec) { s.Sleep = &v1alpha1.PolicySleep{Ladder: rungs} }
}

func rung(depth string, count int32) v1alpha1.SleepRung {
	return v1alpha1.SleepRung{Depth: depth, Count: &count}
}

func (h *hub) ladder() string {
	h.Helper()
	var p hivev1.ClusterPool
	if err := h.Get(h.Context(), key, &p); err != nil {
		h.Fatal(err)
	}
	return p.Annotations[hivev1.AnnotationSleepLadder]
}

func TestALadderIsWrittenIntoThePool(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(ladder(rung("freeze", 1), v1alpha1.SleepRung{Depth: "stop"})))
	h.pass()
	want(t, "the ladder", h.ladder(), "freeze:1,stop")
	want(t, "the counts", h.counts(), "3 of 8")
	if events := h.takeEvents(); len(events) != 1 || !strings.Contains(events[0], "freeze:1,stop") {
		t.Errorf("events %v", events)
	}
	writes := h.writes["*v1.ClusterPool"]
	h.pass()
	want(t, "writes of a pass that changes nothing", h.writes["*v1.ClusterPool"], writes)
	h.edit(func(p *v1alpha1.PoolPolicy) { ladder(rung("suspend", 2))(&p.Spec) })
	h.pass()
	want(t, "another ladder", h.ladder(), "suspend:2")
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Spec.Sleep = nil })
	h.pass()
	want(t, "the ladder of a policy without one", h.ladder(), "suspend:2")
}

func TestARecommendationWritesNoLadder(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend, ladder(rung("freeze", 1))))
	h.pass()
	want(t, "the ladder", h.ladder(), "")
}

func TestALadderThatCannotBeUsedIsReported(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(ladder(rung("stop", 1), rung("freeze", 1))))
	h.pass()
	want(t, "Valid", h.says(v1alpha1.PolicyValid), "False InvalidSleep")
	want(t, "the ladder", h.ladder(), "")
}

// frozen returns an unclaimed cluster that was resumed from depth freeze within two seconds.
func frozen(name string) *hivev1.ClusterDeployment {
	cd := newCluster(name)
	finished := metav1.NewTime(cd.Status.PowerTransition.StartedAt.Add(2 * time.Second))
	cd.Status.PowerTransition.FinishedAt, cd.Status.PowerTransition.Depth = &finished, hivev1.DepthFreeze
	return cd
}

func TestResumesFromShallowDepthsAreReported(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy())
	h.create(frozen("dev-1"))
	h.create(newCluster("dev-2"))
	h.pass()
	got := h.policy().Status
	if len(got.ShallowResumes) != 1 || got.ShallowResumes[0].Depth != "freeze" || got.ShallowResumes[0].P90 != "2s" || got.Resumes.P90 != "5m0s" || got.Resumes.Count != 1 {
		t.Errorf("from shallow depths %+v, from stop %+v", got.ShallowResumes, got.Resumes)
	}
}

func autoLadder(s *v1alpha1.PoolPolicySpec) {
	s.Sleep = &v1alpha1.PolicySleep{Mode: v1alpha1.SleepAuto}
}

func TestALadderThatHotspareChooses(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(1, 4), newPolicy(autoLadder))
	h.create(newCluster("dev-1"))
	h.pass()
	want(t, "a depth of which nothing is known", h.ladder(), "freeze:1,stop")
	got := h.policy().Status.Recommended.Sleep
	if got == nil || got.Ladder != "freeze:1,stop" || !strings.Contains(got.Reason, "1 frozen, 3 stopped: one sleeps at depth freeze to measure a resume from there") {
		t.Errorf("%+v", got)
	}
	if events := h.takeEvents(); len(events) != 1 || !strings.Contains(events[0], "freeze:1,stop: 1 frozen, 3 stopped: one sleeps") {
		t.Errorf("events %v", events)
	}
	writes := h.writes["*v1.ClusterPool"]
	h.run(10 * time.Minute)
	want(t, "writes of passes that change nothing", h.writes["*v1.ClusterPool"], writes)

	t.Log("the platform puts a cluster to sleep more deeply")
	deeper := newCluster("dev-2")
	since := metav1.NewTime(h.clock.Now())
	deeper.Annotations = map[string]string{hivev1.AnnotationSleepDepth: hivev1.DepthFreeze}
	deeper.Spec.PowerState, deeper.Status.PowerState = hivev1.PowerHibernating, hivev1.StatusHibernating
	deeper.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerHibernating, StartedAt: since, FinishedAt: &since, Depth: hivev1.DepthStop}
	h.create(deeper)
	h.pass()
	want(t, "the ladder after that", h.ladder(), "stop")
	h.restart()
	h.clock.SetTime(h.clock.Now().Add(23 * time.Hour))
	h.pass()
	want(t, "the ladder of the same day", h.ladder(), "stop")
	h.clock.SetTime(h.clock.Now().Add(2 * time.Hour))
	h.pass()
	want(t, "the ladder a day later", h.ladder(), "freeze:1,stop")
}

func TestALadderIsOnlyRecommended(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(1, 4), newPolicy(recommend, autoLadder))
	h.pass()
	want(t, "the ladder of the pool", h.ladder(), "")
	want(t, "the recommended one", h.policy().Status.Recommended.Sleep.Ladder, "freeze:1,stop")
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Spec.Sleep.Ladder = []v1alpha1.SleepRung{{Depth: "stop"}} })
	h.pass()
	want(t, "both a mode and a ladder", h.says(v1alpha1.PolicyValid), "False InvalidSleep")
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Spec.Sleep = &v1alpha1.PolicySleep{Mode: "Manual"} })
	h.pass()
	want(t, "an unknown mode", h.says(v1alpha1.PolicyValid), "False InvalidSleep")
}
