package sizeestimate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

// simulation plays a pool against claims that come at random: what the decider says
// happens, each install and resume takes its time, and who is served goes away with the
// cluster.
type simulation struct {
	Demand
	Recommendation
	r       *rand.Rand
	now     time.Time
	members []pool.Member
	claims  []pool.Claim
	made    int
	// up is when a member that resumes, or is being installed, will be there.
	up map[string]time.Time
	// early claims got a cluster at once, soon ones within a resume.
	early, soon int
}

// run is the share of n claims that got a cluster that ran, and of those that did not wait
// longer than a resume takes.
func (s *simulation) run(n int) (atOnce, spare float64) {
	s.now, s.up = time.Unix(0, 0).UTC(), map[string]time.Time{}
	s.decide()
	s.advance(s.now.Add(3 * s.Install)) // now the pool is full
	for k := range n {
		s.advance(s.now.Add(time.Duration(s.r.ExpFloat64() * float64(s.Every))))
		s.claims = append(s.claims, pool.Claim{Name: fmt.Sprintf("claim-%d", k), Created: s.now})
		s.decide()
	}
	s.advance(s.now.Add(3 * s.Install))
	return float64(s.early) / float64(n), float64(s.soon) / float64(n)
}

// advance lets time pass, with a decision at each thing that happens.
func (s *simulation) advance(to time.Time) {
	for {
		var first string
		for name, at := range s.up {
			sooner := first == "" || at.Before(s.up[first]) || at.Equal(s.up[first]) && name < first
			if sooner && !at.After(to) {
				first = name
			}
		}
		if first == "" {
			s.now = to
			return
		}
		s.now = s.up[first]
		delete(s.up, first)
		m := s.member(first)
		m.Installed, m.ResumingSince, m.Running = true, time.Time{}, m.Wanted == pool.Running
		s.decide()
	}
}

func (s *simulation) member(name string) *pool.Member {
	return &s.members[slices.IndexFunc(s.members, func(m pool.Member) bool { return m.Name == name })]
}

// decide does what the pool's decider says, until it says nothing more.
func (s *simulation) decide() {
	for {
		p := pool.Decide(pool.Snapshot{
			Settings: pool.Settings{Size: s.Size, RunningCount: s.RunningCount}, Members: s.members, Claims: s.claims, Now: s.now,
		})
		for _, step := range p.Steps {
			s.take(step)
		}
		if len(p.Steps) == 0 {
			return
		}
	}
}

func (s *simulation) take(step pool.Step) {
	switch step.Verb {
	case pool.Create:
		s.made++
		name := fmt.Sprintf("cluster-%06d", s.made)
		s.members = append(s.members, pool.Member{Name: name, Created: s.now})
		s.up[name] = s.now.Add(s.Install)
	case pool.Start:
		m := s.member(step.Cluster)
		if m.Wanted = pool.Running; m.Installed {
			m.ResumingSince, s.up[m.Name] = s.now, s.now.Add(s.Resume)
		}
	case pool.Hibernate:
		m := s.member(step.Cluster)
		m.Wanted, m.Running, m.ResumingSince = pool.Hibernating, false, time.Time{}
		if m.Installed {
			delete(s.up, m.Name)
		}
	case pool.Bind:
		s.serve(step.Claim)
		s.remove(step.Cluster)
	case pool.Delete:
		s.remove(step.Cluster)
	case pool.SetPosition:
		c := &s.claims[slices.IndexFunc(s.claims, func(c pool.Claim) bool { return c.Name == step.Claim })]
		c.Position, c.Ready = step.Position, step.Ready
	}
}

func (s *simulation) serve(claim string) {
	i := slices.IndexFunc(s.claims, func(c pool.Claim) bool { return c.Name == claim })
	waited := s.now.Sub(s.claims[i].Created)
	if waited == 0 {
		s.early++
	}
	if waited <= s.Resume {
		s.soon++
	}
	s.claims = slices.Delete(s.claims, i, i+1)
}

func (s *simulation) remove(cluster string) {
	delete(s.up, cluster)
	s.members = slices.DeleteFunc(s.members, func(m pool.Member) bool { return m.Name == cluster })
}
