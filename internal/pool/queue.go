package pool

import (
	"cmp"
	"slices"
	"time"
)

// A Wait is what a waiting claim can expect.
type Wait struct {
	Claim string `json:"claim"`
	// Position is its place in the queue; the first has 1.
	Position int `json:"position"`
	// Priority is the priority in effect; 0 if the claim has none.
	Priority int `json:"priority,omitempty"`
	// Set names the ClaimSet with which it is served; empty if it belongs to none.
	Set string `json:"set,omitempty"`
	// Ready is when a cluster for it is likely to run; zero if nothing in progress leads to one, or
	// if its duration is unknown. A time in the past means that the cluster is overdue.
	Ready time.Time `json:"ready,omitzero"`
}

// estimateWaits returns the positions of the waiting claims. The first claim gets the cluster that
// is likely to run first, and so on, and a set waits for the last of its clusters: clusters that resume, that are being installed, or that this
// plan starts or creates. Each is estimated to take the median of what the pool's other members
// took.
func (d *draft) estimateWaits() []Wait {
	if len(d.waiting) == 0 || d.Settings.Deleting {
		return nil // a pool that is being deleted serves no claims: their condition says so, and they get no position
	}
	coming := d.expectedReadyTimes()
	out := make([]Wait, len(d.waiting))
	for i := 0; i < len(d.waiting); {
		together := d.servedTogether(d.waiting[i:])
		var ready time.Time
		if last := i + together - 1; last < len(coming) {
			ready = coming[last]
		}
		for range together {
			c := d.waiting[i]
			out[i] = Wait{Claim: c.Name, Position: i + 1, Priority: c.Priority, Set: c.Set.Name, Ready: ready}
			i++
		}
	}
	return out
}

// expectedReadyTimes returns the times at which clusters are likely to run, soonest first.
func (d *draft) expectedReadyTimes() []time.Time {
	install := d.medianDuration(func(m *Member) time.Duration { return m.InstallTook })
	started := map[string]bool{}
	for _, s := range (Plan{Steps: d.steps}).StepsOf(Start) {
		started[s.Cluster] = true
	}
	var out []time.Time
	add := func(since time.Time, takes time.Duration) {
		// A cluster that takes more than twice the usual time may never run.
		if takes > 0 && d.Now.Before(since.Add(2*takes)) {
			out = append(out, since.Add(takes))
		}
	}
	for range d.buckets[Assignable] { // kept for a set
		out = append(out, d.Now)
	}
	for _, m := range d.buckets[Standby] {
		switch {
		case m.isStruggling(&d.Settings, d.Now), m.awaitsBootstrap(): // nobody knows when a step is done, or a gate passes
		case !m.ResumingSince.IsZero():
			add(m.ResumingSince, d.medianResume(m.ResumedFrom))
		case m.Wanted == Running || started[m.Name]:
			add(d.Now, d.medianResume(m.wakeDepth()))
		}
	}
	for _, m := range d.buckets[Installing] {
		if !m.Failing && m.Paused == "" {
			add(m.Created, install)
		}
	}
	if d.Settings.Blocked == "" {
		for range len(d.Pending) + d.countPlanned(Create) {
			add(d.Now, install)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// medianResume returns the median of the resumes from a depth of sleep; if none is known, that of all resumes.
func (d *draft) medianResume(depth string) time.Duration {
	own := d.medianDuration(func(m *Member) time.Duration {
		if rankDepth(m.ResumedFrom) != rankDepth(depth) {
			return 0
		}
		return m.ResumeTook
	})
	return cmp.Or(own, d.medianDuration(func(m *Member) time.Duration { return m.ResumeTook }))
}

// medianDuration returns the median over the members with a known duration; 0 if there are none.
func (d *draft) medianDuration(took func(*Member) time.Duration) time.Duration {
	var all []time.Duration
	for _, m := range d.all {
		if t := took(m); t > 0 {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
