package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/sizing"
)

// exactPool is a pool whose steps pool.Decide plans. It takes all steps of a plan at once: the pauses
// of a few seconds by which the controller spares the API server do not matter here.
type exactPool struct {
	*recorder
	rand     *rand.Rand
	settings pool.Settings
	members  []pool.Member
	claims   []pool.Claim
	// ends is when something happens to a member, by name.
	ends map[string]end
	// held is how long each waiting claim will keep its cluster.
	held map[string]int64
	made int
	// recheck is when the decider wants to look again; never if only a change matters.
	recheck int64
}

// end is what happens to a member, and when.
type end struct {
	at   int64
	what func(now int64)
}

// Replay replays a trace on the pool's own decider.
func Replay(t Trace, p Policy, o Options, maxWait time.Duration) Result {
	e := &exactPool{
		recorder: newRecorder(o, p), rand: rand.New(rand.NewPCG(o.Seed, 1)),
		ends: map[string]end{}, held: map[string]int64{}, recheck: never,
	}
	start := t.Claims[0].Arrived - int64(pace)
	e.last = start
	s := p.Begin(time.Unix(start, 0).UTC())
	// docs/tuning.md recommends three times the usual duration.
	e.settings = pool.Settings{MaxSize: o.MaxSize, MaxConcurrent: o.MaxConcurrent, ResumeTimeout: 3 * o.Resume.P90(), Sleep: o.Sleep}
	e.settings.Size, e.settings.RunningCount, e.wanted = s.Size, s.Running, s.Running
	e.fillPool(start, s)
	replayTrace(t, p, e, e.recorder)
	return e.newResult(maxWait)
}

func (e *exactPool) fillPool(now int64, s sizing.Setting) {
	size := s.Size
	if e.MaxSize != nil {
		size = min(size, *e.MaxSize)
	}
	for i := range size {
		m := e.newMember(now)
		m.Installed, m.Wanted = true, pool.Hibernating
		if i < s.Running {
			m.Wanted, m.Running = pool.Running, true
		}
		e.members = append(e.members, m)
	}
	e.decideOnce(now)
}

// newMember returns a member that is newer than all others, also than those of the same second.
func (e *exactPool) newMember(now int64) pool.Member {
	e.made++
	return pool.Member{Name: fmt.Sprintf("cluster-%09d", e.made), Created: asTime(now).Add(time.Duration(e.made))}
}

func asTime(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func (e *exactPool) nextEvent() int64 {
	next := e.recheck
	for _, x := range e.ends {
		next = min(next, x.at)
	}
	return next
}

func (e *exactPool) completeTransitions(now int64) {
	var due []string
	for name, x := range e.ends {
		if x.at <= now {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	for _, name := range due {
		x := e.ends[name]
		delete(e.ends, name)
		x.what(now)
	}
	e.decideOnce(now)
}

func (e *exactPool) acceptClaim(c Claim) bool {
	name := fmt.Sprintf("claim-%09d", e.made)
	e.made++
	e.claims = append(e.claims, pool.Claim{Name: name, Created: asTime(c.Arrived)})
	e.held[name] = c.Held
	before := e.waitingClaims()
	e.decideOnce(c.Arrived)
	return e.waitingClaims() < before
}

func (e *exactPool) applySetting(s sizing.Setting, now int64) {
	if s.Size == e.settings.Size && s.Running == e.settings.RunningCount {
		return
	}
	e.settings.Size, e.settings.RunningCount, e.wanted = s.Size, s.Running, s.Running
	e.decideOnce(now)
}

func (e *exactPool) waitingClaims() int {
	n := 0
	for _, c := range e.claims {
		if c.Cluster == "" {
			n++
		}
	}
	return n
}

// maxPasses limits the number of plans at one moment. A pool settles within a few.
const maxPasses = 100

// decideOnce takes the steps of the decider until it plans none.
func (e *exactPool) decideOnce(now int64) {
	e.recheck = never
	for range maxPasses {
		p := pool.Decide(pool.Snapshot{Settings: e.settings, Members: e.members, Claims: e.claims, Now: asTime(now)})
		changed := 0
		for _, step := range p.Steps {
			if step.Verb != pool.SetPosition { // nobody reads it here
				e.carryOut(step, now)
				changed++
			}
		}
		if changed == 0 {
			if p.Next >= time.Second {
				e.recheck = now + max(1, int64((p.Next+time.Second-1)/time.Second))
			}
			break
		}
	}
	e.takeCensus()
}

func (e *exactPool) takeCensus() {
	e.state = census{waiting: e.waitingClaims()}
	for i := range e.members {
		m := &e.members[i]
		switch {
		case m.Claim != "" || m.Deleting:
		case !m.Installed:
			e.state.installing++
		case m.Running:
			e.state.running++
		case m.Wanted == pool.Running:
			e.state.resuming++
		default:
			e.state.hibernating++
			if n := e.state.shallow.Of(cloud.Depth(m.WantedDepth)); n != nil {
				*n++
			}
		}
	}
}

func (e *exactPool) carryOut(s pool.Step, now int64) {
	switch s.Verb {
	case pool.Create:
		e.createMember(s, now)
	case pool.Start:
		e.startMember(e.findMember(s.Cluster), now)
	case pool.Hibernate:
		e.hibernateMember(e.findMember(s.Cluster), s.Depth, now)
	case pool.Bind:
		e.bindClaim(s, now)
	case pool.Delete:
		e.destroyMember(s.Cluster, now)
	}
}

func (e *exactPool) findMember(name string) *pool.Member {
	return &e.members[slices.IndexFunc(e.members, func(m pool.Member) bool { return m.Name == name })]
}

func (e *exactPool) createMember(s pool.Step, now int64) {
	m := e.newMember(now)
	m.Begun, m.Wanted, m.WantedDepth = true, s.Power, s.Depth
	name := m.Name
	e.members = append(e.members, m)
	e.countEvent(&e.installs, now)
	fails := e.rand.Float64() < e.FailedInstalls
	e.ends[name] = end{now + e.Install.drawSeconds(e.rand), func(int64) {
		m := e.findMember(name)
		m.Installed, m.GaveUp = !fails, fails
		m.Running = m.Installed && m.Wanted == pool.Running
	}}
}

func (e *exactPool) startMember(m *pool.Member, now int64) {
	m.Wanted = pool.Running
	if !m.Installed {
		return
	}
	name := m.Name
	m.ResumingSince = asTime(now)
	e.countEvent(&e.resumes, now)
	if e.rand.Float64() < e.FailedResumes {
		return // it hangs, until the decider replaces it
	}
	e.ends[name] = end{now + e.resumeFrom(m.WantedDepth).drawSeconds(e.rand), func(int64) {
		r := e.findMember(name)
		r.ResumingSince, r.Running = time.Time{}, true
	}}
}

func (e *exactPool) hibernateMember(m *pool.Member, depth string, now int64) {
	if m.Running {
		e.countEvent(&e.hibernations, now)
	}
	m.WantedDepth = depth
	m.Wanted, m.Running, m.ResumingSince = pool.Hibernating, false, time.Time{}
	if m.Installed {
		delete(e.ends, m.Name)
	}
}

// bindClaim gives a cluster to a claim. Without limits a claimed cluster has no effect on the pool and is
// not followed any further.
func (e *exactPool) bindClaim(s pool.Step, now int64) {
	i := slices.IndexFunc(e.claims, func(c pool.Claim) bool { return c.Name == s.Claim })
	e.addWait(e.claims[i].Created.Unix(), now)
	held := e.held[s.Claim]
	delete(e.held, s.Claim)
	if e.MaxSize == nil && e.MaxConcurrent == nil {
		e.claims = slices.Delete(e.claims, i, i+1)
		e.removeMember(s.Cluster)
		return
	}
	e.claims[i].Cluster = s.Cluster
	e.findMember(s.Cluster).Claim = s.Claim
	claim := s.Claim
	e.ends[s.Cluster] = end{now + held, func(int64) {
		for j := range e.claims {
			if e.claims[j].Name == claim {
				e.claims[j].Deleting = true
			}
		}
	}}
}

func (e *exactPool) destroyMember(name string, now int64) {
	m := e.findMember(name)
	if e.Destroy < time.Second || m.Claim == "" && e.MaxSize == nil && e.MaxConcurrent == nil {
		e.releaseClaim(m.Claim)
		e.removeMember(name)
		return
	}
	m.Deleting = true
	claim := m.Claim
	e.ends[name] = end{now + int64(e.Destroy/time.Second), func(int64) {
		e.releaseClaim(claim)
		e.removeMember(name)
	}}
}

// releaseClaim deletes a claim whose cluster is destroyed.
func (e *exactPool) releaseClaim(claim string) {
	e.claims = slices.DeleteFunc(e.claims, func(c pool.Claim) bool { return c.Name == claim && claim != "" })
}

func (e *exactPool) removeMember(name string) {
	delete(e.ends, name)
	e.members = slices.DeleteFunc(e.members, func(m pool.Member) bool { return m.Name == name })
}
