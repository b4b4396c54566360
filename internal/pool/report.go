package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func (d *draft) report() Report {
	r := Report{Count: map[Phase]int{}, Waiting: len(d.waiting), InDemand: d.inDemand()}
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
	for _, m := range d.orphans {
		if r.Orphans == nil {
			r.Orphans = map[string]string{}
		}
		r.Orphans[m.Name] = m.Claim
	}
	r.Queue = d.queue()
	r.Refused, r.Busy, r.Failing = slices.Sorted(slices.Values(d.refused)), d.busy(), d.failing()
	r.Progress = d.progress(r)
	r.Words = d.words(r)
	if r.Progress == Held {
		r.Blocked = strings.Join(d.obstacles(r), "; ")
	}
	return r
}

// failing are the deletions that do not get on, with the reason.
func (d *draft) failing() map[string]string {
	var out map[string]string
	for _, m := range d.buckets[Deleting] {
		if m.DeletionError == "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[m.Name] = m.DeletionError
	}
	return out
}

// busy names what takes up maxConcurrent; "" when it is not used up.
func (d *draft) busy() string {
	if d.frozen() || limit(d.Settings.MaxConcurrent)-d.underWay > 0 {
		return ""
	}
	var installing, deleting []string
	for _, m := range d.all {
		switch {
		case m.Deleting || d.doomed[m.Name]:
			deleting = append(deleting, m.Name)
		case m.beingInstalled():
			installing = append(installing, m.Name)
		}
	}
	installing = append(installing, d.Pending...)
	var parts []string
	if len(installing) > 0 {
		parts = append(parts, "being installed: "+few(installing))
	}
	if len(deleting) > 0 {
		parts = append(parts, "being deleted: "+few(deleting))
	}
	return strings.Join(parts, "; ")
}

// few is the first three of names, and how many more there are.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// progress is whether anything is under way that ends by itself, and, if nothing is,
// whether the pool is as it is asked to be.
func (d *draft) progress(r Report) Progress {
	underWay := d.planned(Create) + d.planned(Delete) + d.hibernating() + d.resuming() - len(d.hanging()) + len(d.buckets[Deleting]) - len(r.Failing)
	if d.Settings.Blocked == "" && !d.Settings.Deleting {
		underWay += len(d.Pending)
	}
	for _, m := range d.buckets[Installing] {
		if m.RequirementsUnmet == "" && m.Paused == "" {
			underWay++
		}
	}
	switch {
	case underWay > 0:
		return Advancing
	case len(d.obstacles(r)) > 0:
		return Held
	case d.Settings.Deleting:
		return Advancing
	default:
		return Settled
	}
}

// obstacles are what the pool waits for, and who can end it.
func (d *draft) obstacles(r Report) []string {
	var out []string
	if held := d.inUse(); len(held) > 0 {
		out = append(out, "claims have "+few(held)+": release them")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Orphans)) {
		out = append(out, fmt.Sprintf("%s is deleted ten minutes after its claim %s was missed: create the claim again to keep it", name, r.Orphans[name]))
	}
	if r.Short > 0 {
		out = append(out, fmt.Sprintf("%d short: %s", r.Short, r.Hindrance))
	}
	out = append(out, d.unmet()...)
	if n := len(d.Pending); n > 0 && d.Settings.Blocked != "" && r.Short == 0 && !d.Settings.Deleting {
		out = append(out, fmt.Sprintf("%d to be created: %s", n, d.Settings.Blocked))
	}
	out = append(out, d.pauses()...)
	if n := len(r.Refused); n > 0 {
		out = append(out, fmt.Sprintf("to be deleted: %s: %s", few(r.Refused), d.concurrency()))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Failing)) {
		out = append(out, fmt.Sprintf("the deletion of %s does not get on: %s", name, strings.TrimRight(r.Failing[name], ".")))
		break // one is told, the others are in DeletionPossible and in the clusters' own conditions
	}
	if hanging := d.hanging(); len(hanging) > 0 {
		out = append(out, fmt.Sprintf("%s does not come up: delete it, or set spec.powerstateTransitionToRunningTimeout to have such clusters replaced", few(hanging)))
	}
	if stale := len(r.Stale) + len(r.Unversioned); stale > 0 && d.Settings.Blocked != "" && r.Short == 0 {
		out = append(out, fmt.Sprintf("%d stale: %s", stale, d.Settings.Blocked))
	}
	return append(out, d.unreadable()...)
}

// pauses says which clusters users have paused, and how to end that.
func (d *draft) pauses() []string {
	var out []string
	for _, annotation := range []string{hivev1.AnnotationReconcilePause, hivev1.AnnotationPowerPause} {
		if paused := d.paused(annotation); len(paused) > 0 {
			out = append(out, fmt.Sprintf("%s is paused: remove its annotation %s", few(paused), annotation))
		}
	}
	return out
}

// inUse names the clusters that keep a pool from going, since claims have them.
func (d *draft) inUse() []string {
	var out []string
	if !d.Settings.Deleting {
		return nil
	}
	for _, m := range d.buckets[Claimed] {
		if c, exists := d.claims[m.Claim]; exists && !c.Deleting && !d.doomed[m.Name] {
			out = append(out, m.Name)
		}
	}
	return out
}

// hanging names the members that have tried to come up for long, and will try for ever.
func (d *draft) hanging() []string {
	var out []string
	for _, m := range d.buckets[Standby] {
		if d.Settings.ResumeTimeout == 0 && m.Paused == "" && m.comingUp() && !m.MachinesFailed && m.struggles(d.Settings, d.Now) && !d.doomed[m.Name] {
			out = append(out, m.Name)
		}
	}
	return out
}

// paused names the members that would be installed or resumed, were they not paused by
// that annotation.
func (d *draft) paused(annotation string) []string {
	var out []string
	for _, m := range d.unclaimed(Installing, Standby) {
		if m.Paused == annotation && !d.doomed[m.Name] && (!m.Installed || m.Wanted == Running) {
			out = append(out, m.Name)
		}
	}
	return out
}

// unmet tells of the installs that cannot begin.
func (d *draft) unmet() []string {
	var stuck []*Member
	for _, m := range d.buckets[Installing] {
		if m.RequirementsUnmet != "" && m.Paused == "" && !d.doomed[m.Name] {
			stuck = append(stuck, m)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s cannot begin: %s: %s", count(len(stuck), "install"), stuck[0].Name, strings.TrimRight(stuck[0].RequirementsUnmet, "."))}
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
	parts := []string{d.doing(r)}
	if n := len(d.waiting); n > 0 {
		parts = append(parts, count(n, "claim")+" waiting")
	}
	if d.Settings.RunningCount > d.Settings.Size {
		parts = append(parts, fmt.Sprintf("runningCount %d is above size: no more than %d will run", d.Settings.RunningCount, d.Settings.Size))
	}
	return strings.Join(append(parts, d.obstacles(r)...), "; ")
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
		return d.concurrency()
	}
}

// concurrency says what maxConcurrent is, and what takes it up.
func (d *draft) concurrency() string {
	if d.frozen() {
		return "maxConcurrent is 0: raise it"
	}
	words := fmt.Sprintf("maxConcurrent is %d", limit(d.Settings.MaxConcurrent))
	if busy := d.busy(); busy != "" {
		words += " (" + busy + ")"
	}
	return words
}

func (d *draft) doing(r Report) string {
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
		{d.hibernating(), "hibernating"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.what, p.n))
		}
	}
	switch {
	case r.Progress == Held:
		return "held up"
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	default:
		return "settled"
	}
}

// hibernating is how many installed members this plan puts to sleep.
func (d *draft) hibernating() int { return d.plannedOfInstalled(Sleep) }

// resuming is how many installed members come up, or are told to by this plan.
func (d *draft) resuming() int {
	n := d.plannedOfInstalled(Start)
	for _, m := range d.buckets[Standby] {
		if m.Wanted == Running && m.Paused == "" {
			n++
		}
	}
	return n
}

func (d *draft) plannedOfInstalled(v Verb) int {
	installing := map[string]bool{}
	for _, m := range d.buckets[Installing] {
		installing[m.Name] = true
	}
	n := 0
	for _, s := range d.steps {
		if s.Verb == v && !installing[s.Cluster] {
			n++
		}
	}
	return n
}

func (d *draft) planned(v Verb) int { return Plan{Steps: d.steps}.Count(v) }
