package provision

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Foreign is the object of another installer that spec.clusterInstallRef names, as
// facts. It follows Hive's ClusterInstall contract: conditions RequirementsMet,
// Completed, Failed and Stopped, and spec.clusterMetadata.
type Foreign struct {
	// Kind and Name are those of the reference.
	Kind, Name string
	// Installed: spec.installed. Then nothing that the object says counts any more.
	Installed bool
	// Missing says why it cannot be looked at, and what to do; empty if it can.
	// Unreadable is set when it is there all the same.
	Missing    string
	Unreadable bool
	// Conditions are those of its status, by type.
	Conditions map[string]Condition
	// Metadata is whether its spec.clusterMetadata is there, and complete.
	Metadata bool
	// Recorded is whether the cluster names that already.
	Recorded bool
}

// ForeignPlan is what to store of a Foreign, in this order: the metadata, then the
// conditions, then that the cluster is installed.
type ForeignPlan struct {
	// Adopt has the cluster take over spec.clusterMetadata.
	Adopt      bool
	Conditions []Condition
	// Finish marks the cluster as installed.
	Finish bool
}

// mirrored are the conditions of the contract and what they are called on a cluster.
var mirrored = []struct{ theirs, ours string }{
	{"RequirementsMet", hivev1.ClusterInstallRequirementsMet},
	{"Completed", hivev1.ClusterInstallCompleted},
	{"Failed", hivev1.ClusterInstallFailed},
	{"Stopped", hivev1.ClusterInstallStopped},
}

// Mirror decides what a cluster that another installer makes has to tell. What it says
// is taken over as it is; the conditions that our own installs have follow from it, so
// that pools and clients need not know who installs.
func Mirror(f Foreign) ForeignPlan {
	var p Plan
	if f.Installed {
		reportInstalled(&p)
		return ForeignPlan{Conditions: p.Conditions, Finish: true}
	}
	if f.Missing != "" {
		reason := hivev1.ReasonClusterInstallNotFound
		if f.Unreadable {
			reason = hivev1.ReasonClusterInstallUnreadable
		}
		p.report(hivev1.ClusterRequirementsMet, corev1.ConditionFalse, reason, f.Missing)
		p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonInitializing, f.Missing)
		return ForeignPlan{Conditions: p.Conditions}
	}
	for _, m := range mirrored {
		c, ok := f.Conditions[m.theirs]
		if !ok {
			c = Condition{Value: condition.Unknown(hivev1.ReasonInitialized, f.says("says nothing of it yet"))}
		}
		p.report(m.ours, c.Status, cmp.Or(c.Reason, m.theirs), c.Message)
	}
	f.sum(&p)
	completed := f.is("Completed")
	return ForeignPlan{
		Adopt:      f.Metadata && !f.Recorded,
		Conditions: p.Conditions,
		Finish:     completed && f.Metadata,
	}
}

// sum draws the conditions of any cluster from those of the contract.
func (f Foreign) sum(p *Plan) {
	switch {
	case f.is("Completed") && !f.Metadata:
		p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisioning,
			f.says("says that it has completed, but its spec.clusterMetadata lacks clusterID, infraID or adminKubeconfigSecretRef.name: whoever installs has to write them"))
	case f.is("Completed"):
		reportInstalled(p)
		return
	case f.is("Stopped"):
		why := f.says("has stopped: " + f.why("Stopped", "Failed"))
		p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisionStopped, why)
		p.report(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, cmp.Or(f.Conditions["Stopped"].Reason, hivev1.ReasonProvisionStopped), why)
	default:
		reportUnderWay(p, f.says("is at work; its conditions tell more"))
	}
	if f.is("Failed") {
		p.report(hivev1.ClusterProvisionFailed, corev1.ConditionTrue, cmp.Or(f.Conditions["Failed"].Reason, "Failed"), f.says("failed: "+f.why("Failed")))
	}
	met := f.Conditions["RequirementsMet"]
	switch met.Status {
	case corev1.ConditionTrue:
		p.report(hivev1.ClusterRequirementsMet, corev1.ConditionTrue, hivev1.ReasonAllRequirementsMet, allMet)
	case corev1.ConditionFalse:
		p.report(hivev1.ClusterRequirementsMet, corev1.ConditionFalse, cmp.Or(met.Reason, "RequirementsNotMet"), f.says("misses something: "+f.why("RequirementsMet")))
	default:
		p.report(hivev1.ClusterRequirementsMet, corev1.ConditionUnknown, hivev1.ReasonInitialized, f.says("says nothing of it yet"))
	}
}

func (f Foreign) is(typ string) bool { return f.Conditions[typ].Status == corev1.ConditionTrue }

// why is the message of the first of those conditions that has one.
func (f Foreign) why(types ...string) string {
	for _, typ := range types {
		if m := f.Conditions[typ].Message; m != "" {
			return strings.TrimRight(m, ".")
		}
	}
	return "it does not say why"
}

func (f Foreign) says(what string) string { return fmt.Sprintf("%s %s %s.", f.Kind, f.Name, what) }
