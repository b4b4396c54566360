package pool_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

// When a member is said to be given up is when it becomes broken, and not before.
func TestAMemberIsGivenUpWhenItIsSaidToBe(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	sometimes := func() time.Time {
		if r.IntN(2) == 0 {
			return time.Time{}
		}
		return noon.Add(-time.Duration(r.IntN(400)) * time.Second)
	}
	told := 0
	for range 5000 {
		m := pool.Member{
			Installed: r.IntN(4) > 0, MachinesFailed: r.IntN(3) == 0, GaveUp: r.IntN(20) == 0,
			ResumingSince: sometimes(), UnreachableSince: sometimes(), UnreadySince: sometimes(),
		}
		s := pool.Settings{ResumeTimeout: time.Duration(r.IntN(3)*150) * time.Second}
		at := m.GiveUpTime(&s, noon)
		if at.IsZero() {
			if m.DefectCause(&s, noon) == "" && m.DefectCause(&s, noon.Add(24*time.Hour)) != "" {
				t.Fatalf("%+v, %+v: it will be broken, and nobody is told", m, s)
			}
			continue
		}
		told++
		if m.DefectCause(&s, noon) != "" || m.DefectCause(&s, at.Add(-time.Second)) != "" || m.DefectCause(&s, at) == "" {
			t.Fatalf("%+v, %+v: it is said to be broken at %s", m, s, at)
		}
	}
	if told < 500 {
		t.Errorf("only %d were said to be given up", told)
	}
}
