package pool

import (
	"fmt"
	"slices"
	"strings"
)

func (d *draft) report() Report {
	r := Report{Count: map[Phase]int{}, Waiting: len(d.waiting)}
	for p, members := range d.buckets {
		r.Count[p] = len(members)
		for _, m := range members {
			r.mark(m, p, d.Settings)
			if d.Settings.Deleting {
				r.Left = append(r.Left, m.Name)
			}
		}
	}
	slices.Sort(r.Stale)
	slices.Sort(r.Unversioned)
	slices.Sort(r.Left)
	// An inventory that is used up is no news to a pool that wants no more of it.
	r.Full = d.room <= 0 && (d.by != ByInventory || d.short() > 0)
	if r.Full {
		r.NoRoom, r.By = d.full, d.by
	}
	if short := d.short(); short > 0 && !d.Settings.Deleting {
		r.Short, r.Hindrance = short, d.hindrance()
	}
	r.Queue = d.queue()
	r.Words = d.words(r)
	return r
}

func (r *Report) mark(m *Member, p Phase, s Settings) {
	switch p {
	case Installing, Standby, Assignable, Broken:
	default:
		return
	}
	switch {
	case m.Version == "":
		r.Unversioned = append(r.Unversioned, m.Name)
	case m.stale(s):
		r.Stale = append(r.Stale, m.Name)
	}
}

// words tells what the pool is about, what it does about it, and what hinders it.
func (d *draft) words(r Report) string {
	parts := []string{d.doing()}
	if n := len(d.waiting); n > 0 {
		parts = append(parts, count(n, "claim")+" waiting")
	}
	if d.Settings.RunningCount > d.Settings.Size {
		parts = append(parts, fmt.Sprintf("runningCount %d is above size: no more than %d will run", d.Settings.RunningCount, d.Settings.Size))
	}
	if r.Short > 0 {
		parts = append(parts, fmt.Sprintf("%d short: %s", r.Short, r.Hindrance))
	}
	return strings.Join(append(parts, d.unreadable()...), "; ")
}

// unreadable tells of the first member that could not be read, and how many more there are.
func (d *draft) unreadable() []string {
	var first *Member
	more := -1
	for _, m := range d.all {
		if m.Unreadable == "" {
			continue
		}
		if first == nil {
			first = m
		}
		more++
	}
	if first == nil {
		return nil
	}
	words := fmt.Sprintf("ClusterDeployment %s is left alone until it can be read: %s", first.Name, first.Unreadable)
	if more > 0 {
		words += fmt.Sprintf("; so are %d more", more)
	}
	return []string{words}
}

// short is how many clusters are wanted beyond those that there are and that are
// about to be created.
func (d *draft) short() int { return d.demand() - d.have() - d.planned(Create) }

func (d *draft) hindrance() string {
	switch {
	case d.Settings.Blocked != "":
		return d.Settings.Blocked
	case d.room <= 0:
		return d.full
	case d.planned(Create) == atOnce:
		return fmt.Sprintf("%d are created at a time", atOnce)
	default:
		return fmt.Sprintf("maxConcurrent is %d", limit(d.Settings.MaxConcurrent))
	}
}

func (d *draft) doing() string {
	if d.Settings.Deleting {
		return "deleting the pool"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{len(d.buckets[Installing]) + len(d.Pending) + d.planned(Create), "installing"},
		{d.planned(Delete) + len(d.buckets[Deleting]), "deleting"},
		{d.resuming(), "resuming"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.what, p.n))
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case d.short() > 0:
		return "held up"
	default:
		return "settled"
	}
}

func (d *draft) resuming() int {
	n := d.planned(Start)
	for _, m := range d.buckets[Standby] {
		if m.Wanted == Running {
			n++
		}
	}
	return n
}

func (d *draft) planned(v Verb) int { return Plan{Steps: d.steps}.Count(v) }
