package csr

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineNamespace is the only namespace whose Machines count (S6).
const MachineNamespace = "openshift-machine-api"

const (
	// clientWindow is how long after the start of a resume nodes may request client certificates
	// with the boot account: the wait that OpenShift recommends. Kubernetes keeps an approved
	// request for an hour, which is longer, so that rule C15 does not lose it.
	clientWindow = 45 * time.Minute
	// servingWindow is how long after Ready requests for serving certificates are considered:
	// kubelets make them once they have rejoined.
	servingWindow = 10 * time.Minute
	// silentAfter is how long a node's lease must not have been renewed before the node counts as
	// down: the duration of a kubelet's lease.
	silentAfter = 40 * time.Second
	// clockSkew is how far clocks may differ.
	clockSkew = 10 * time.Second
	// A flood is more than this number of open requests for each node (S5)...
	floodPerNode = 4
	// ...that were created within this time.
	floodWindow = time.Hour
)

// Snapshot is the information by which requests are judged.
type Snapshot struct {
	// Now is the time on the hub.
	Now    time.Time
	Window Window
	// Machines are the cluster's machines, from one of the two sources in the package comment.
	Machines []Machine
	// Nodes are all nodes of the cluster.
	Nodes []Node
	// Truncated is set if there were more requests than hotspare reads.
	Truncated bool
	// ClientsOff is set if the cluster's own approver is configured to ignore client certificates
	// of nodes (C12).
	ClientsOff bool
}

// Window is the resume to which requests must belong.
type Window struct {
	// Opened is when the resume began.
	Opened time.Time
	// Ready is when the cluster became ready; zero until then.
	Ready time.Time
}

// Machine is a machine that vouches for a node.
type Machine struct {
	// Namespace is the namespace of the Machine in the cluster; empty for a machine from the
	// hub's own inventory.
	Namespace string
	// Node is the name of its node, and UID the node's UID if it is known.
	Node string
	UID  types.UID
	// Addresses are the machine's addresses as its cloud reports them.
	Addresses []corev1.NodeAddress
}

// Node is a node as the cluster's API reports it.
type Node struct {
	Name  string
	UID   types.UID
	Ready bool
	// Renewed is its last sign of life.
	Renewed time.Time
}

// IsOpen reports whether any request may still be approved at the time now.
func (w Window) IsOpen(now time.Time) bool {
	switch {
	case w.Opened.IsZero() || now.Before(w.Opened):
		return false
	case w.Ready.IsZero():
		return now.Before(w.Opened.Add(clientWindow))
	}
	return now.Before(w.Ready.Add(servingWindow))
}

// isOpenForClients reports whether client certificates may still be approved: only until Ready.
func (w Window) isOpenForClients(now time.Time) bool { return w.Ready.IsZero() && w.IsOpen(now) }

func (s Snapshot) findNode(name string) (Node, bool) {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}

// machineOfNode returns the machine whose nodeRef is the node. If two machines refer to the node,
// it returns none.
func (s Snapshot) machineOfNode(n Node) (Machine, bool) {
	var found []Machine
	for _, m := range s.Machines {
		if m.isTrusted() && m.Node == n.Name && (m.UID == "" || m.UID == n.UID) {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return Machine{}, false
	}
	return found[0], true
}

func (m Machine) isTrusted() bool { return m.Namespace == "" || m.Namespace == MachineNamespace }

// isSilent reports whether the node gives no sign of life.
func (s Snapshot) isSilent(n Node) bool { return !n.Ready && s.Now.Sub(n.Renewed) > silentAfter }
