package provision

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// ClusterInstallSnapshot is the object of another installer that spec.clusterInstallRef names, as
// facts. It follows Hive's ClusterInstall contract: conditions RequirementsMet, Completed, Failed
// and Stopped, and spec.clusterMetadata.
type ClusterInstallSnapshot struct {
	// Kind and Name are those of the reference.
	Kind, Name string
	// Installed is spec.installed. If it is set, the object's conditions no longer count.
	Installed bool
	// Missing says why the object cannot be read, and what to do; empty if it can. Unreadable is
	// set if the object exists nevertheless.
	Missing    string
	Unreadable bool
	// Conditions are those of its status, by type.
	Conditions map[string]Condition
	// Metadata reports whether its spec.clusterMetadata exists and is complete.
	Metadata bool
	// Recorded reports whether the cluster already has that metadata.
	Recorded bool
}

// ClusterInstallPlan is what to store for a ClusterInstallSnapshot, in this order: the metadata,
// the conditions, then that the cluster is installed.
type ClusterInstallPlan struct {
	// Adopt copies spec.clusterMetadata to the cluster.
	Adopt      bool
	Conditions []Condition
	// Finish marks the cluster as installed.
	Finish bool
}

// mirroredConditions maps the conditions of the contract to their names on a cluster.
var mirroredConditions = []struct{ theirs, ours string }{
	{"RequirementsMet", hivev1.ClusterInstallRequirementsMet},
	{"Completed", hivev1.ClusterInstallCompleted},
	{"Failed", hivev1.ClusterInstallFailed},
	{"Stopped", hivev1.ClusterInstallStopped},
}

// DecideClusterInstall decides what to report for a cluster that another installer creates. It
// copies that installer's conditions unchanged, and derives from them the conditions that
// hotspare's own installs have, so that pools and clients need not know which installer is used.
func DecideClusterInstall(f ClusterInstallSnapshot) ClusterInstallPlan {
	var p Plan
	if f.Installed {
		reportInstalled(&p)
		return ClusterInstallPlan{Conditions: p.Conditions, Finish: true}
	}
	if f.Missing != "" {
		reason := hivev1.ReasonClusterInstallNotFound
		if f.Unreadable {
			reason = hivev1.ReasonClusterInstallUnreadable
		}
		p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionFalse, reason, f.Missing)
		p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonInitializing, f.Missing)
		return ClusterInstallPlan{Conditions: p.Conditions}
	}
	for _, m := range mirroredConditions {
		c, ok := f.Conditions[m.theirs]
		if !ok {
			c = Condition{Value: condition.Unknown(hivev1.ReasonInitialized, f.describeInstall("does not report it yet"))}
		}
		p.setCondition(m.ours, c.Status, cmp.Or(c.Reason, m.theirs), c.Message)
	}
	f.reportClusterConditions(&p)
	completed := f.isConditionTrue("Completed")
	return ClusterInstallPlan{
		Adopt:      f.Metadata && !f.Recorded,
		Conditions: p.Conditions,
		Finish:     completed && f.Metadata,
	}
}

// reportClusterConditions derives the conditions common to all clusters from those of the
// contract.
func (s ClusterInstallSnapshot) reportClusterConditions(p *Plan) {
	switch {
	case s.isConditionTrue("Completed") && !s.Metadata:
		p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisioning,
			s.describeInstall("reports that it has completed, but its spec.clusterMetadata lacks clusterID, infraID "+
				"or adminKubeconfigSecretRef.name: the installing controller must set them"))
	case s.isConditionTrue("Completed"):
		reportInstalled(p)
		return
	case s.isConditionTrue("Stopped"):
		why := s.describeInstall("has stopped: " + s.firstMessage("Stopped", "Failed"))
		p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisionStopped, why)
		p.setCondition(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, cmp.Or(s.Conditions["Stopped"].Reason, hivev1.ReasonProvisionStopped), why)
	default:
		reportUnderWay(p, s.describeInstall("is in progress; its conditions have the details"))
	}
	if s.isConditionTrue("Failed") {
		p.setCondition(hivev1.ClusterProvisionFailed, corev1.ConditionTrue, cmp.Or(s.Conditions["Failed"].Reason, "Failed"), s.describeInstall("failed: "+s.firstMessage("Failed")))
	}
	met := s.Conditions["RequirementsMet"]
	switch met.Status {
	case corev1.ConditionTrue:
		p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionTrue, hivev1.ReasonAllRequirementsMet, allNeedsMet)
	case corev1.ConditionFalse:
		p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionFalse, cmp.Or(met.Reason, "RequirementsNotMet"),
			s.describeInstall("reports unmet requirements: "+s.firstMessage("RequirementsMet")))
	default:
		p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionUnknown, hivev1.ReasonInitialized, s.describeInstall("does not report it yet"))
	}
}

func (s ClusterInstallSnapshot) isConditionTrue(typ string) bool {
	return s.Conditions[typ].Status == corev1.ConditionTrue
}

// firstMessage returns the message of the first of those conditions that has one.
func (s ClusterInstallSnapshot) firstMessage(types ...string) string {
	for _, typ := range types {
		if m := s.Conditions[typ].Message; m != "" {
			return strings.TrimRight(m, ".")
		}
	}
	return "it gives no reason"
}

func (s ClusterInstallSnapshot) describeInstall(what string) string {
	return fmt.Sprintf("%s %s %s.", s.Kind, s.Name, what)
}
