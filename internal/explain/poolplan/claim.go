package poolplan

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
func (e Evaluation) unservedClaims() []*hivev1.ClusterClaim {
	var out []*hivev1.ClusterClaim
	waiting := map[string]bool{}
	for _, w := range e.Plan.Report.Queue {
		out, waiting[w.Claim] = append(out, e.Claims[w.Claim]), true
	}
	for _, name := range slices.Sorted(maps.Keys(e.Claims)) {
		if c := e.Claims[name]; !waiting[name] && (c.DeletionTimestamp != nil || !clusterstate.IsClaimUsable(c)) {
			out = append(out, c)
		}
	}
	return out
}

// ExplainClaim explains what a claim waits for, and until when.
func (e Evaluation) ExplainClaim(c *hivev1.ClusterClaim, formatCommand remedy.CommandFormatter) Claim {
	v := Claim{Name: c.Name, State: clusterstate.OfClaim(c), Created: c.CreationTimestamp.Time, Cluster: c.Spec.Namespace}
	for _, w := range e.Plan.Report.Queue {
		if w.Claim == c.Name {
			v.Position, v.Priority = w.Position, w.Priority
			if !w.Ready.IsZero() {
				v.Ready = &w.Ready
			}
		}
	}
	v.Message = e.describeWait(c, v)
	v.ToDo = e.claimRemedy(c, v, formatCommand)
	return v
}

// describeWait describes what a claim waits for.
func (e Evaluation) describeWait(c *hivev1.ClusterClaim, v Claim) string {
	switch {
	case c.Unreadable != "":
		return "it gets no cluster until it can be read: " + c.Unreadable
	case v.State == clusterstate.Releasing && slices.Contains(e.Plan.Report.Refused, v.Cluster):
		return "it is released, and the deletion of its cluster waits: " + e.deletionLimit()
	case v.State == clusterstate.Releasing && v.Cluster != "":
		return "it is released, and its cluster is being deleted"
	case v.State == clusterstate.Releasing:
		return "it is released"
	case v.State == clusterstate.Waiting:
		return e.describeWaitForCluster(c, v.Position)
	}
	if running := condition.Find(c.Status.Conditions, hivev1.ClaimClusterRunning); running != nil && running.Message != "" {
		return strings.TrimRight(running.Message, ".")
	}
	return "it has cluster " + v.Cluster
}

// describeWaitForCluster describes what a claim without a cluster waits for.
func (e Evaluation) describeWaitForCluster(c *hivev1.ClusterClaim, position int) string {
	switch {
	case position == 0 && e.clusterBoundTo(c.Name) != "":
		return fmt.Sprintf("cluster %s runs, and is bound to it now", e.clusterBoundTo(c.Name))
	case e.Pool.DeletionTimestamp != nil:
		return "the pool is being deleted, and serves no more claims"
	case position == 0 && facts.IsHeld(c, false):
		return condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted).Message
	case e.setOf(c.Name) != "":
		set := e.setOf(c.Name)
		return "it is served together with ClaimSet " + set + ": see explain claimset " + set
	default:
		return e.describeClaimsBefore(position) + e.describeKept() + e.describeQueuePosition(position)
	}
}

// describeClaimsBefore names the claims before that position in the queue, with their priorities; "" if no claim
// in the queue has one.
func (e Evaluation) describeClaimsBefore(position int) string {
	queue := e.Plan.Report.Queue
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
func (e Evaluation) clusterBoundTo(claim string) string {
	for _, s := range e.Plan.StepsOf(pool.Bind) {
		if s.Claim == claim {
			return s.Cluster
		}
	}
	return ""
}

// describeQueuePosition describes what the claim at that position in the queue waits for.
func (e Evaluation) describeQueuePosition(position int) string {
	coming := e.upcomingClusters()
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
	case e.Plan.Report.Short > 0:
		words += ", and no more are created: " + e.Plan.Report.Hindrance
	case len(e.blockedInstalls()) > 0:
		words += ", since " + e.blockedInstalls()[0] + " cannot be installed: see what it lacks"
	case len(e.failingInstalls()) > 0:
		words += ", since the install of " + e.failingInstalls()[0] + " has failed, and is retried"
	}
	if failing := e.failingBootstraps(); position > len(coming) && len(failing) > 0 {
		words += "; a step of the bootstrap or a gate fails in " + failing[0] + ": hotspare explain cluster says what fails"
	}
	return words
}

// failingBootstraps names the clusters that run, and of which a step of the bootstrap or a gate fails, unless the plan replaces
// them.
func (e Evaluation) failingBootstraps() []string {
	var out []string
	for _, c := range e.PlannedClusters() {
		if c.Phase == pool.Standby && e.bootstrapOf(c.Name).Failing && e.stepForCluster(c.Name).Verb != pool.Delete {
			out = append(out, c.Name)
		}
	}
	return out
}

// bootstrapOf returns how far a cluster that is not broken has come in the steps and gates of the pool.
func (e Evaluation) bootstrapOf(cluster string) clusterstate.Bootstrap {
	m := e.findMember(cluster)
	return clusterstate.BootstrapOf(&m, e.Clusters[cluster], "")
}

// blockedInstalls names the installs that cannot begin, and that the plan does not replace.
func (e Evaluation) blockedInstalls() []string {
	var out []string
	for _, c := range e.PlannedClusters() {
		if c.Phase == pool.Installing && e.findMember(c.Name).RequirementsUnmet != "" && e.stepForCluster(c.Name).Verb != pool.Delete {
			out = append(out, c.Name)
		}
	}
	return out
}

// failingInstalls names the installs whose last attempt has failed, and that the plan does not replace.
func (e Evaluation) failingInstalls() []string {
	var out []string
	for _, c := range e.PlannedClusters() {
		if c.Phase == pool.Installing && e.findMember(c.Name).Failing && e.stepForCluster(c.Name).Verb != pool.Delete {
			out = append(out, c.Name)
		}
	}
	return out
}

// upcomingClusters names the clusters that will run and serve claims without any user action, soonest first.
func (e Evaluation) upcomingClusters() []string {
	var resuming, installing []string
	for _, c := range e.PlannedClusters() {
		m := e.findMember(c.Name)
		switch {
		case e.stepForCluster(c.Name).Verb == pool.Delete:
		case c.Phase == pool.Standby && c.TargetPower == pool.Running && !m.PowerFailed && !m.MachinesFailed && !e.bootstrapOf(c.Name).Failing:
			resuming = append(resuming, c.Name+comingState(m))
		case c.Phase == pool.Installing && !m.Failing && m.RequirementsUnmet == "":
			installing = append(installing, c.Name+" is being installed")
		}
	}
	out := slices.Concat(resuming, installing)
	for _, name := range e.Facts.Pending {
		out = append(out, name+" is about to be created")
	}
	for range e.Plan.StepsOf(pool.Create) {
		out = append(out, "a new one is created")
	}
	return out
}

// comingState describes what a standby cluster does before it serves a claim.
func comingState(m pool.Member) string {
	switch {
	case m.AwaitsSteps:
		return " takes the steps of the bootstrap"
	case m.AwaitsGates:
		return " runs, and its gates are being checked"
	default:
		return " resumes"
	}
}
