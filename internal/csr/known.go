package csr

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineNamespace is the only namespace whose Machines count (S6).
const MachineNamespace = "openshift-machine-api"

const (
	// clientWindow is how long after the begin of a resume nodes may come back as
	// strangers: what OpenShift tells its users to wait. Kubernetes remembers an
	// approved request for an hour, which is longer, so that C15 does not forget.
	clientWindow = 45 * time.Minute
	// servingWindow is how long after Ready serving certificates are looked after:
	// kubelets ask for them when they are back.
	servingWindow = 10 * time.Minute
	// silentAfter is how long a node's lease must not have been renewed until the node
	// counts as gone: what a kubelet's lease lasts.
	silentAfter = 40 * time.Second
	// clockSkew is how far clocks may differ.
	clockSkew = 10 * time.Second
	// A flood is more than so many open requests for each node (S5)...
	floodPerNode = 4
	// ...that were made within this time.
	floodWindow = time.Hour
)

// Snapshot is what requests are judged by.
type Snapshot struct {
	// Now is the time on the hub.
	Now    time.Time
	Window Window
	// Machines of the cluster, of one of the sources that the package names.
	Machines []Machine
	// Nodes are all nodes that the cluster has.
	Nodes []Node
	// Truncated is set when there were more requests than anybody would list.
	Truncated bool
	// ClientsOff is set when the cluster's own approver is told to leave client
	// certificates of nodes alone (C12).
	ClientsOff bool
}

// Window is the resume that requests must belong to.
type Window struct {
	// Opened is when the resume began.
	Opened time.Time
	// Ready is when the cluster was ready; zero while it is not.
	Ready time.Time
}

// Machine is what answers for a node.
type Machine struct {
	// Namespace is where a cluster keeps the Machine; empty for one of the hub's
	// own inventory.
	Namespace string
	// Node is the name of its node, and UID the node's if it is known.
	Node string
	UID  types.UID
	// Addresses are those of the machine, as its cloud knows them.
	Addresses []corev1.NodeAddress
}

// Node is a node as the cluster knows it.
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

// isOpenForClients is the narrower window for client certificates: until Ready.
func (w Window) isOpenForClients(now time.Time) bool { return w.Ready.IsZero() && w.IsOpen(now) }

func (k Snapshot) findNode(name string) (Node, bool) {
	for _, n := range k.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}

// machineOfNode returns the machine of the node: the one whose nodeRef it is. Two
// that claim it are none.
func (k Snapshot) machineOfNode(n Node) (Machine, bool) {
	var found []Machine
	for _, m := range k.Machines {
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
func (k Snapshot) isSilent(n Node) bool { return !n.Ready && k.Now.Sub(n.Renewed) > silentAfter }
