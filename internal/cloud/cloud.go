// Package cloud defines how hotspare starts and stops the machines of a cluster.
//
// A platform is one package with one type that implements Actuator; package platform registers it
// by its key in ClusterDeployment.spec.platform. cloudtest.Run is the conformance suite that every
// platform passes.
package cloud

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Ref identifies the machines of one cluster.
type Ref struct {
	// Cluster is the ClusterDeployment, for messages and to find its Secrets.
	Cluster types.NamespacedName
	// InfraID is spec.clusterMetadata.infraID, with which the platform's installer marks its
	// machines. Never empty.
	InfraID string
	// Platform is the cluster's spec.platform.
	Platform hivev1.Platform
	// Metadata is the platform's part of spec.clusterMetadata; may be nil.
	Metadata *hivev1.ClusterMetadata
	// InstallConfig names the Secret, in the cluster's namespace, with the install-config that the
	// cluster was created from; empty if the cluster names none.
	InstallConfig string
	// Since is the time at which the hub began to hibernate the cluster; zero if the cluster is not
	// hibernating or hibernation has just begun.
	Since time.Time
	// Shelve asks the platform to release the resources of stopped machines, on platforms that make
	// this distinction.
	Shelve bool
	// Depth is the depth at which the cluster should sleep; "" means DepthStop. It matters to Stop and,
	// for Machine.DepthObstacle, to Observe.
	Depth Depth
	// RefusedDepths are the depths that the platform has refused during this hibernation (see
	// DepthRefusedError). Stop does not try them again.
	RefusedDepths []Depth
}

// clockSkew is how far the clock of a platform may be behind that of the hub.
const clockSkew = 2 * time.Minute

// IsSince reports whether something happened, by the clock of the platform, in the hibernation that the hub began at since: not
// before it by more than clocks differ. It is false if since is zero, because nothing was requested yet.
func IsSince(at, since time.Time) bool {
	return !since.IsZero() && !at.Before(since.Add(-clockSkew))
}

// State is the state of a machine, as reported by its platform.
type State string

// A provider maps each state of its platform to one of these. It maps a state that it does not know
// to Unknown and names that state in the reason.
const (
	Running  State = "Running"
	Starting State = "Starting"
	Stopped  State = "Stopped"
	Stopping State = "Stopping"
	Failed   State = "Failed"
	Unknown  State = "Unknown"
)

// Machine is one VM, host or process of a cluster, as observed.
type Machine struct {
	Name         string
	ControlPlane bool
	State        State
	// Reason explains Failed and Unknown to users. It contains no secrets.
	Reason string
	// Depth is the depth at which a Stopped machine sleeps; "" means DepthStop. It is "" in all other
	// states.
	Depth Depth
	// DepthObstacle is why the machine sleeps, or would sleep, deeper than at the depth in Ref, as a clause
	// about the machine without its name: "it was created without support for hibernation". "" if it can
	// sleep at that depth, as far as the platform knows. It contains no secrets.
	DepthObstacle string
	// CannotDeepen is true for a machine that the platform cannot put deeper without waking it, and whose
	// deeper sleep would cost as much: Stop leaves it alone, and it counts as asleep deeply enough.
	CannotDeepen bool
	// NoNode is true if the platform knows that the machine is no node of the cluster, as one that runs
	// only its API.
	NoNode bool
	// Node is the name of the machine's node, and Addresses are all its addresses and names, if the
	// platform itself knows them. They authenticate the node when it requests certificates, so they
	// must not come from the cluster. Both are empty for a platform that only knows machines.
	Node      string
	Addresses []corev1.NodeAddress
	// ProviderID is the provider ID with which the machine was selected; empty unless the observation
	// is that of an InstanceSelector.
	ProviderID string
}

// Machines is one observation of a cluster: it contains every machine exactly once.
type Machines []Machine

// NamesNotIn returns the sorted names of the machines that are not in state want.
func (ms Machines) NamesNotIn(want State) []string {
	var names []string
	for _, m := range ms {
		if m.State != want {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// AllIn reports whether there is at least one machine and every machine is in state want. A cluster
// without machines is neither running nor stopped (Hive D12).
func (ms Machines) AllIn(want State) bool { return len(ms) > 0 && len(ms.NamesNotIn(want)) == 0 }

// SortByName sorts the machines by name, so that equal observations are equal values.
func (ms Machines) SortByName() {
	slices.SortFunc(ms, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
}

// ExpectNodes reports whether one of the machines can be a node, or whether there are no machines.
func (ms Machines) ExpectNodes() bool {
	return len(ms) == 0 || slices.ContainsFunc(ms, func(m Machine) bool { return !m.NoNode })
}

// String lists the machines with their states: "a Running, b Stopped, c Stopped (freeze)".
func (ms Machines) String() string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.Name + " " + string(m.State)
		if m.Depth.orStop() != DepthStop {
			parts[i] += " (" + string(m.Depth) + ")"
		}
	}
	return strings.Join(parts, ", ")
}

// Actuator observes, starts and stops the machines of a cluster. Calls return without waiting for
// machines; they are idempotent, honor the context's deadline, and return errors that carry a
// fault.Kind. An error for one machine does not stop the others: errors are joined.
type Actuator interface {
	// Observe returns every machine of the cluster. If there are none, it returns an empty list and
	// no error.
	Observe(ctx context.Context, ref Ref) (Machines, error)
	// Start starts the control plane and then, in the same or a later call, the workers. It wakes
	// machines from any depth, also from one that the platform does not report for new sleeps. It leaves
	// alone machines that are running or starting.
	Start(ctx context.Context, ref Ref) error
	// Stop stops the workers and then, in the same or a later call, the control plane. Each machine goes
	// to sleep at the depth of Ref.SelectDepth. A machine that sleeps less deeply than at ref.Depth is
	// put deeper, unless it cannot (Machine.CannotDeepen); a platform may have to wake it for this. One
	// that sleeps at that depth or deeper is left alone. If the platform permanently refuses a depth, the
	// error contains a DepthRefusedError for the machine, which keeps running; the caller adds the depth
	// to ref.RefusedDepths and calls Stop again.
	Stop(ctx context.Context, ref Ref) error
}

// ChangeNotifier is an optional interface of a platform, in addition to Actuator. It reports changes
// of machines, including those that hotspare did not cause. Clusters on platforms without it are
// checked periodically.
type ChangeNotifier interface {
	// Changes returns a channel that receives the infraID of a cluster whenever one of its machines
	// starts or stops running. The channel is for one reader and is never closed; values that are
	// not read in time are lost. A machine that failed to start is not reported: a reader that
	// immediately started it again would do so forever.
	Changes() <-chan string
}

// LostInstanceLister is an optional interface of a platform, in addition to Actuator (ADR 0017):
// Stop permanently terminates some of its machines, because the platform cannot stop them, and
// replacements must be created when the cluster resumes. The platform does not create them: the
// cluster's machine controller does, once the Machine of the terminated instance is deleted in the
// cluster.
type LostInstanceLister interface {
	// ListLostInstances returns the given provider IDs (as found in Machines and Nodes) whose machine no longer
	// exists, in the given order. A machine that was created a moment ago may be reported as lost,
	// so callers leave out machines that are younger than the resume.
	ListLostInstances(ctx context.Context, ref Ref, providerIDs []string) ([]string, error)
}

// HibernationPredictor is an optional interface of a platform, in addition to Actuator, that can stop
// the machines of some of its clusters only.
type HibernationPredictor interface {
	// HibernationObstacle returns why clusters with these settings cannot hibernate, as a sentence
	// that says what to do; "" if they can.
	HibernationObstacle(p hivev1.Platform) string
}

// Instance identifies one machine by the ID that its provider has given it.
type Instance struct {
	// ProviderID is the ID, as found in Machines and Nodes: aws:///us-east-1a/i-0123.
	ProviderID string
	// Name names the machine in observations.
	Name         string
	ControlPlane bool
}

// InstanceSelector is an optional interface of a platform, in addition to Actuator (ADR 0023): it
// controls machines that another installer created, which infraIDs do not mark.
type InstanceSelector interface {
	Actuator
	// ForInstances returns an Actuator for these instances, of which it never deletes one. It ignores
	// the infraID of a Ref, except in messages. Its Observe returns those that exist, each with its
	// ProviderID. A provider ID of another platform, or one that cannot be parsed, is fault.Denied.
	ForInstances(instances []Instance) (Actuator, error)
}

// ResumeCompleter is an optional interface of a platform, in addition to Actuator (ADR 0023): Stop
// suspends controllers that would otherwise replace the stopped machines, and Start does not resume
// them, because the nodes are not ready yet.
type ResumeCompleter interface {
	// CompleteResume resumes these controllers, if Stop has suspended them. It is called when all
	// machines run and the cluster is ready, before the cluster is reported as running. readyNodes are
	// the names of the cluster's ready nodes; it returns fault.Wait while the node of a machine is not
	// among them.
	CompleteResume(ctx context.Context, ref Ref, readyNodes []string) error
}

// AddressHolder is an optional interface of a platform, in addition to Actuator (ADR 0039): it keeps the address of the
// API of a cluster whose machines sleep, and reports that a client connects.
type AddressHolder interface {
	// HoldAddress makes the platform accept the connections to the API of the cluster, and hold them, whenever its
	// control plane does not run, and pass them to the API when it runs. It is idempotent, and does not start
	// machines. A platform that is a ChangeNotifier reports a change when a connection waits.
	HoldAddress(ctx context.Context, ref Ref) error
	// DropAddress ends HoldAddress: it closes the connections that wait. It is idempotent.
	DropAddress(ctx context.Context, ref Ref) error
	// CountWaiting returns the number of connections that wait.
	CountWaiting(ref Ref) int
}

// Secrets reads the data of a Secret of the hub. For a Secret that does not exist it returns
// fault.Denied; the message names the Secret and says how to create it. Actuators keep credentials
// no longer than one call, or than the Secret remains unchanged.
type Secrets func(ctx context.Context, key types.NamespacedName) (map[string][]byte, error)

// Registry maps a platform's key to its actuator. An entry stands for CanHandle in the
// enhancement on hibernating clusters.
type Registry map[string]Actuator

// ActuatorFor returns the actuator for p, or nil if there is none.
func (r Registry) ActuatorFor(p hivev1.Platform) Actuator { return r[p.Name()] }
