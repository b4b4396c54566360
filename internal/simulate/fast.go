package simulate

import (
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// member is an unclaimed cluster of the fast simulation.
type member struct {
	phase phase
	// id grows with age: a lower one is older.
	id int64
	// reserved is the number of the pass in which a waiting claim was promised the cluster.
	reserved int64
	// resumed and hibernated are set by a pass that starts or hibernates it.
	resumed, hibernated bool
	// older and newer are its neighbors in the order of age.
	older, newer int32
}

type phase uint8

const (
	// installing will hibernate when it is done, installingWanted will run.
	installing phase = iota
	installingWanted
	standby
	resuming
	assignable
	// deleted is a place for another member.
	deleted
	phases
)

// isWanted reports whether a cluster should run.
func (p phase) isWanted() bool { return p == installingWanted || p == resuming || p == assignable }

func (p phase) isInstalling() bool { return p == installing || p == installingWanted }

// transition is the end of an install or a resume.
type transition struct {
	until, id int64
	index     int32
}

// fastPool takes the steps of pool.Decide for a pool without limits and failures and with constant
// durations. It keeps its members in the order of their age, as the decider sorts them, and visits only
// those that can change: the oldest, which run.
type fastPool struct {
	*recorder
	resumeTakes, installTakes int64
	// members begins with an unused one, whose neighbors are the newest and the oldest.
	members []member
	free    []int32
	counts  [phases]int
	// installs and resumes end in the order in which they began.
	installEnds, resumeEnds queue
	// waiting are the arrival times of the waiting claims, oldest first.
	waiting []int64
	setting sizing.Setting
	made    int64
	pass    int64
	// touched are the members that the current pass has started or hibernated.
	touched []int32
	// changed is set by each step.
	changed bool
}

// queue is transitions, the next one first.
type queue struct {
	all   []transition
	first int
}

func (q *queue) add(t transition) {
	if q.first > len(q.all)/2 {
		q.all = append(q.all[:0], q.all[q.first:]...)
		q.first = 0
	}
	q.all = append(q.all, t)
}

// ReplayFast replays a trace with constant durations, without limits and without failures.
func ReplayFast(t Trace, p Policy, o Options, maxWait time.Duration) Result {
	f := &fastPool{
		recorder: newRecorder(o, p), resumeTakes: o.Resume.medianSeconds(), installTakes: o.Install.medianSeconds(),
		members: make([]member, 1),
	}
	start := t.Claims[0].Arrived - int64(pace)
	f.last = start
	f.setting = p.Begin(time.Unix(start, 0).UTC())
	f.fillPool()
	replayTrace(t, p, f, f.recorder)
	return f.newResult(maxWait)
}

// fillPool gives the pool all its clusters: a trace begins with a pool that exists.
func (f *fastPool) fillPool() {
	f.wanted = f.setting.Running
	for i := range f.setting.Size {
		if i < f.setting.Running {
			f.addMember(assignable)
		} else {
			f.addMember(standby)
		}
	}
	f.takeCensus()
}

// addMember adds the newest member.
func (f *fastPool) addMember(p phase) int32 {
	i := int32(len(f.members)) // a pool has no two billion clusters
	if n := len(f.free); n > 0 {
		i, f.free = f.free[n-1], f.free[:n-1]
	} else {
		f.members = append(f.members, member{})
	}
	f.made++
	newest := f.members[0].older
	f.members[i] = member{phase: p, id: f.made, older: newest}
	f.members[newest].newer, f.members[0].older = i, i
	f.counts[p]++
	return i
}

func (f *fastPool) removeMember(i int32) {
	m := &f.members[i]
	f.members[m.older].newer, f.members[m.newer].older = m.newer, m.older
	f.setPhase(m, deleted)
	f.free = append(f.free, i)
	f.changed = true
}

func (f *fastPool) setPhase(m *member, p phase) {
	f.counts[m.phase]--
	m.phase = p
	f.counts[p]++
}

// size returns the number of members.
func (f *fastPool) size() int { return len(f.members) - 1 - len(f.free) }

func (f *fastPool) takeCensus() {
	f.state = census{
		waiting: len(f.waiting), installing: f.counts[installing] + f.counts[installingWanted], hibernating: f.counts[standby],
		resuming: f.counts[resuming], running: f.counts[assignable],
	}
}

// nextEvent returns when the next install or resume ends.
func (f *fastPool) nextEvent() int64 {
	return min(f.nextOf(&f.installEnds, phase.isInstalling), f.nextOf(&f.resumeEnds, isResuming))
}

func isResuming(p phase) bool { return p == resuming }

// nextOf returns when the next transition of a queue ends. It drops those that will not, because their
// cluster was deleted.
func (f *fastPool) nextOf(q *queue, goesOn func(phase) bool) int64 {
	for ; q.first < len(q.all); q.first++ {
		t := q.all[q.first]
		if m := &f.members[t.index]; m.id == t.id && goesOn(m.phase) {
			return t.until
		}
	}
	return never
}

// completeTransitions ends the installs and resumes that are due.
func (f *fastPool) completeTransitions(now int64) {
	for f.nextOf(&f.installEnds, phase.isInstalling) <= now {
		m := &f.members[f.installEnds.all[f.installEnds.first].index]
		if m.phase == installingWanted {
			f.setPhase(m, assignable)
		} else {
			f.setPhase(m, standby)
		}
	}
	for f.nextOf(&f.resumeEnds, isResuming) <= now {
		f.setPhase(&f.members[f.resumeEnds.all[f.resumeEnds.first].index], assignable)
	}
	f.decideOnce(now)
}

func (f *fastPool) acceptClaim(c Claim) bool {
	f.waiting = append(f.waiting, c.Arrived)
	before := len(f.waiting)
	f.decideOnce(c.Arrived)
	return len(f.waiting) < before
}

func (f *fastPool) applySetting(s sizing.Setting, now int64) {
	if s == f.setting {
		return
	}
	f.setting, f.wanted = s, s.Running
	f.decideOnce(now)
}

func (f *fastPool) waitingClaims() int { return len(f.waiting) }

// decideOnce takes the steps of the decider until it plans none.
func (f *fastPool) decideOnce(now int64) {
	for f.changed = true; f.changed; {
		f.changed = false
		f.pass++
		f.bindClaims(now)
		f.setPowerStates(now)
		f.createMissing(now)
		f.deleteSurplus()
		f.countChanges(now)
	}
	f.takeCensus()
}

// countChanges counts the resumes and hibernations that were decided: not those of clusters that the
// same decision deletes.
func (f *fastPool) countChanges(now int64) {
	for _, i := range f.touched {
		m := &f.members[i]
		if m.phase == deleted {
			continue
		}
		if m.resumed {
			f.countEvent(&f.resumes, now)
		}
		if m.hibernated {
			f.countEvent(&f.hibernations, now)
		}
		m.resumed, m.hibernated = false, false
	}
	f.touched = f.touched[:0]
}

// bindClaims gives the oldest running clusters to the oldest waiting claims.
func (f *fastPool) bindClaims(now int64) {
	bound := 0
	for i := f.members[0].newer; i != 0 && bound < len(f.waiting) && f.counts[assignable] > 0; {
		m := &f.members[i]
		next := m.newer
		if m.phase == assignable {
			f.addWait(f.waiting[bound], now)
			f.removeMember(i)
			bound++
		}
		i = next
	}
	f.waiting = f.waiting[bound:]
}

// setPowerStates follows the method of the same name of the decider. It visits the members from the oldest on, until
// all that should run have been visited.
func (f *fastPool) setPowerStates(now int64) {
	f.reserveForClaims()
	places := min(f.setting.Running, f.setting.Size)
	notRunning, left, started := places, places, 0
	// beyond is the oldest member beyond the places.
	beyond := f.members[0].newer
	for beyond != 0 && left > 0 {
		m := &f.members[beyond]
		if m.reserved != f.pass {
			left--
			if m.phase == assignable {
				notRunning--
			}
		}
		f.startMember(beyond, now)
		started++
		beyond = m.newer
	}
	f.hibernateBeyond(beyond, started, notRunning, now)
}

// hibernateBeyond hibernates the members from one on, without those that resume, that are reserved, or that run
// instead of older ones that do not run yet. Started is the number of the older ones, all of which are wanted.
func (f *fastPool) hibernateBeyond(beyond int32, started, notRunning int, now int64) {
	// The members that still must be visited: those that are wanted, and those that are reserved.
	wanted := f.counts[installingWanted] + f.counts[resuming] + f.counts[assignable] - started
	reserved := len(f.waiting)
	for i := beyond; i != 0 && (wanted > 0 || reserved > 0); i = f.members[i].newer {
		m := &f.members[i]
		if m.phase.isWanted() {
			wanted--
		}
		switch {
		case m.reserved == f.pass:
			reserved--
			f.startMember(i, now)
		case m.phase == resuming:
		case notRunning > 0 && m.phase == assignable:
			notRunning--
		default:
			f.hibernateMember(i)
		}
	}
}

// reserveForClaims follows the method of the same name of the decider.
func (f *fastPool) reserveForClaims() {
	left := len(f.waiting)
	left = f.reserve(left, f.counts[resuming]+f.counts[assignable], func(p phase) bool { return p == resuming || p == assignable })
	left = f.reserve(left, f.counts[standby], func(p phase) bool { return p == standby })
	f.reserve(left, f.counts[installing]+f.counts[installingWanted], phase.isInstalling)
}

// reserve reserves the oldest members of some phases, of which there are so many, and returns how many claims
// are left.
func (f *fastPool) reserve(claims, members int, fits func(phase) bool) int {
	for i := f.members[0].newer; i != 0 && claims > 0 && members > 0; i = f.members[i].newer {
		if m := &f.members[i]; fits(m.phase) {
			m.reserved = f.pass
			claims--
			members--
		}
	}
	return claims
}

func (f *fastPool) startMember(i int32, now int64) {
	switch m := &f.members[i]; m.phase {
	case installing:
		f.setPhase(m, installingWanted)
		f.changed = true
	case standby:
		f.setPhase(m, resuming)
		m.resumed = true
		f.resumeEnds.add(transition{now + f.resumeTakes, m.id, i})
		f.touched, f.changed = append(f.touched, i), true
	}
}

func (f *fastPool) hibernateMember(i int32) {
	switch m := &f.members[i]; m.phase {
	case installingWanted:
		f.setPhase(m, installing)
		f.changed = true
	case assignable:
		f.setPhase(m, standby)
		m.hibernated = true
		f.touched, f.changed = append(f.touched, i), true
	}
}

func (f *fastPool) createMissing(now int64) {
	for range f.setting.Size + len(f.waiting) - f.size() {
		i := f.addMember(installing)
		f.installEnds.add(transition{now + f.installTakes, f.made, i})
		f.changed = true
		f.countEvent(&f.installs, now)
	}
}

// deleteSurplus deletes installs first, then hibernating clusters, then running ones, newest first,
// and those that are reserved for waiting claims last. A cluster that this pass has hibernated counts as
// running: the decider sees its own steps only when it decides again.
func (f *fastPool) deleteSurplus() {
	surplus := f.size() - f.setting.Size - len(f.waiting)
	if surplus <= 0 {
		return
	}
	isRunning := func(m *member) bool { return m.phase == assignable || m.hibernated }
	for _, fits := range []func(*member) bool{
		func(m *member) bool { return m.phase.isInstalling() },
		func(m *member) bool { return !m.phase.isInstalling() && !isRunning(m) },
		isRunning,
	} {
		for _, reserved := range []bool{false, true} {
			for i := f.members[0].older; i != 0 && surplus > 0; {
				m := &f.members[i]
				next := m.older
				if fits(m) && (m.reserved == f.pass) == reserved {
					f.removeMember(i)
					surplus--
				}
				i = next
			}
		}
	}
}
