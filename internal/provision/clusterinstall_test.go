package provision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hotspare.io/hotspare/internal/condition"
)

// says is what an AgentClusterInstall says: "Completed=True/Done: words", one each.
func says(conditions ...string) ClusterInstallSnapshot {
	f := ClusterInstallSnapshot{Kind: "AgentClusterInstall", Name: "aci", Conditions: map[string]Condition{}}
	for _, text := range conditions {
		head, message, _ := strings.Cut(text, ": ")
		typ, rest, _ := strings.Cut(head, "=")
		status, reason, _ := strings.Cut(rest, "/")
		f.Conditions[typ] = Condition{typ, condition.Value{Status: corev1.ConditionStatus(status), Reason: reason, Message: message}}
	}
	return f
}

func (s ClusterInstallSnapshot) with(change func(*ClusterInstallSnapshot)) ClusterInstallSnapshot {
	change(&s)
	return s
}

func made(f *ClusterInstallSnapshot)     { f.Metadata = true }
func recorded(f *ClusterInstallSnapshot) { f.Metadata, f.Recorded = true, true }

func TestMirror(t *testing.T) {
	for name, tt := range map[string]struct {
		seen ClusterInstallSnapshot
		// told contains the conditions of any cluster, as "type=status/reason".
		told          string
		adopt, finish bool
		words         string
	}{
		"one that says nothing is at work": {
			says(), "Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/Provisioning RequirementsMet=Unknown/Initialized",
			false, false, "AgentClusterInstall aci is in progress",
		},
		"what it misses is told": {
			says("RequirementsMet=False/InsufficientAgents: the cluster has 1 of 3 hosts."),
			"Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/Provisioning RequirementsMet=False/InsufficientAgents",
			false, false, "AgentClusterInstall aci reports unmet requirements: the cluster has 1 of 3 hosts.",
		},
		"names of what is made are taken over while it is at work": {
			says("RequirementsMet=True/ClusterAlreadyInstalling").with(made),
			"Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/Provisioning RequirementsMet=True/AllRequirementsMet",
			true, false, "",
		},
		"one failure is no end": {
			says("Failed=True/InstallationFailed: a host did not boot."),
			"Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=True/InstallationFailed RequirementsMet=Unknown/Initialized",
			false, false, "AgentClusterInstall aci failed: a host did not boot.",
		},
		"one that has stopped will not be made: a pool replaces it": {
			says("Stopped=True/InstallationFailed", "Failed=True/InstallationFailed: a host did not boot", "Completed=False/InstallationFailed"),
			"Provisioned=False/ProvisionStopped ProvisionStopped=True/InstallationFailed ProvisionFailed=True/InstallationFailed RequirementsMet=Unknown/Initialized",
			false, false, "AgentClusterInstall aci has stopped: a host did not boot.",
		},
		"one that has completed is installed": {
			says("Completed=True/InstallationCompleted", "Stopped=True/InstallationCompleted").with(recorded),
			"Provisioned=True/Provisioned ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/ProvisionSucceeded RequirementsMet=True/AllRequirementsMet",
			false, true, "",
		},
		"but not before it names what it has made": {
			says("Completed=True/InstallationCompleted"), "Provisioned=False/Provisioning RequirementsMet=Unknown/Initialized", false, false, "lacks clusterID, infraID or adminKubeconfigSecretRef.name",
		},
		"one that does not exist": {
			ClusterInstallSnapshot{Kind: "AgentClusterInstall", Name: "aci", Missing: "create it."},
			"RequirementsMet=False/ClusterInstallNotFound Provisioned=False/Initializing", false, false, "create it.",
		},
		"one that cannot be read": {
			ClusterInstallSnapshot{Kind: "AgentClusterInstall", Name: "aci", Missing: "correct it.", Unreadable: true},
			"RequirementsMet=False/ClusterInstallUnreadable Provisioned=False/Initializing", false, false, "correct it.",
		},
		"an installed cluster does not depend on it any more": {
			ClusterInstallSnapshot{Kind: "AgentClusterInstall", Name: "aci", Installed: true, Missing: "create it."},
			"Provisioned=True/Provisioned ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/ProvisionSucceeded RequirementsMet=True/AllRequirementsMet",
			false, true, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := DecideClusterInstall(tt.seen)
			var told []string
			words := ""
			for _, c := range plan.Conditions {
				words += c.Message + "\n"
				if !strings.HasPrefix(c.Type, "ClusterInstall") && !consoleReads(c.Type) {
					told = append(told, c.Type+"="+string(c.Status)+"/"+c.Reason)
				}
				if c.Reason == "" {
					t.Errorf("%s has no reason", c.Type)
				}
			}
			if diff := cmp.Diff(strings.Fields(tt.told), told, cmp.Transformer("sorted", sorted)); diff != "" {
				t.Error(diff)
			}
			if plan.Adopt != tt.adopt || plan.Finish != tt.finish {
				t.Errorf("adopt %v, finish %v; want %v, %v", plan.Adopt, plan.Finish, tt.adopt, tt.finish)
			}
			if !strings.Contains(words, tt.words) {
				t.Errorf("it does not say %q:\n%s", tt.words, words)
			}
		})
	}
}

// What the object says is repeated word for word.
func TestMirrorRepeatsTheContractsConditions(t *testing.T) {
	plan := DecideClusterInstall(says("Completed=False/InstallationInProgress: 42 %", "Other=True/X: not of the contract"))
	got := map[string]string{}
	for _, c := range plan.Conditions {
		if strings.HasPrefix(c.Type, "ClusterInstall") {
			got[c.Type] = string(c.Status) + "/" + c.Reason
		}
	}
	want := map[string]string{
		"ClusterInstallCompleted": "False/InstallationInProgress", "ClusterInstallFailed": "Unknown/Initialized",
		"ClusterInstallStopped": "Unknown/Initialized", "ClusterInstallRequirementsMet": "Unknown/Initialized",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func sorted(in []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range in {
		out[s] = true
	}
	return out
}
