package poolplan

import (
	"fmt"
	"time"

	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/pool"
)

// A Set explains a ClaimSet that waits for the clusters of a pool.
type Set struct {
	// Position is the place of its first claim in the queue, Ready when its clusters are expected.
	Position int        `json:"position,omitempty"`
	Ready    *time.Time `json:"ready,omitempty"`
	Message  string     `json:"message"`
}

// ExplainSet explains what a set of that name and size waits for in the queue of the pool. It returns an empty message if
// the set is not in the queue.
func (e Evaluation) ExplainSet(name string, size int) Set {
	for _, s := range e.Plan.Report.UnservableSets {
		if s.Set == name {
			return Set{Message: "the pool cannot serve it, and serves the claims behind it: " + s.Reason}
		}
	}
	for _, w := range e.Plan.Report.Queue {
		if w.Set != name {
			continue
		}
		out := Set{Position: w.Position, Message: e.describeSetWait(w, size)}
		if !w.Ready.IsZero() {
			out.Ready = &w.Ready
		}
		return out
	}
	return Set{}
}

// describeSetWait describes what a set lacks whose first claim is w.
func (e Evaluation) describeSetWait(w pool.Wait, size int) string {
	text := fmt.Sprintf("it needs %s at once", humanize.FormatCount(size, "cluster"))
	if w.Position > 1 {
		return text + ", and " + humanize.FormatCount(w.Position-1, "claim") + " must be served before it; " + e.describeQueuePosition(w.Position+size-1)
	}
	free := e.Plan.Report.Count[pool.Assignable]
	missing := size
	for _, other := range e.Plan.Report.Queue {
		if other.Set == w.Set {
			missing--
		}
	}
	if missing > 0 {
		return fmt.Sprintf("it has %d of %d clusters, and gets the next ones; %s", missing, size, e.describeQueuePosition(w.Position))
	}
	if free == 0 {
		return text + ", and is the first in the queue; " + e.describeQueuePosition(size)
	}
	return text + fmt.Sprintf(", and is the first in the queue; running clusters kept for it: %d; ", free) + e.describeComing(size-free)
}

// describeComing describes the clusters on the way, of which that many are needed.
func (e Evaluation) describeComing(needed int) string {
	coming := e.upcomingClusters()
	switch {
	case len(coming) >= needed:
		return "on the way: " + humanize.JoinFirstWords(coming)
	case e.Plan.Report.Short > 0:
		return fmt.Sprintf("on the way: %d of %d more, and no more are created: %s", len(coming), needed, e.Plan.Report.Hindrance)
	default:
		return fmt.Sprintf("on the way: %d of %d more", len(coming), needed)
	}
}

// setOf returns the set with which a claim waits; "" if it waits alone. A claim outside the queue waits with its set for
// the other claims of the set, or because the pool cannot serve the set.
func (e Evaluation) setOf(claim string) string {
	for _, c := range e.Facts.Claims {
		if c.Name == claim {
			return c.Set.Name
		}
	}
	return ""
}

// describeKept describes the running clusters that are kept for the first set in the queue; "" if there are none.
func (e Evaluation) describeKept() string {
	n, queue := e.Plan.Report.Count[pool.Assignable], e.Plan.Report.Queue
	if n == 0 || len(queue) == 0 || queue[0].Set == "" {
		return ""
	}
	return fmt.Sprintf("running clusters kept for ClaimSet %s, which is before it: %d; ", queue[0].Set, n)
}
