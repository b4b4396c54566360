package pool

import (
	"fmt"
	"slices"
	"time"
)

// unusableReasons explain the causes in Snapshot.Unusable to people.
var unusableReasons = map[Cause]string{
	CustomizationExhausted: "no customization of the inventory is left for it",
	NamespaceForeign:       "its namespace was not created for this pool",
	SecretsOutdated:        "its Secrets were created before the pool, or a Secret that it refers to, was edited",
}

// dropUnusableNames plans to drop the recorded names under which no cluster can be created. They
// still count as pending in this plan: a name that turns out to be in use is kept.
func (d *draft) dropUnusableNames() {
	for _, name := range d.Pending {
		if cause := d.Unusable[name]; cause != "" {
			d.addStep(DropName, name, cause, "%s", unusableReasons[cause])
		}
	}
}

// dropDelay returns the delay before the pass that replaces dropped names, which no event triggers;
// 0 if none is dropped.
func (d *draft) dropDelay() time.Duration {
	if d.countPlanned(DropName) == 0 {
		return 0
	}
	return nextBatchDelay
}

// completeCreations plans the creation of the clusters whose names were recorded by an earlier
// pass. They are within the limits since then. In a pool with an inventory, a name without a
// customization waits for one.
func (d *draft) completeCreations() {
	if d.Settings.Blocked != "" {
		return
	}
	for _, name := range d.Pending {
		if d.Unusable[name] != "" || d.Settings.Inventory && d.Reserved[name] == "" {
			continue
		}
		d.steps = append(d.steps, Step{
			Verb: CompleteCreation, Cluster: name, Customization: d.Reserved[name], Cause: NameRecorded,
			Reason: "its name is recorded, and the cluster does not exist yet",
		})
	}
}

// createMissing plans the creation of the clusters that the pool lacks, within the limits.
func (d *draft) createMissing() {
	short := d.wantedCount() - d.existingCount()
	if short <= 0 || d.Settings.Blocked != "" {
		return
	}
	n := max(0, min(short, d.room, d.budget, maxCreationsPerPlan))
	cause, reason := d.creationReason()
	d.steps = slices.Grow(d.steps, n)
	for i := range n {
		st := Step{Verb: Create, Cause: cause, Reason: reason}
		if d.Settings.Inventory {
			st.Customization = d.Settings.Free[i]
		}
		d.steps = append(d.steps, st)
	}
	d.room -= n
	d.budget -= n
}

// maxCreationsPerPlan is the maximum number of creations in a plan: spec.size has no upper bound,
// and the plan must fit into memory. The next plan continues.
const maxCreationsPerPlan = 10_000

func (d *draft) creationReason() (cause Cause, reason string) {
	if n := len(d.waiting); n > 0 {
		return ClaimWaiting, fmt.Sprintf("size is %d, %s waiting", d.Settings.Size, formatCount(n, "claim"))
	}
	return BelowSize, fmt.Sprintf("size is %d", d.Settings.Size)
}
