package poolforecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// unservedClaims returns the claims that have no usable cluster: first the waiting ones in queue
// order, then the others by name.
func (f Forecast) unservedClaims() []*hivev1.ClusterClaim {
	var out []*hivev1.ClusterClaim
	waiting := map[string]bool{}
	for _, w := range f.Plan.Report.Queue {
		out, waiting[w.Claim] = append(out, f.Claims[w.Claim]), true
	}
	for _, name := range slices.Sorted(maps.Keys(f.Claims)) {
		if c := f.Claims[name]; !waiting[name] && (c.DeletionTimestamp != nil || !clusterstate.IsClaimUsable(c)) {
			out = append(out, c)
		}
	}
	return out
}

// ExplainClaim explains what a claim waits for, and until when.
func (f Forecast) ExplainClaim(c *hivev1.ClusterClaim, formatCommand remedy.CommandFormatter) Claim {
	v := Claim{Name: c.Name, State: clusterstate.OfClaim(c), Created: c.CreationTimestamp.Time, Cluster: c.Spec.Namespace}
	for _, w := range f.Plan.Report.Queue {
		if w.Claim == c.Name {
			v.Position, v.Priority = w.Position, w.Priority
			if !w.Ready.IsZero() {
				v.Ready = &w.Ready
			}
		}
	}
	v.Message = f.describeWait(c, v)
	v.ToDo = f.claimRemedy(c, v, formatCommand)
	return v
}

// describeWait describes what a claim waits for.
func (f Forecast) describeWait(c *hivev1.ClusterClaim, v Claim) string {
	switch {
	case c.Unreadable != "":
		return "it gets no cluster until it can be read: " + c.Unreadable
	case v.State == clusterstate.Releasing && slices.Contains(f.Plan.Report.Refused, v.Cluster):
		return "it is released, and the deletion of its cluster waits: " + f.deletionLimit()
	case v.State == clusterstate.Releasing && v.Cluster != "":
		return "it is released, and its cluster is being deleted"
	case v.State == clusterstate.Releasing:
		return "it is released"
	case v.State == clusterstate.Waiting:
		return f.describeWaitForCluster(c, v.Position)
	}
	if running := condition.Find(c.Status.Conditions, hivev1.ClaimClusterRunning); running != nil && running.Message != "" {
		return strings.TrimRight(running.Message, ".")
	}
	return "it has cluster " + v.Cluster
}

// describeWaitForCluster describes what a claim without a cluster waits for.
func (f Forecast) describeWaitForCluster(c *hivev1.ClusterClaim, position int) string {
	switch {
	case position == 0 && f.clusterBoundTo(c.Name) != "":
		return fmt.Sprintf("cluster %s runs, and is bound to it now", f.clusterBoundTo(c.Name))
	case f.Pool.DeletionTimestamp != nil:
		return "the pool is being deleted, and serves no more claims"
	case position == 0 && facts.IsHeld(c, false):
		return condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted).Message
	case f.setOf(c.Name) != "":
		set := f.setOf(c.Name)
		return "it is served together with ClaimSet " + set + ": see explain claimset " + set
	default:
		return f.describeClaimsBefore(position) + f.describeKept() + f.describeQueuePosition(position)
	}
}

// describeClaimsBefore names the claims before that position in the queue, with their priorities; "" if no claim
// in the queue has one.
func (f Forecast) describeClaimsBefore(position int) string {
	queue := f.Plan.Report.Queue
	if position == 0 || !slices.ContainsFunc(queue, func(w pool.Wait) bool { return w.Priority != 0 }) {
		return ""
	}
	var names []string
	for _, w := range queue[:position-1] {
		names = append(names, fmt.Sprintf("%s (priority %d)", w.Claim, w.Priority))
	}
	switch len(names) {
	case 0:
		return "it is the first in the queue; "
	case 1:
		return "1 claim is before it: " + names[0] + "; "
	default:
		return fmt.Sprintf("%d claims are before it: %s; ", len(names), humanize.JoinFirstWords(names))
	}
}

// clusterBoundTo returns the cluster that the plan binds to a claim; "" if it binds none.
func (f Forecast) clusterBoundTo(claim string) string {
	for _, s := range f.Plan.StepsOf(pool.Bind) {
		if s.Claim == claim {
			return s.Cluster
		}
	}
	return ""
}

// describeQueuePosition describes what the claim at that position in the queue waits for.
func (f Forecast) describeQueuePosition(position int) string {
	coming := f.upcomingClusters()
	words := "no free cluster runs; "
	switch {
	case len(coming) == 0:
		words += "none is on the way"
	case len(coming) == 1:
		words += "one is on the way: " + coming[0]
	default:
		words += fmt.Sprintf("%d are on the way: %s", len(coming), humanize.JoinFirstWords(coming))
	}
	switch {
	case position <= len(coming):
	case f.Plan.Report.Short > 0:
		words += ", and no more are created: " + f.Plan.Report.Hindrance
	case len(f.blockedInstalls()) > 0:
		words += ", since " + f.blockedInstalls()[0] + " cannot be installed: see what it lacks"
	case len(f.failingInstalls()) > 0:
		words += ", since the install of " + f.failingInstalls()[0] + " has failed, and is retried"
	}
	return words
}

// blockedInstalls names the installs that cannot begin, and that the plan does not replace.
func (f Forecast) blockedInstalls() []string {
	var out []string
	for _, c := range f.PlannedClusters() {
		if c.Phase == pool.Installing && f.findMember(c.Name).RequirementsUnmet != "" && f.stepForCluster(c.Name).Verb != pool.Delete {
			out = append(out, c.Name)
		}
	}
	return out
}

// failingInstalls names the installs whose last attempt has failed, and that the plan does not replace.
func (f Forecast) failingInstalls() []string {
	var out []string
	for _, c := range f.PlannedClusters() {
		if c.Phase == pool.Installing && f.findMember(c.Name).Failing && f.stepForCluster(c.Name).Verb != pool.Delete {
			out = append(out, c.Name)
		}
	}
	return out
}

// upcomingClusters names the clusters that will run without any user action, soonest first.
func (f Forecast) upcomingClusters() []string {
	var resuming, installing []string
	for _, c := range f.PlannedClusters() {
		m := f.findMember(c.Name)
		switch {
		case c.Phase == pool.Standby && c.TargetPower == pool.Running && !m.PowerFailed && !m.MachinesFailed:
			resuming = append(resuming, c.Name+" resumes")
		case c.Phase == pool.Installing && !m.Failing && m.RequirementsUnmet == "" && f.stepForCluster(c.Name).Verb != pool.Delete:
			installing = append(installing, c.Name+" is being installed")
		}
	}
	out := slices.Concat(resuming, installing)
	for _, name := range f.Facts.Pending {
		out = append(out, name+" is about to be created")
	}
	for range f.Plan.StepsOf(pool.Create) {
		out = append(out, "a new one is created")
	}
	return out
}
