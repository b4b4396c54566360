// Package cloud is how hotspare starts and stops a cluster's machines.
//
// A platform is one package with one type that implements Power; cmd registers
// it by its key in ClusterDeployment.spec.platform. cloudtest.Run is the
// conformance suite each one passes.
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

// Ref names the machines of one cluster.
type Ref struct {
	// Cluster is the ClusterDeployment, for messages and to find its Secrets.
	Cluster types.NamespacedName
	// InfraID is spec.clusterMetadata.infraID, by which the platform's installer marks its machines. Never empty.
	InfraID string
	// Platform is the cluster's spec.platform.
	Platform hivev1.Platform
	// Metadata is the platform's part of spec.clusterMetadata; may be nil.
	Metadata *hivev1.ClusterMetadata
	// InstallConfig is the Secret, in the cluster's namespace, with the install-config
	// that it was made from; empty if the cluster names none.
	InstallConfig string
	// Since is when the hub began to hibernate the cluster, while it does; zero if it does not, or has just begun.
	Since time.Time
	// Shelve asks for machines to be given back to the platform while they are stopped,
	// where it knows the difference.
	Shelve bool
}

// State is what a machine is doing, as far as its platform tells.
type State string

// A provider maps each state of its platform to one of these; one that it does
// not know is Unknown, and the reason names it.
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
	// Reason tells more about Failed and Unknown, for users; no secrets.
	Reason string
	// Node is the name of the machine's node, and Addresses are all its addresses
	// and names, if the platform itself knows them. They vouch for the node when it
	// asks for certificates, so they must not come from the cluster. Both are empty
	// for a platform that knows machines only.
	Node      string
	Addresses []corev1.NodeAddress
}

// Machines is one observation: every machine of a cluster, each once.
type Machines []Machine

// NamesNotIn returns the names of those not in state want, sorted.
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

// AllIn reports whether there is at least one machine and every one is in state
// want. No machine at all is neither running nor stopped (Hive D12).
func (ms Machines) AllIn(want State) bool { return len(ms) > 0 && len(ms.NamesNotIn(want)) == 0 }

// SortByName orders by name, so that equal observations are equal values.
func (ms Machines) SortByName() {
	slices.SortFunc(ms, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
}

// String lists the machines with their states: "a Running, b Stopped".
func (ms Machines) String() string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.Name + " " + string(m.State)
	}
	return strings.Join(parts, ", ")
}

// Power observes, starts and stops the machines of a cluster. Calls return
// without waiting for machines; they are idempotent, honour the context's
// deadline, and carry a fault.Kind in their errors. One machine's error does
// not stop the others: errors are joined.
type Power interface {
	// Observe returns every machine of the cluster; none is an empty list and no error.
	Observe(ctx context.Context, ref Ref) (Machines, error)
	// Start starts the control plane, then, in the same or a later call, the
	// workers. Machines that run or start already are left alone.
	Start(ctx context.Context, ref Ref) error
	// Stop stops the workers, then, in the same or a later call, the control plane.
	Stop(ctx context.Context, ref Ref) error
}

// ChangeNotifier is what a platform may be beside Power: it tells when machines change, by
// themselves too. Those of others are looked at now and then.
type ChangeNotifier interface {
	// Changes has the infraID of a cluster whenever a machine of it has begun to run or
	// has stopped running. It is for one reader, and never closed; what nobody reads in
	// time is lost. A machine that could not be started is none of it: whoever starts it
	// anew at once would do so for ever.
	Changes() <-chan string
}

// Spot is what a platform may be beside Power (ADR 0017): Stop ends some of its machines for
// good, because the platform cannot stop them, and others must be made in their place
// when the cluster resumes. The platform does not do that: the cluster's machine
// controller does, once the Machine of the lost one is deleted there.
type Spot interface {
	// Lost returns those of the given provider IDs, as they stand in Machines and Nodes,
	// whose machine is gone for good; in the given order. A machine that was made a
	// moment ago may count as lost, so callers leave out what is younger than the resume.
	Lost(ctx context.Context, ref Ref, providerIDs []string) ([]string, error)
}

// Secrets reads the data of a Secret of the hub; a Secret that does not exist is
// fault.Denied, and its name and how to come by it are in the words. Actuators keep no
// credentials longer than a call, or than the Secret stays as it is.
type Secrets func(ctx context.Context, key types.NamespacedName) (map[string][]byte, error)

// Registry finds the actuator of a platform. Whether it does is CanHandle of the
// enhancement on hibernating clusters.
type Registry map[string]Power

// PowerFor returns the actuator that can handle p, or nil.
func (r Registry) PowerFor(p hivev1.Platform) Power { return r[p.Name()] }
