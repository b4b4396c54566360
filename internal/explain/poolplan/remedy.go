package poolplan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/pool"
)

// editPoolRemedy returns a remedy that consists of editing the pool.
func (e Evaluation) editPoolRemedy(text string, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	return remedy.New(text, formatCommand(e.Pool.Namespace, "kubectl edit clusterpool %s", e.Pool.Name))
}

// editBootstrapRemedy returns a remedy that consists of editing the ClusterBootstrap of the pool.
func (e Evaluation) editBootstrapRemedy(text string, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	if e.Policy == nil || e.Policy.Spec.BootstrapRef == nil {
		return remedy.New(text, formatCommand(e.Pool.Namespace, "kubectl get clusterbootstraps"))
	}
	return remedy.New(text, formatCommand(e.Pool.Namespace, "kubectl edit clusterbootstrap %s", e.Policy.Spec.BootstrapRef.Name))
}

// bootstrapRemedy returns the remedy for a cluster that runs and of which a step or a gate fails; nil if none does, or if the pool
// does not wait for that: it deletes the cluster, or lets it take the steps of its bootstrap first.
func (e Evaluation) bootstrapRemedy(v Cluster, m pool.Member, cd *hivev1.ClusterDeployment, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	switch {
	case v.Phase != pool.Standby || m.AwaitsTurn || e.stepForCluster(v.Name).Verb == pool.Delete || !clusterstate.BootstrapOf(&m, cd, "").Failing:
		return nil
	case m.AwaitsSteps:
		return e.editBootstrapRemedy("If the step cannot succeed, correct it, or what it refers to.", formatCommand)
	default:
		return e.editBootstrapRemedy("The gate is checked again until it passes. If it cannot pass, correct it.", formatCommand)
	}
}

// poolRemedies returns the remedies for the pool itself.
func (e Evaluation) poolRemedies(formatCommand remedy.CommandFormatter) []remedy.Remedy {
	namespace, name, set := e.Pool.Namespace, e.Pool.Name, e.Facts.Settings
	if set.Deleting {
		return e.poolDeletionRemedies(formatCommand)
	}
	var out []remedy.Remedy
	if set.RunningCount > set.Size {
		out = append(out, *remedy.New(fmt.Sprintf("runningCount is %d, and at most its size, %d, will run: set both to the same value.", set.RunningCount, set.Size),
			formatCommand(namespace, "pool scale %s --size %d", name, set.RunningCount)))
	}
	if c := condition.Find(e.Told.Conditions, hivev1.PoolInventoryValid); c != nil && c.Reason != hivev1.ReasonInventoryValid && c.Reason != hivev1.ReasonInitialized {
		out = append(out, *remedy.New("Some of its inventory cannot be used: see why, and what to do.", formatCommand(namespace, "inventory list %s", name)))
	}
	if unmet := e.blockedInstalls(); len(unmet) > 0 {
		what := humanize.FormatCount(len(unmet), "install") +
			" cannot begin. Create what RequirementsMet names, or correct the pool or its recipe: the install then continues automatically."
		out = append(out, *e.editPoolRemedy(what, formatCommand))
	}
	if e.Plan.Report.StepsFail {
		what := "The steps of its bootstrap, or the gates after them, have failed: correct what failed. One cluster tries that first, and then the others do."
		out = append(out, *e.editBootstrapRemedy(what, formatCommand))
	}
	if e.Plan.Report.Short == 0 {
		return append(out, e.deletionRemedies(formatCommand)...)
	}
	return append(out, e.shortageRemedies(formatCommand)...)
}

// deletionRemedies returns the remedies for clusters whose deletion is postponed.
func (e Evaluation) deletionRemedies(formatCommand remedy.CommandFormatter) []remedy.Remedy {
	switch n := e.Facts.Settings.MaxConcurrent; {
	case len(e.Plan.Report.Refused) == 0:
		return nil
	case n != nil && *n == 0:
		return []remedy.Remedy{*e.editPoolRemedy("maxConcurrent is 0, so no cluster is created or deleted: raise it.", formatCommand)}
	case len(e.Plan.Report.Failing) > 0:
		return nil // those have their own remedies
	default:
		return []remedy.Remedy{*remedy.NewWait("More are deleted when those in progress finish: " + e.deletionLimit() + ".")}
	}
}

// shortageRemedies returns the remedies for a pool that has fewer clusters than it should, and does
// not create them.
func (e Evaluation) shortageRemedies(formatCommand remedy.CommandFormatter) []remedy.Remedy {
	namespace, name, rep := e.Pool.Namespace, e.Pool.Name, e.Plan.Report
	switch {
	case e.Facts.Settings.Blocked != "" && e.Steps.Problem != "" && e.Policy != nil:
		return []remedy.Remedy{*remedy.New("Create what is missing, or change what the bootstrap of the pool refers to: the pool then continues automatically.",
			formatCommand(namespace, "kubectl edit poolpolicy %s", e.Policy.Name))}
	case e.Facts.Settings.Blocked != "":
		return []remedy.Remedy{*e.editPoolRemedy("Create what is missing, or change what the pool refers to: the pool then continues automatically.", formatCommand)}
	case rep.Full && rep.By == pool.ByMaxSize:
		return []remedy.Remedy{*e.editPoolRemedy("Raise maxSize, or release claims: claimed clusters count.", formatCommand)}
	case rep.Full && rep.By == pool.ByPlatform:
		return []remedy.Remedy{*remedy.New("The platform has no room: release claims, or keep fewer clusters here or in another pool.",
			formatCommand(namespace, "pool scale %s --size %d", name, max(0, e.Facts.Settings.Size-rep.Short)))}
	case rep.Full && rep.By == pool.ByInventory:
		return []remedy.Remedy{*remedy.New("Add customizations to its inventory, or repair those that are broken.", formatCommand(namespace, "inventory list %s", name))}
	case e.Facts.Settings.MaxConcurrent != nil && *e.Facts.Settings.MaxConcurrent == 0:
		return []remedy.Remedy{*e.editPoolRemedy("maxConcurrent is 0, so no cluster is created or deleted: raise it.", formatCommand)}
	default:
		return []remedy.Remedy{*remedy.NewWait("More are created when those in progress finish: " + rep.Hindrance + ".")}
	}
}

// poolDeletionRemedies returns the remedies for a pool that is being deleted and waits for its
// claims.
func (e Evaluation) poolDeletionRemedies(formatCommand remedy.CommandFormatter) []remedy.Remedy {
	var holders []string
	for _, name := range slices.Sorted(maps.Keys(e.Claims)) {
		if e.Claims[name].DeletionTimestamp == nil {
			holders = append(holders, name)
		}
	}
	if len(holders) == 0 {
		return []remedy.Remedy{*remedy.NewWait("It is deleted when its clusters are.")}
	}
	return []remedy.Remedy{*remedy.New("It is deleted when its claims are released.", formatCommand(e.Pool.Namespace, "claim release %s", strings.Join(holders, " ")))}
}

// clusterRemedy returns the remedy for an unhealthy cluster.
func (e Evaluation) clusterRemedy(v Cluster, m pool.Member, cd *hivev1.ClusterDeployment, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	namespace := clusterstate.HomeNamespace(cd)
	switch {
	case m.Unreadable != "":
		return remedy.New("Correct the field.", formatCommand(cd.Namespace, "kubectl edit clusterdeployment %s", cd.Name))
	case condition.IsTrue(cd.Status.Conditions, hivev1.ClusterDeprovisionLaunchError):
		return remedy.New("Its deletion fails: see its condition DeprovisionLaunchError.", formatCommand(namespace, "cluster describe %s", cd.Name))
	case !m.Installed && conditionMessage(cd, hivev1.ClusterRequirementsMet, corev1.ConditionFalse) != "":
		return remedy.New("See its condition RequirementsMet.", formatCommand(namespace, "cluster describe %s", cd.Name))
	case m.Failing && v.Cause == "":
		return remedy.New("See the log for the reason.", formatCommand(namespace, "cluster logs %s", cd.Name))
	case v.Cause != "":
		return e.defectRemedy(v, m, namespace, formatCommand)
	case m.PowerFailed:
		return remedy.New("See why.", formatCommand(namespace, "cluster describe %s", cd.Name))
	default:
		return e.bootstrapRemedy(v, m, cd, formatCommand)
	}
}

// defectRemedy returns the remedy for a broken cluster, which the pool replaces unless it was adopted. namespace is that of the
// pool.
func (e Evaluation) defectRemedy(v Cluster, m pool.Member, namespace string, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	switch v.Cause {
	case pool.Displaced, pool.Withdrawn:
		return nil
	case pool.InstallFailed:
		return remedy.New("If the next cluster fails too, see the log.", formatCommand(namespace, "cluster logs %s", v.Name))
	case pool.StepFailed, pool.GateFailed:
		if m.Adopted {
			return e.editBootstrapRemedy("Nothing replaces a cluster that was adopted: correct the step or the gate that failed.", formatCommand)
		}
	}
	return remedy.New("If the next cluster fails too, see why.", formatCommand(namespace, "cluster describe %s", v.Name))
}

// waitsForSomebody reports whether the pool or one of its clusters has a remedy.
func (e Evaluation) waitsForSomebody() bool {
	return e.Plan.Report.Progress == pool.Held || e.Plan.Report.Short > 0 ||
		len(e.blockedInstalls()) > 0 || len(e.failingInstalls()) > 0 || len(e.failingBootstraps()) > 0
}

// waitRemedy returns the remedy for a claim without a cluster.
func (e Evaluation) waitRemedy(c *hivev1.ClusterClaim, v Claim, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	switch {
	case e.Pool.DeletionTimestamp != nil:
		return remedy.New("Release it, and claim from another pool.", formatCommand(c.Namespace, "claim release %s", c.Name))
	case isHeldFor(c, hivev1.ReasonCreatorUnknown):
		return remedy.New("Release it, and create it again.", formatCommand(c.Namespace, "claim release %s", c.Name))
	case isHeldFor(c, hivev1.ReasonNotPermitted):
		return remedy.New("Ask somebody who may write ClaimPolicies to permit it.", formatCommand(c.Namespace, "kubectl get claimpolicies"))
	case v.Position > len(e.upcomingClusters()) && e.waitsForSomebody():
		return nil // the pool, or its cluster, needs the remedy
	default:
		return remedy.NewWait("It is served automatically.")
	}
}

// isHeldFor reports whether ClaimPolicies do not admit a claim for that reason.
func isHeldFor(c *hivev1.ClusterClaim, reason string) bool {
	admitted := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted)
	return admitted != nil && admitted.Status == corev1.ConditionFalse && admitted.Reason == reason
}

// claimRemedy returns the remedy for a claim.
func (e Evaluation) claimRemedy(c *hivev1.ClusterClaim, v Claim, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	switch {
	case c.Unreadable != "":
		return remedy.New("Correct the field.", formatCommand(c.Namespace, "kubectl edit clusterclaim %s", c.Name))
	case v.State == clusterstate.Hibernating:
		return remedy.New("Resume its cluster.", formatCommand(c.Namespace, "cluster resume %s --wait", c.Name))
	case v.State == clusterstate.Stopping:
		return remedy.NewWait("It hibernates when its machines have stopped.")
	case v.State == clusterstate.Failed:
		return remedy.New("See why its cluster does not stop.", formatCommand(c.Namespace, "cluster describe %s", c.Name))
	case v.State == clusterstate.Lost:
		return remedy.New("Its cluster was deleted: release it, and create another.", formatCommand(c.Namespace, "claim release %s", c.Name))
	case v.State == clusterstate.Waiting:
		return e.waitRemedy(c, v, formatCommand)
	case v.State == clusterstate.Resuming, v.State == clusterstate.Assigned:
		return remedy.NewWait("It is served automatically.")
	default:
		return nil
	}
}
