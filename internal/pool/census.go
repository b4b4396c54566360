package pool

import (
	"slices"
	"time"
)

// A Census counts a pool's members and claims as they are, regardless of the plan.
type Census struct {
	// Members is the number of members in each phase; the sum is the number of all members.
	Members map[Phase]int
	// Given is the number of members that name a claim, including those marked or being deleted.
	Given int
	// Stale is the number of unclaimed members, without those marked or being deleted, that differ
	// from the pool or do not record what they were made from.
	Stale int
	// Waiting, Held, Served and Leaving count the claims: a claim waits, is held by a ClaimPolicy or with its
	// ClaimSet, is served, or is being deleted.
	Waiting, Held, Served, Leaving int
	// LongestWait is how long the oldest waiting claim has waited; 0 if none waits.
	LongestWait time.Duration
}

// ClaimableCount returns the number of members that a claim may still get. Unlike status.size, and
// like Hive's metric, it excludes broken members.
func (c Census) ClaimableCount() int {
	return c.Members[Installing] + c.Members[Standby] + c.Members[Assignable]
}

// CountMembersAndClaims counts by the same rules as Decide.
func (s Snapshot) CountMembersAndClaims() Census {
	d := newDraft(s)
	c := Census{Members: make(map[Phase]int, len(d.buckets)), Waiting: len(d.waiting)}
	var marks Report
	for p, members := range d.buckets {
		c.Members[p] = len(members)
		for _, m := range members {
			marks.recordStaleness(m, p, &s.Settings)
			if m.Claim != "" {
				c.Given++
			}
		}
	}
	c.Stale = len(marks.Stale) + len(marks.Unversioned)
	for _, claim := range s.Claims {
		switch {
		case claim.Deleting:
			c.Leaving++
		case claim.Cluster == "" && (claim.Held || d.isOutsideQueue(claim)):
			c.Held++
		}
	}
	c.Served = len(s.Claims) - c.Waiting - c.Held - c.Leaving
	if c.Waiting > 0 {
		c.LongestWait = max(0, s.Now.Sub(slices.MinFunc(d.waiting, compareClaimAge).Created))
	}
	return c
}

// ResolvedMembers returns the members as Decide sees them: a member that a claim names has that
// claim, even if it does not record the claim yet.
func (s Snapshot) ResolvedMembers() []Member {
	d := newDraft(s)
	out := make([]Member, len(d.all))
	for i, m := range d.all {
		out[i] = *m
	}
	return out
}

// MemberPhases returns the phase of each member, by name, as Decide sees it.
func (s Snapshot) MemberPhases() map[string]Phase {
	d := newDraft(s)
	out := make(map[string]Phase, len(d.all))
	for _, m := range d.all {
		out[m.Name] = m.Phase(&s.Settings, s.Now)
	}
	return out
}

// A PowerCondition is the power of an installed member, from a closed list.
type PowerCondition string

// The power conditions: usable, starting, hibernating by spec, or failing to start or stop.
const (
	PowerUp       PowerCondition = "running"
	PowerStarting PowerCondition = "starting"
	PowerDown     PowerCondition = "hibernating"
	PowerFailing  PowerCondition = "failing"
)

// CountInstalledByPower counts the installed members by their power, including claimed ones. It
// excludes members that are being deleted, since nothing starts or stops them any more, and
// unreadable ones.
func (s Snapshot) CountInstalledByPower() map[PowerCondition]int {
	out := map[PowerCondition]int{}
	for _, m := range s.listByAge() {
		if m.Installed && !m.Deleting && m.Unreadable == "" {
			out[m.powerCondition()]++
		}
	}
	return out
}

func (m *Member) powerCondition() PowerCondition {
	switch {
	case m.Running || m.awaitsBootstrap():
		return PowerUp
	case m.PowerFailed || m.MachinesFailed:
		return PowerFailing
	case m.Wanted == Hibernating:
		return PowerDown
	default:
		return PowerStarting
	}
}
