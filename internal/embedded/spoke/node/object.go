package node

import (
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/internal/embedded/controlplane/kubeversion"
	local "hotspare.io/hotspare/internal/embedded/machine"
)

// address is the address of all nodes.
const address = local.Address

// heartbeatInterval is how often the heartbeat times in a node's conditions are refreshed when
// nothing else changes. The node's Lease reports that the node is alive.
const heartbeatInterval = time.Minute

// newNode returns the Node that a node called name registers. It does not set the node's role:
// NodeRestriction does not let a node set those labels.
func newNode(name string, taints []corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   runtime.GOOS,
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Spec: corev1.NodeSpec{Taints: taints},
	}
}

// bootInfo describes a node during the current boot.
type bootInfo struct {
	name   string
	bootID string
	port   int32
	// simulationCause is as in Options.
	simulationCause string
}

// nextNodeStatus returns the desired status of the node, given its current status, and whether that
// should be written.
func (b bootInfo) nextNodeStatus(old corev1.NodeStatus, now metav1.Time) (corev1.NodeStatus, bool) {
	s := *old.DeepCopy()
	s.Capacity = nodeCapacity()
	s.Allocatable = nodeCapacity()
	s.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: address},
		{Type: corev1.NodeHostName, Address: b.name},
		{Type: corev1.NodeInternalDNS, Address: b.name},
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = b.port
	s.NodeInfo = corev1.NodeSystemInfo{
		MachineID:               b.name,
		SystemUUID:              b.name,
		BootID:                  b.bootID,
		KernelVersion:           "none",
		OSImage:                 "hotspare local machine",
		ContainerRuntimeVersion: "none://0",
		KubeletVersion:          kubeversion.Get(),
		OperatingSystem:         runtime.GOOS,
		Architecture:            runtime.GOARCH,
	}
	told := true
	for _, c := range b.nodeConditions() {
		told = setNodeCondition(&s, c, now) && told
	}
	if told && equality.Semantic.DeepEqual(old, s) {
		return old, false
	}
	for i := range s.Conditions {
		s.Conditions[i].LastHeartbeatTime = now
	}
	return s, true
}

// setNodeCondition sets c in s. It reports whether the condition was already present, with the same
// status and a recent heartbeat.
func setNodeCondition(s *corev1.NodeStatus, c corev1.NodeCondition, now metav1.Time) bool {
	i := slices.IndexFunc(s.Conditions, func(o corev1.NodeCondition) bool { return o.Type == c.Type })
	if i < 0 {
		c.LastTransitionTime = now
		s.Conditions = append(s.Conditions, c)
		return false
	}
	old := &s.Conditions[i]
	fresh := old.Status == c.Status && now.Sub(old.LastHeartbeatTime.Time) < heartbeatInterval
	if old.Status != c.Status {
		old.LastTransitionTime = now
	}
	old.Status, old.Reason, old.Message = c.Status, c.Reason, c.Message
	return fresh
}

// MeasuresPods reports whether the pods of a node are containers of which its kubelet measures what each uses.
func MeasuresPods(n *corev1.Node) bool {
	_, isUnmeasured := n.Labels[local.LabelUnmeasuredPods]
	return !isUnmeasured && !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == local.SimulatedPods && c.Status == corev1.ConditionTrue
	})
}

func (b bootInfo) nodeConditions() []corev1.NodeCondition {
	return []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "The machine is up."},
		{Type: local.SimulatedPods, Status: corev1.ConditionTrue, Reason: b.simulationReason(), Message: explainSimulation(b.simulationCause)},
	}
}

func (b bootInfo) simulationReason() string {
	if b.simulationCause == "" {
		return "ContainersNotRequested"
	}
	return "ContainersUnavailable"
}

// nodeCapacity returns a capacity that is large enough for any test: pods of local nodes use no
// resources.
func nodeCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("8"),
		corev1.ResourceMemory:           resource.MustParse("32Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("250"),
	}
}
