package simulate

import (
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// member is an unclaimed cluster of the fast simulation.
type member struct {
	phase phase
	// seen is the phase that a decision sees: its own steps change it only for the next one.
	seen phase
	// wanted is set if the cluster should run.
	wanted bool
	// until is when an install or a resume ends.
	until int64
	// id grows with age: a lower one is older.
	id int64
	// resumed and hibernated are set by a decision that starts or hibernates it.
	resumed, hibernated bool
	// reserved is set while a waiting claim will get it.
	reserved bool
}

type phase uint8

const (
	installing phase = iota
	standby
	resuming
	assignable
)

// fastPool takes the steps of pool.Decide for a pool without limits and failures and with constant
// durations. It keeps its members in the order of their age, as the decider sorts them.
type fastPool struct {
	*recorder
	resumeTakes, installTakes int64
	members                   []member
	// waiting are the arrival times of the waiting claims, oldest first.
	waiting []int64
	setting sizing.Setting
	made    int64
	// changed is set by each step.
	changed bool
}

// PlayFast plays a trace with constant durations, without limits and without failures.
func PlayFast(t Trace, p Policy, o Options, maxWait time.Duration) Result {
	f := &fastPool{recorder: newRecorder(o), resumeTakes: o.Resume.medianSeconds(), installTakes: o.Install.medianSeconds()}
	start := t.Claims[0].Arrived - int64(pace)
	f.last = start
	f.setting = p.Begin(time.Unix(start, 0).UTC())
	f.fillPool()
	playTrace(t, p, f, f.recorder)
	return f.newResult(maxWait)
}

// fillPool gives the pool all its clusters: a trace begins with a pool that exists.
func (f *fastPool) fillPool() {
	f.wanted = f.setting.Running
	for i := range f.setting.Size {
		m := member{phase: standby, id: f.nextID()}
		if i < f.setting.Running {
			m.phase, m.wanted = assignable, true
		}
		f.members = append(f.members, m)
	}
	f.takeCensus()
}

func (f *fastPool) nextID() int64 {
	f.made++
	return f.made
}

func (f *fastPool) takeCensus() {
	f.state = census{waiting: len(f.waiting)}
	for i := range f.members {
		switch f.members[i].phase {
		case installing:
			f.state.installing++
		case standby:
			f.state.hibernating++
		case resuming:
			f.state.resuming++
		case assignable:
			f.state.running++
		}
	}
}

// nextEvent returns when the next install or resume ends.
func (f *fastPool) nextEvent() int64 {
	next := never
	for i := range f.members {
		if m := &f.members[i]; m.phase == installing || m.phase == resuming {
			next = min(next, m.until)
		}
	}
	return next
}

// completeTransitions ends the installs and resumes that are due.
func (f *fastPool) completeTransitions(now int64) {
	for i := range f.members {
		m := &f.members[i]
		if m.until > now || m.phase != installing && m.phase != resuming {
			continue
		}
		m.phase = standby
		if m.wanted {
			m.phase = assignable
		}
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
	for i := range f.members {
		m := &f.members[i]
		if m.resumed {
			f.countEvent(&f.resumes, now)
		}
		if m.hibernated {
			f.countEvent(&f.hibernations, now)
		}
		m.resumed, m.hibernated = false, false
	}
}

// bindClaims gives the oldest running clusters to the oldest waiting claims.
func (f *fastPool) bindClaims(now int64) {
	if len(f.waiting) == 0 {
		return
	}
	kept := f.members[:0]
	for _, m := range f.members {
		if m.phase == assignable && len(f.waiting) > 0 {
			f.addWait(f.waiting[0], now)
			f.waiting, f.changed = f.waiting[1:], true
			continue
		}
		kept = append(kept, m)
	}
	f.members = kept
}

// setPowerStates follows the method of the same name of the decider.
func (f *fastPool) setPowerStates(now int64) {
	f.reserveForClaims()
	places := min(f.setting.Running, f.setting.Size)
	notRunning := places
	left := places
	for i := range f.members {
		m := &f.members[i]
		if m.reserved || left == 0 {
			continue
		}
		left--
		if m.phase == assignable {
			notRunning--
		}
	}
	left = places
	for i := range f.members {
		m := &f.members[i]
		switch {
		case m.reserved:
			f.startMember(m, now)
		case left > 0:
			left--
			f.startMember(m, now)
		case m.phase == resuming:
		case notRunning > 0 && m.phase == assignable:
			notRunning--
		default:
			f.hibernateMember(m)
		}
	}
}

// reserveForClaims follows the method of the same name of the decider.
func (f *fastPool) reserveForClaims() {
	left := len(f.waiting)
	for i := range f.members {
		f.members[i].reserved, f.members[i].seen = false, f.members[i].phase
	}
	for _, fits := range []func(*member) bool{
		func(m *member) bool { return m.phase != installing && m.wanted },
		func(m *member) bool { return m.phase != installing },
		func(*member) bool { return true },
	} {
		for i := range f.members {
			if m := &f.members[i]; left > 0 && !m.reserved && fits(m) {
				m.reserved = true
				left--
			}
		}
	}
}

func (f *fastPool) startMember(m *member, now int64) {
	if m.wanted {
		return
	}
	m.wanted, f.changed = true, true
	if m.phase == standby {
		m.phase, m.until, m.resumed = resuming, now+f.resumeTakes, true
	}
}

func (f *fastPool) hibernateMember(m *member) {
	if !m.wanted {
		return
	}
	m.wanted, f.changed = false, true
	if m.phase == assignable {
		m.phase, m.hibernated = standby, true
	}
}

func (f *fastPool) createMissing(now int64) {
	for range f.setting.Size + len(f.waiting) - len(f.members) {
		m := member{phase: installing, until: now + f.installTakes, id: f.nextID()}
		f.changed = true
		f.members = append(f.members, m)
		f.countEvent(&f.installs, now)
	}
}

// deleteSurplus deletes installs first, then hibernating clusters, then running ones, newest first,
// and those that are reserved for waiting claims last.
func (f *fastPool) deleteSurplus() {
	surplus := len(f.members) - f.setting.Size - len(f.waiting)
	for _, of := range [][2]phase{{installing, installing}, {standby, resuming}, {assignable, assignable}} {
		for _, reserved := range []bool{false, true} {
			for i := len(f.members) - 1; i >= 0 && surplus > 0; i-- {
				if m := f.members[i]; m.reserved == reserved && (m.seen == of[0] || m.seen == of[1]) {
					f.members = append(f.members[:i], f.members[i+1:]...)
					surplus--
					f.changed = true
				}
			}
		}
	}
}
