package pool

import (
	"slices"
	"time"
)

// Wait is what a claim that waits may expect.
type Wait struct {
	Claim string `json:"claim"`
	// Position is its place in the line; the first has 1.
	Position int `json:"position"`
	// Ready is when a cluster for it is likely to run; zero when nothing that is
	// under way leads to one, or nobody knows how long that takes. It may lie in
	// the past: then it is overdue.
	Ready time.Time `json:"ready,omitzero"`
}

// estimateQueue tells the waiting claims their places. The first gets the cluster that
// is likely to run first, and so on: those that resume, those that are being
// installed, and those that this plan starts or creates. How long each takes is
// the median of what the pool's other members took.
func (d *draft) estimateQueue() []Wait {
	if len(d.waiting) == 0 || d.Settings.Deleting {
		return nil // a pool that is being deleted serves nobody: who waits is told so, and no place
	}
	coming := d.expectedReadyTimes()
	out := make([]Wait, len(d.waiting))
	for i, c := range d.waiting {
		out[i] = Wait{Claim: c.Name, Position: i + 1}
		if i < len(coming) {
			out[i].Ready = coming[i]
		}
	}
	return out
}

// expectedReadyTimes are the times at which clusters are likely to run, soonest first.
func (d *draft) expectedReadyTimes() []time.Time {
	install, resume := d.medianDuration(func(m Member) time.Duration { return m.InstallTook }), d.medianDuration(func(m Member) time.Duration { return m.ResumeTook })
	started := map[string]bool{}
	for _, s := range (Plan{Steps: d.steps}).StepsOf(Start) {
		started[s.Cluster] = true
	}
	var out []time.Time
	add := func(since time.Time, takes time.Duration) {
		// What takes more than twice as long as usual may take for ever.
		if takes > 0 && d.Now.Before(since.Add(2*takes)) {
			out = append(out, since.Add(takes))
		}
	}
	for _, m := range d.buckets[Standby] {
		switch {
		case m.isStruggling(d.Settings, d.Now):
		case !m.ResumingSince.IsZero():
			add(m.ResumingSince, resume)
		case m.Wanted == Running || started[m.Name]:
			add(d.Now, resume)
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

// medianDuration is the median of what the members took that say so; 0 if none does.
func (d *draft) medianDuration(took func(Member) time.Duration) time.Duration {
	var all []time.Duration
	for _, m := range d.Members {
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
