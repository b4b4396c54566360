package pool

import (
	"fmt"
	"slices"
)

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
		return ClaimWaiting, fmt.Sprintf("size is %d, %s wait", d.Settings.Size, formatCount(n, "claim"))
	}
	return BelowSize, fmt.Sprintf("size is %d", d.Settings.Size)
}
