package clusterpool_test

import (
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// A rung of the ladder is for spares: a claimed cluster that hibernates later is stopped, unless somebody wishes another depth.
func TestAClaimedClusterHasNoRung(t *testing.T) {
	for name, tc := range map[string]struct{ ladder, want string }{
		"the pool has a ladder":             {"freeze:1,stop", ""},
		"the depth is the wish of somebody": {"", "freeze"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			pool := l.stored()
			l.store.EditObject(t.Context(), pool, func() { pool.Annotations = map[string]string{hivev1.AnnotationSleepLadder: tc.ladder} })
			cd := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].DeepCopyObject().(*hivev1.ClusterDeployment)
			l.store.EditObject(t.Context(), cd, func() {
				cd.Spec.Installed, cd.Spec.PowerState, cd.Status.PowerState = true, hivev1.PowerRunning, hivev1.StatusRunning
				cd.Annotations[hivev1.AnnotationSleepDepth] = hivev1.DepthFreeze
			})
			if err := l.store.Create(t.Context(), claim("x")); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				l.view.ShowAllWrites()
				l.pass()
			}
			now := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].(*hivev1.ClusterDeployment)
			if now.Spec.ClusterPoolRef.ClaimName != "x" || now.Annotations[hivev1.AnnotationSleepDepth] != tc.want {
				t.Errorf("claim %q, depth %q, want %q", now.Spec.ClusterPoolRef.ClaimName, now.Annotations[hivev1.AnnotationSleepDepth], tc.want)
			}
		})
	}
}

// TestANewClusterIsCreatedWithItsPowerState: the decider has chosen it already, and a write of its own would cost time.
func TestANewClusterIsCreatedWithItsPowerState(t *testing.T) {
	for name, tc := range map[string]struct {
		running int32
		ladder  string
		power   hivev1.PowerState
		depth   string
	}{
		"it runs":             {1, "", hivev1.PowerRunning, ""},
		"it sleeps":           {0, "", hivev1.PowerHibernating, ""},
		"it sleeps on a rung": {0, "suspend:1,stop", hivev1.PowerHibernating, hivev1.DepthSuspend},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			pool := l.stored()
			first := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].GetName()
			l.store.EditObject(t.Context(), pool, func() {
				pool.Annotations = map[string]string{hivev1.AnnotationSleepLadder: tc.ladder}
				pool.Spec.Size, pool.Spec.RunningCount = 2, 2*tc.running
			})
			l.view.ShowAllWrites()
			l.pass()
			created := 0
			for _, o := range l.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
				cd := o.(*hivev1.ClusterDeployment)
				if cd.Name == first {
					continue
				}
				created++
				if cd.Spec.PowerState != tc.power || cd.Annotations[hivev1.AnnotationSleepDepth] != tc.depth {
					t.Errorf("it was created with power state %q at depth %q", cd.Spec.PowerState, cd.Annotations[hivev1.AnnotationSleepDepth])
				}
			}
			if created != 1 {
				t.Errorf("%d clusters were created", created)
			}
		})
	}
}
