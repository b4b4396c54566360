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
