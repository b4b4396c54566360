package failure_test

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/diagnostics/failure"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int) *metav1.Time {
	t := metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
	return &t
}

func with(change ...func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{}
	cd.Spec.Installed = true
	for _, c := range change {
		c(cd)
	}
	return cd
}

func conditioned(typ string, status corev1.ConditionStatus, reason string) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		cd.Status.Conditions = append(cd.Status.Conditions, hivev1.Condition{Type: typ, Status: status, Reason: reason, Message: "why", LastTransitionTime: *at(-3)})
	}
}

func notInstalled(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }

func resuming(since int, failed bool) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: *at(since), MachinesFailed: failed}
	}
}

func finished(cd *hivev1.ClusterDeployment) { cd.Status.PowerTransition.FinishedAt = at(0) }

func earlier(cd *hivev1.ClusterDeployment) {
	cd.Status.Conditions[0].LastTransitionTime = *at(-6)
}

func gates(since, deadline int) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		cd.Status.Gates = &hivev1.GateRecord{FailedSince: at(since), Deadline: at(deadline)}
	}
}

func step(since, deadline int) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		cd.Status.Bootstrap = &hivev1.BootstrapRecord{Step: "web", StepStartedAt: at(since), Deadline: at(deadline)}
	}
}

func describe(p failure.Plan) string {
	if p.Failure != nil {
		return string(p.Failure.Kind) + ": " + p.Failure.Message
	}
	if p.Next > 0 {
		return "in " + p.Next.String()
	}
	return "none"
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		cd   *hivev1.ClusterDeployment
		want string
	}{
		"a cluster that runs":                  {with(), "none"},
		"an install attempt that failed":       {with(notInstalled, conditioned(hivev1.ClusterProvisionFailed, corev1.ConditionTrue, "X")), "install: why"},
		"no more attempts":                     {with(notInstalled, conditioned(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "X")), "install: why"},
		"an attempt in progress":               {with(notInstalled, conditioned(hivev1.ClusterProvisionFailed, corev1.ConditionFalse, "X")), "none"},
		"an attempt that failed once":          {with(conditioned(hivev1.ClusterProvisionFailed, corev1.ConditionTrue, "X")), "none"},
		"a resume in time":                     {with(resuming(-1, false)), "in 4m0s"},
		"a resume that takes long":             {with(resuming(-5, false), conditioned(hivev1.ClusterReady, corev1.ConditionFalse, "X")), "resume: why"},
		"a resume whose machines fail":         {with(resuming(-1, true), conditioned(hivev1.ClusterReady, corev1.ConditionFalse, "X")), "resume: why"},
		"a resume that the platform refuses":   {with(resuming(-1, false), conditioned(hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart), conditioned(hivev1.ClusterReady, corev1.ConditionFalse, "X")), "resume: why"},
		"a resume that has ended":              {with(resuming(-9, false), finished), "none"},
		"a cluster that just became unready":   {with(resuming(-9, false), finished, conditioned(hivev1.ClusterReady, corev1.ConditionFalse, "X")), "in 2m0s"},
		"a cluster that hibernates":            {with(resuming(-9, false), finished, conditioned(hivev1.ClusterUnreachable, corev1.ConditionTrue, hivev1.ReasonHibernating)), "none"},
		"a cluster that cannot be reached":     {with(resuming(-9, false), finished, conditioned(hivev1.ClusterUnreachable, corev1.ConditionTrue, "X"), earlier), "outage: why"},
		"gates that have just begun to fail":   {with(gates(0, 10)), "in 5m0s"},
		"gates that fail for half of the time": {with(gates(-5, 5)), "gate: a gate fails"},
		"a step in time":                       {with(step(-1, 9)), "in 4m0s"},
		"a step that takes long":               {with(step(-6, 4)), "step: step web is not done"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(failure.Decide(failure.Snapshot{Now: noon, Cluster: c.cd, ResumeTimeout: 10 * time.Minute})); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if failure.IsPossible(c.cd) != (c.want != "none") {
				t.Errorf("IsPossible = %t for a cluster whose plan is %q", failure.IsPossible(c.cd), c.want)
			}
		})
	}
}

// Whatever a cluster goes through, a failure that stays is the same one, it never becomes due later than planned,
// and gates and steps are due before the pool may delete the cluster.
func TestFailuresAreDueBeforeTheClusterIsDeleted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		since, limit := -r.IntN(30), 1+r.IntN(30)
		change := []func(*hivev1.ClusterDeployment){gates(since, since+limit), step(since, since+limit), resuming(since, false)}[r.IntN(3)]
		s := failure.Snapshot{Now: noon, Cluster: with(change), ResumeTimeout: time.Duration(limit) * time.Minute}
		p := failure.Decide(s)
		if p.Failure == nil {
			if p.Next <= 0 || p.Next > time.Duration(limit)*time.Minute {
				t.Fatalf("since %d, limit %d: next look in %s", since, limit, p.Next)
			}
			s.Now = s.Now.Add(p.Next)
			p = failure.Decide(s)
		}
		deadline := noon.Add(time.Duration(since+limit) * time.Minute)
		if p.Failure == nil || !s.Now.Before(deadline) && s.Now.After(noon) {
			t.Fatalf("since %d, limit %d: %+v at %s", since, limit, p, s.Now)
		}
		s.Now = s.Now.Add(time.Duration(r.IntN(100)) * time.Minute)
		if again := failure.Decide(s); again.Failure == nil || again.Failure.Kind != p.Failure.Kind || !again.Failure.Since.Equal(p.Failure.Since) {
			t.Fatalf("the failure %+v became %+v", p.Failure, again.Failure)
		}
	}
}

// claimed is a cluster that is being deleted since noon, and its claim n/x with an annotation.
func claimed(value string) (*hivev1.ClusterDeployment, *hivev1.ClusterClaim) {
	cd := with(func(cd *hivev1.ClusterDeployment) {
		cd.Name, cd.UID, cd.DeletionTimestamp = "c", "0a1b2c3d-0000", at(0)
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p", ClaimName: "x"}
	})
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", Annotations: map[string]string{hivev1.AnnotationDiagnoseAtRelease: value}}}
	return cd, claim
}

func TestARelease(t *testing.T) {
	const requested = "release: claim n/x requests a bundle"
	for name, c := range map[string]struct {
		value  string
		change func(*hivev1.ClusterDeployment, *hivev1.ClusterClaim)
		want   string
	}{
		"a release with a request":                     {"true", nil, requested},
		"a release without one":                        {"false", nil, "none"},
		"a request that is no boolean":                 {"please", nil, "none"},
		"a cluster in use":                             {"true", func(cd *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim) { cd.DeletionTimestamp = nil }, "none"},
		"a claim of another name":                      {"true", func(_ *hivev1.ClusterDeployment, c *hivev1.ClusterClaim) { c.Name = "y" }, "none"},
		"a claim of another namespace":                 {"true", func(_ *hivev1.ClusterDeployment, c *hivev1.ClusterClaim) { c.Namespace = "m" }, "none"},
		"a cluster of no pool":                         {"true", func(cd *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim) { cd.Spec.ClusterPoolRef = nil }, "none"},
		"a release is more than the failure before it": {"true", func(cd *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim) { gates(-9, -1)(cd) }, requested},
		"a failure of a released cluster":              {"", func(cd *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim) { gates(-9, -1)(cd) }, "gate: a gate fails"},
	} {
		t.Run(name, func(t *testing.T) {
			cd, claim := claimed(c.value)
			if c.change != nil {
				c.change(cd, claim)
			}
			p := failure.Decide(failure.Snapshot{Now: noon, Cluster: cd, Claim: claim})
			if got := describe(p); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if p.Failure != nil && !failure.IsPossible(cd) {
				t.Error("the controller does not look at the cluster")
			}
		})
	}
	cd, _ := claimed("true")
	if p := failure.Decide(failure.Snapshot{Now: noon, Cluster: cd}); p.Failure != nil {
		t.Errorf("a cluster without a claim: %s", describe(p))
	}
}

func TestABundleIsSettledWhenItIsStoredOrGivenUp(t *testing.T) {
	cd, claim := claimed("true")
	f := *failure.FindRelease(cd, claim)
	name := failure.BundleName(cd, f)
	if name != "c-release-20260301T120000Z-0a1b2c3d.tar.gz" {
		t.Fatal(name)
	}
	for reason, want := range map[string]bool{hivev1.ReasonBundleWritten: true, hivev1.ReasonBundleNotWritten: true, hivev1.ReasonBundleDelayed: false} {
		cd.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterDiagnosed, Reason: reason, Message: "Bundle " + name + " is."}}
		if got := failure.IsSettled(cd, f); got != want {
			t.Errorf("%s: settled = %t", reason, got)
		}
	}
	cd.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterDiagnosed, Reason: hivev1.ReasonBundleWritten, Message: "Bundle c-gate-20260301T120000Z-0a1b2c3d.tar.gz is."}}
	if failure.IsSettled(cd, f) || failure.FindReport(cd, f) != nil {
		t.Error("the bundle of another failure counts")
	}
}

// A bundle is tried again less and less often, and not for ever; one of a release never after its limit.
func TestTriesAreBounded(t *testing.T) {
	for _, c := range []struct {
		kind failure.Kind
		want int
		end  time.Duration
	}{{failure.Gate, 11, time.Hour}, {failure.Release, 4, failure.ReleaseLimit}} {
		f := failure.Failure{Kind: c.kind, Since: noon}
		last, tries := noon, 0
		for next := failure.NextTry(f, noon, last); !next.IsZero(); next = failure.NextTry(f, noon, last) {
			if step := next.Sub(last); step < 10*time.Second || step > 10*time.Minute {
				t.Fatalf("%s: after %s", c.kind, step)
			}
			last = next
			tries++
		}
		if tries < c.want-1 || tries > c.want+1 || last.Sub(noon) > c.end {
			t.Errorf("%s: %d tries, the last after %s", c.kind, tries, last.Sub(noon))
		}
	}
	late := failure.Failure{Kind: failure.Release, Since: noon}
	if next := failure.NextTry(late, noon.Add(3*time.Minute), noon.Add(3*time.Minute)); !next.IsZero() {
		t.Errorf("a late release is tried again at %s", next)
	}
}
