package facts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// running is a cluster that could be assigned, changed.
func running(changes ...func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true, PowerState: hivev1.PowerRunning,
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p"},
		},
		Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning},
	}
	for _, change := range changes {
		change(cd)
	}
	return cd
}

func told(typ string, status corev1.ConditionStatus, reason string) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		condition.Set(&cd.Status.Conditions, typ, status, reason, "", noon.Add(-20*time.Minute))
	}
}

func annotated(key, value string) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) { metav1.SetMetaDataAnnotation(&cd.ObjectMeta, key, value) }
}

func resuming(deadline time.Duration) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		cd.Status.PowerState = hivev1.ReasonWaitingForNodes
		at := metav1.NewTime(noon.Add(deadline))
		cd.Status.PowerTransition = &hivev1.PowerTransition{
			Target: hivev1.PowerRunning, StartedAt: metav1.NewTime(noon.Add(-10 * time.Minute)), Deadline: &at,
		}
	}
}

func TestPhases(t *testing.T) {
	uninstalled := func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }
	asleep := func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerHibernating, hivev1.StatusHibernating
	}
	tests := map[string]struct {
		cd   *hivev1.ClusterDeployment
		want pool.Phase
	}{
		"installed and running is assignable":       {running(), pool.Assignable},
		"not installed is installing":               {running(uninstalled), pool.Installing},
		"asleep is stand-by":                        {running(asleep), pool.Standby},
		"running but told to sleep is stand-by":     {running(func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }), pool.Standby},
		"never told what to be counts as running":   {running(func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = "" }), pool.Assignable},
		"on its way up is stand-by":                 {running(resuming(time.Hour)), pool.Standby},
		"install given up is broken":                {running(uninstalled, told(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "X")), pool.Broken},
		"install not given up is not":               {running(uninstalled, told(hivev1.ClusterProvisionStopped, corev1.ConditionFalse, "X")), pool.Installing},
		"a resume that timed out is broken":         {running(resuming(-time.Second), told(hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart)), pool.Broken},
		"a refused start before the deadline isn't": {running(resuming(time.Second), told(hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart)), pool.Standby},
		"claimed":                                {running(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "x" }), pool.Claimed},
		"marked for removal":                     {running(annotated(hivev1.AnnotationRemove, "true")), pool.Removed},
		"marked with the older annotation":       {running(annotated(hivev1.AnnotationRemoveLegacy, "1")), pool.Removed},
		"marked with something that is not true": {running(annotated(hivev1.AnnotationRemove, "maybe")), pool.Assignable},
		"deleted":                                {running(func(cd *hivev1.ClusterDeployment) { at := metav1.NewTime(noon); cd.DeletionTimestamp = &at }), pool.Deleting},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ReadMember(tc.cd, noon)
			if got := m.Phase(&pool.Settings{}, noon); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A pool replaces what cannot be reached, or is not ready, for as long as a resume
// may take; from when that counts decides whether sound clusters are destroyed.
func TestSinceWhenAClusterIsAway(t *testing.T) {
	resumed := func(ago time.Duration, finished bool) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			at := metav1.NewTime(noon.Add(-ago))
			cd.Status.PowerState = hivev1.ReasonWaitingForNodes
			cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at}
			if finished {
				cd.Status.PowerTransition.FinishedAt = &at
			}
		}
	}
	mute := told(hivev1.ClusterUnreachable, corev1.ConditionTrue, hivev1.ReasonErrorConnecting) // 20 minutes ago, as unready
	unready := told(hivev1.ClusterReady, corev1.ConditionFalse, hivev1.ReasonWaitingForNodes)
	tests := map[string]struct {
		cd                   *hivev1.ClusterDeployment
		unreachable, unready time.Duration
	}{
		"it cannot be reached since it ran":           {cd: running(resumed(time.Hour, true), mute), unreachable: 20 * time.Minute},
		"its sleep before this resume does not count": {cd: running(resumed(time.Minute, false), mute), unreachable: time.Minute},
		"one that sleeps is not missed": {
			cd: running(resumed(time.Hour, true), told(hivev1.ClusterUnreachable, corev1.ConditionTrue, hivev1.ReasonHibernating)),
		},
		"it had come up and is not ready":     {cd: running(resumed(time.Hour, true), unready), unready: 20 * time.Minute},
		"it has not come up yet":              {cd: running(resumed(time.Hour, false), unready)},
		"it runs":                             {cd: running(unready)},
		"it is not known whether it is ready": {cd: running(resumed(time.Hour, true), told(hivev1.ClusterReady, corev1.ConditionUnknown, hivev1.ReasonPowerPaused))},
		"it is told to sleep": {
			cd: running(resumed(time.Hour, true), unready, mute, func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ReadMember(tc.cd, noon)
			for what, c := range map[string]struct {
				got  time.Time
				want time.Duration
			}{"unreachable": {m.UnreachableSince, tc.unreachable}, "unready": {m.UnreadySince, tc.unready}} {
				switch {
				case c.want == 0 && !c.got.IsZero():
					t.Errorf("%s for %s", what, noon.Sub(c.got))
				case c.want > 0 && noon.Sub(c.got) != c.want:
					t.Errorf("%s for %s, want %s", what, noon.Sub(c.got), c.want)
				}
			}
		})
	}
}

func TestWhyADeletionDoesNotProceed(t *testing.T) {
	deleted := func(finalizers ...string) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			at := metav1.NewTime(noon)
			cd.DeletionTimestamp, cd.Finalizers = &at, finalizers
		}
	}
	pause := annotated(hivev1.AnnotationReconcilePause, "true")
	const paused = "it is paused: remove its annotation hive.openshift.io/reconcile-pause"
	for name, tc := range map[string]struct {
		cd   *hivev1.ClusterDeployment
		want string
	}{
		"nothing keeps it":         {running(deleted(hivev1.FinalizerDeprovision)), ""},
		"its own beside another's": {running(deleted(hivev1.FinalizerDeprovision, "example.com/hold")), ""},
		"another's alone": {
			running(deleted("example.com/hold")),
			"the ClusterDeployment has finalizers that hotspare does not remove: example.com/hold: their owners must remove them",
		},
		"somebody paused it":               {running(deleted(hivev1.FinalizerDeprovision), pause), paused},
		"somebody paused one that remains": {running(pause), ""},
	} {
		if got := ReadMember(tc.cd, noon).DeletionError; got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	for _, annotation := range []string{"", hivev1.AnnotationReconcilePause, hivev1.AnnotationPowerPause} {
		if got := ReadMember(running(annotated(annotation, "true")), noon).Paused; got != annotation {
			t.Errorf("paused by %q: got %q", annotation, got)
		}
	}
}

func TestWhatAnInstallMisses(t *testing.T) {
	uninstalled := func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }
	because := func(message string) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionFalse, "X", message, noon)
		}
	}
	met := told(hivev1.ClusterRequirementsMet, corev1.ConditionTrue, hivev1.ReasonAllRequirementsMet)
	for name, tc := range map[string]struct {
		cd   *hivev1.ClusterDeployment
		want string
	}{
		"its message":              {running(uninstalled, because("no such image")), "no such image"},
		"its reason, without one":  {running(uninstalled, because("")), "X"},
		"nothing":                  {running(uninstalled, met), ""},
		"nothing is known yet":     {running(uninstalled), ""},
		"one that is installed":    {running(because("no such image")), ""},
		"it is not known any more": {running(uninstalled, told(hivev1.ClusterRequirementsMet, corev1.ConditionUnknown, "X")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReadMember(tc.cd, noon).RequirementsUnmet; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	three := int32(3)
	timeout := hivev1.Duration("20m")
	p := &hivev1.ClusterPool{Spec: hivev1.ClusterPoolSpec{
		Size: 2, RunningCount: 1, MaxSize: &three, BaseDomain: "example.com",
		HibernationConfig: &hivev1.HibernationConfig{ResumeTimeout: "10m"},
	}}
	p.Finalizers = []string{hivev1.FinalizerPool}
	got, err := ReadSettings(p, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	n := 3
	want := pool.Settings{Size: 2, RunningCount: 1, MaxSize: &n, Version: got.Version, Blocked: "[a, b]", ResumeTimeout: 10 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	p.Spec.PowerstateTransitionToRunningTimeout = &timeout
	p.Spec.Annotations = map[string]string{hivev1.AnnotationFake: "true"}
	got, err = ReadSettings(p, []string{"a"})
	if err != nil || got.ResumeTimeout != 20*time.Minute || got.Blocked != "" {
		t.Errorf("the timeout's own field counts before Hive's, and fake clusters need nothing: %+v, %v", got, err)
	}
}

// Absent is no limit, and 0 is none.
func TestALimitOfZeroIsALimit(t *testing.T) {
	for _, want := range []*int32{nil, new(int32)} {
		p := &hivev1.ClusterPool{Spec: hivev1.ClusterPoolSpec{MaxSize: want, MaxConcurrent: want}}
		set, err := ReadSettings(p, nil)
		if err != nil || (set.MaxSize == nil) != (want == nil) || (set.MaxConcurrent == nil) != (want == nil) {
			t.Errorf("maxSize %v, maxConcurrent %v, %v", set.MaxSize, set.MaxConcurrent, err)
		}
	}
}
