package pool

import "time"

// Census counts a pool's members and claims as they are, whatever is planned.
type Census struct {
	// Members has the number of members in each phase; together they are all members.
	Members map[Phase]int
	// Given is how many members name a claim, marked and dying ones too.
	Given int
	// Stale is how many unclaimed members, dying and marked ones left out, differ
	// from the pool or do not say what they were made from.
	Stale int
	// A claim waits, is served, or is leaving: being deleted.
	Waiting, Served, Leaving int
	// LongestWait is how long the oldest of the waiting claims has waited; 0 when none does.
	LongestWait time.Duration
}

// ClaimableCount is how many members may yet be given away. Unlike status.size, and
// like Hive's metric, it leaves broken ones out.
func (c Census) ClaimableCount() int {
	return c.Members[Installing] + c.Members[Standby] + c.Members[Assignable]
}

// CountMembersAndClaims counts by the same rules that Decide plans by.
func (s Snapshot) CountMembersAndClaims() Census {
	d := newDraft(s)
	c := Census{Members: make(map[Phase]int, len(d.buckets)), Waiting: len(d.waiting)}
	var marks Report
	for p, members := range d.buckets {
		c.Members[p] = len(members)
		for _, m := range members {
			marks.recordStaleness(m, p, s.Settings)
			if m.Claim != "" {
				c.Given++
			}
		}
	}
	c.Stale = len(marks.Stale) + len(marks.Unversioned)
	for _, claim := range s.Claims {
		if claim.Deleting {
			c.Leaving++
		}
	}
	c.Served = len(s.Claims) - c.Waiting - c.Leaving
	if c.Waiting > 0 {
		c.LongestWait = max(0, s.Now.Sub(d.waiting[0].Created))
	}
	return c
}

// ResolvedMembers are the members as Decide has them: one that a claim names has that claim, although
// it does not know of it yet.
func (s Snapshot) ResolvedMembers() []Member {
	d := newDraft(s)
	out := make([]Member, len(d.all))
	for i, m := range d.all {
		out[i] = *m
	}
	return out
}

// MemberPhases is the phase of each member, by name, as Decide has it.
func (s Snapshot) MemberPhases() map[string]Phase {
	out := make(map[string]Phase, len(s.Members))
	for _, m := range s.ResolvedMembers() {
		out[m.Name] = m.Phase(s.Settings, s.Now)
	}
	return out
}

// PowerCondition is what power an installed member has, in one word of a closed list.
type PowerCondition string

// What members' power may be: usable, on the way there, told to hibernate, or failing
// to do either.
const (
	PowerUp       PowerCondition = "running"
	PowerStarting PowerCondition = "starting"
	PowerDown     PowerCondition = "hibernating"
	PowerFailing  PowerCondition = "failing"
)

// CountInstalledByPower counts the installed members by their power, claimed ones too. Dying members
// are left out, for nobody starts or stops them any more, and unreadable ones.
func (s Snapshot) CountInstalledByPower() map[PowerCondition]int {
	out := map[PowerCondition]int{}
	for _, m := range s.Members {
		if m.Installed && !m.Deleting && m.Unreadable == "" {
			out[m.powerCondition()]++
		}
	}
	return out
}

func (m Member) powerCondition() PowerCondition {
	switch {
	case m.Running:
		return PowerUp
	case m.PowerFailed || m.MachinesFailed:
		return PowerFailing
	case m.Wanted == Hibernating:
		return PowerDown
	default:
		return PowerStarting
	}
}
