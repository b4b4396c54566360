package provision

import (
	"fmt"
	"math/rand/v2"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// story is a cluster's life up to where it is deleted.
type story struct {
	edit     func(*hivev1.ClusterDeployment)
	lab      func(*lab)
	until    string
	finished func(*world) bool
}

func stories() map[string]story {
	installed := func(w *world) bool { return w.installed() }
	stopped := func(w *world) bool {
		cd := w.cluster()
		return condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped) && w.lab.left() == ""
	}
	begun := func(w *world) bool { return len(w.lab.alive) > 0 }
	one := int32(1)
	return map[string]story{
		"installs at once":                 {until: "installed", finished: installed},
		"is fake":                          {edit: fakeCluster, until: "installed", finished: installed},
		"installs slowly":                  {lab: func(l *lab) { l.polls = 2 }, until: "installed", finished: installed},
		"installs at the third attempt":    {lab: func(l *lab) { l.failures = 2; l.polls = 1 }, until: "installed", finished: installed},
		"is given up":                      {edit: func(cd *hivev1.ClusterDeployment) { cd.Spec.InstallAttemptsLimit = &one }, lab: func(l *lab) { l.failures = 9 }, until: "given up", finished: stopped},
		"is hard to destroy":               {lab: func(l *lab) { l.failures = 1; l.undead = 2 }, until: "installed", finished: installed},
		"is deleted while it is installed": {lab: func(l *lab) { l.polls = 5 }, until: "begun", finished: begun},
	}
}

// live runs a story to its end, and checks what must hold there. It reports how many writes that took.
func (s story) live(t *testing.T, crashAt int, lag *rand.Rand) int {
	t.Helper()
	var edits []func(*hivev1.ClusterDeployment)
	if s.edit != nil {
		edits = append(edits, s.edit)
	}
	w := newWorld(t, request(edits...)...)
	if s.lab != nil {
		s.lab(w.lab)
	}
	w.crashAt, w.lag = crashAt, lag
	w.drive(s.until, func() bool { return s.finished(w) })
	if len(w.lab.alive) > 1 {
		t.Errorf("alive at the same time: %s", w.lab.left())
	}
	w.delete()
	w.drive("gone", w.gone)
	if left := w.lab.left(); left != "" {
		t.Errorf("leaked: %s", left)
	}
	return len(w.writes)
}

func TestCrashAfterEveryWrite(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			writes := s.live(t, 0, nil)
			for n := 1; n <= writes; n++ {
				t.Run(fmt.Sprintf("and dies after write %d", n), func(t *testing.T) { s.live(t, n, nil) })
			}
		})
	}
}

func TestCrashWithStaleCaches(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(15) {
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
					lag := rand.New(rand.NewPCG(seed, 0))
					s.live(t, lag.IntN(25), lag)
				})
			}
		})
	}
}
