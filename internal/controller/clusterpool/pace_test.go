package clusterpool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// One pool must not hold up the others: what is made waits in one line for those who install it.
func TestAPoolOfAnySizeMakesNoMoreThanIsTakenUp(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fakes := map[string]string{hivev1.AnnotationFake: "true"}
	waits := func(m *pool.Member) {}
	for name, tc := range map[string]struct {
		n, pending  int
		of          func(*pool.Member)
		annotations map[string]string
		most        int
		later       time.Duration
	}{
		"few wait":                                   {n: 10, of: waits, most: batch, later: soon},
		"many wait":                                  {n: backlog - 3, of: waits, most: 3, later: refill},
		"too many wait":                              {n: backlog + 10, of: waits, most: 0, later: refill},
		"names wait, too":                            {pending: backlog, most: 0, later: refill},
		"those whose install has begun do not":       {n: 500, of: func(m *pool.Member) { m.Begun = true }, most: batch, later: soon},
		"but fake ones are installed at once":        {n: 500, of: func(m *pool.Member) { m.Begun = true }, annotations: fakes, most: 0, later: refill},
		"installed ones do not":                      {n: 500, of: func(m *pool.Member) { m.Begun, m.Installed = true, true }, annotations: fakes, most: batch, later: soon},
		"nor does what is not taken up for a minute": {n: 500, of: func(m *pool.Member) { m.Created = now.Add(-takeUp) }, annotations: fakes, most: batch, later: soon},
	} {
		t.Run(name, func(t *testing.T) {
			s := &seen{pool: &hivev1.ClusterPool{Spec: hivev1.ClusterPoolSpec{Annotations: tc.annotations}}, clusters: map[string]*hivev1.ClusterDeployment{}}
			s.snapshot.Settings.Size = 1_000_000_000
			s.snapshot.Pending = make([]string, tc.pending)
			for range tc.n {
				m := pool.Member{Created: now}
				tc.of(&m)
				s.snapshot.Members = append(s.snapshot.Members, m)
			}
			if most, later := s.pace(pool.Plan{}, now); most != tc.most || later != tc.later {
				t.Errorf("%d, then after %v; want %d and %v", most, later, tc.most, tc.later)
			}
		})
	}
}

func TestAPassDeletesABatch(t *testing.T) {
	var p pool.Plan
	for range batch {
		p.Steps = append(p.Steps, pool.Step{Verb: pool.Delete})
	}
	if now, later := deletions(p); len(now) != batch || later != 0 {
		t.Errorf("of %d it deletes %d and looks again in %v", batch, len(now), later)
	}
	p.Steps = append(p.Steps, pool.Step{Verb: pool.Delete})
	if now, later := deletions(p); len(now) != batch || later != refill {
		t.Errorf("of %d it deletes %d and looks again in %v", batch+1, len(now), later)
	}
}

func TestPace(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		size                            int
		assignable, installing, waiting int
		binds, pending                  int
		served, made                    time.Duration // ago; 0 is never
		most                            int
		later                           time.Duration
	}{
		"a new pool fills at full speed":                      {size: 100, most: batch, later: soon},
		"a pass that serves makes none":                       {size: 10, assignable: 9, binds: 1, most: 0, later: refill},
		"but for claims that still wait":                      {size: 10, assignable: 9, binds: 1, waiting: 1, most: batch, later: soon},
		"and not when half of the pool is gone":               {size: 10, assignable: 4, binds: 1, most: batch, later: soon},
		"after it, one at a time":                             {size: 10, assignable: 5, served: time.Second, most: 1, later: refill},
		"and that one is waited for":                          {size: 10, assignable: 5, installing: 1, served: time.Second, most: 0, later: refill},
		"also when it has a name only":                        {size: 10, assignable: 5, pending: 1, served: time.Second, most: 0, later: refill},
		"nor follows another at once":                         {size: 10, assignable: 5, served: time.Second, made: time.Second, most: 0, later: refill},
		"but a while later":                                   {size: 10, assignable: 5, served: time.Second, made: demand, most: 1, later: refill},
		"until demand is over":                                {size: 10, assignable: 5, served: demand, most: batch, later: soon},
		"a pool whose last running cluster went is not asked": {size: 1, served: time.Second, most: batch, later: soon},
		"a pool of size 0 makes what claims wait for":         {waiting: 3, served: time.Second, most: batch, later: soon},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &seen{pool: &hivev1.ClusterPool{}, clusters: map[string]*hivev1.ClusterDeployment{"idle": {}}}
			s.snapshot.Settings.Size = tc.size
			s.snapshot.Pending = make([]string, tc.pending)
			if tc.served > 0 {
				at := metav1.NewTime(now.Add(-tc.served))
				s.clusters["given"] = &hivev1.ClusterDeployment{
					ObjectMeta: metav1.ObjectMeta{Name: "given"},
					Spec:       hivev1.ClusterDeploymentSpec{ClusterPoolRef: &hivev1.ClusterPoolReference{ClaimName: "x", ClaimedTimestamp: &at}},
				}
			}
			if tc.made > 0 {
				s.clusters["new"] = &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: metav1.NewTime(now.Add(-tc.made))}}
			}
			for _, cd := range s.clusters {
				s.snapshot.Members = append(s.snapshot.Members, facts.Of(cd, now))
			}
			p := pool.Plan{Report: pool.Report{Waiting: tc.waiting, Count: map[pool.Phase]int{pool.Assignable: tc.assignable, pool.Installing: tc.installing}}}
			for range tc.binds {
				p.Steps = append(p.Steps, pool.Step{Verb: pool.Bind})
			}
			if most, later := s.pace(p, now); most != tc.most || later != tc.later {
				t.Errorf("%d, then after %v; want %d and %v", most, later, tc.most, tc.later)
			}
		})
	}
}
