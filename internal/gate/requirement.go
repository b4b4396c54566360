// Package gate decides whether the gates of a pool's ClusterBootstrap let a claim have a spare cluster.
//
// It is pure: a snapshot has the record of the cluster's current run and the answers of the gates, and the
// plan has the next record and the condition GatesPassed. A verdict belongs to one run of the cluster and to
// one version of the gates; another run or version needs another check.
package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Defaults and limits of the durations of a ClusterBootstrap.
const (
	defaultTimeout  = 10 * time.Minute
	defaultInterval = 30 * time.Second
	minInterval     = time.Second
)

// A Requirement is what a pool requires of its spare clusters. The zero value requires nothing.
type Requirement struct {
	// Version identifies the gates; empty if there are none. No cluster has passed the version of a Requirement
	// with a Problem.
	Version string
	Gates   []v1alpha1.Gate
	// AfterSteps is set if the cluster must have taken the steps of the ClusterBootstrap before its gates are
	// checked.
	AfterSteps bool
	// Problem explains why the gates are not known, or cannot be checked; empty if they can.
	Problem string
	// Timeout is how long a gate may fail. Interval is the time between two checks of a cluster that has
	// passed.
	Timeout, Interval time.Duration
}

// unresolved is the version of gates that are not known.
const unresolved = "unresolved"

// BootstrapName returns the name of the ClusterBootstrap that a policy names; empty if it names none. p may be
// nil.
func BootstrapName(p *v1alpha1.PoolPolicy) string {
	if p == nil || p.DeletionTimestamp != nil || p.Spec.BootstrapRef == nil {
		return ""
	}
	return p.Spec.BootstrapRef.Name
}

// NewRequirement returns what a pool with policy p requires. b is the ClusterBootstrap that the policy names;
// nil if it does not exist. p is nil if the pool has no policy.
func NewRequirement(p *v1alpha1.PoolPolicy, b *v1alpha1.ClusterBootstrap) Requirement {
	name := BootstrapName(p)
	switch {
	case p != nil && p.Unreadable != "" && name == "":
		return newUnresolved("PoolPolicy %s cannot be read, so its gates are not known: %s", p.Name, p.Unreadable)
	case name == "":
		return Requirement{}
	case b == nil:
		return newUnresolved("ClusterBootstrap %q does not exist: create it, or change spec.bootstrapRef of PoolPolicy %s", name, p.Name)
	case b.Unreadable != "":
		return newUnresolved("ClusterBootstrap %s cannot be read: %s", name, b.Unreadable)
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.BootstrapValid); c != nil &&
		c.Status == metav1.ConditionFalse && c.ObservedGeneration == b.Generation {
		return newUnresolved("ClusterBootstrap %s is not valid: %s", name, c.Message)
	}
	if len(b.Spec.Gates) == 0 {
		return Requirement{}
	}
	version, err := hashGates(b.Spec.Gates)
	if err != nil {
		return newUnresolved("ClusterBootstrap %s cannot be used: %s", name, err)
	}
	return Requirement{
		Version: version, Gates: b.Spec.Gates, AfterSteps: len(b.Spec.Steps) > 0,
		Timeout: parseDuration(b.Spec.GateTimeout, defaultTimeout, 0), Interval: parseDuration(b.Spec.CheckInterval, defaultInterval, minInterval),
	}
}

func newUnresolved(format string, args ...any) Requirement {
	return Requirement{Version: unresolved, Problem: fmt.Sprintf(format, args...)}
}

// hashGates returns the version of gates: 16 hexadecimal digits. It depends on the fields that are set only,
// so that a new field of the API changes no version.
func hashGates(gates []v1alpha1.Gate) (string, error) {
	raw, err := json.Marshal(gates)
	if err != nil {
		return "", fmt.Errorf("encoding the gates: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// parseDuration returns a duration of the spec, or its default if it is not set, or not valid.
func parseDuration(d hivev1.Duration, otherwise, least time.Duration) time.Duration {
	v, err := d.Parse()
	if err != nil || v <= 0 {
		return otherwise
	}
	return max(v, least)
}

// IsCheckedOnce reports whether a gate is checked only until it has passed in a run: it creates a pod.
func IsCheckedOnce(g v1alpha1.Gate) bool {
	return g.Type == v1alpha1.GatePodRuns || g.Type == v1alpha1.GateDNSAnswers
}
