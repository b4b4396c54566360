// Package machine defines a local machine: a folder and a process.
//
// It is the contract between the store that owns machines (internal/cloud/local), the installer
// that fills their disks, and the program that runs in them (internal/embedded/spoke). It imports none of
// them.
//
//	DIR/machine.json        Config: describes the machine; written by the store
//	DIR/disk/               the machine's disk; filled by the installer, then used by the machine
//	DIR/disk/pki/           control plane: ca.crt ca.key sa.key (service accounts) front-proxy-ca.{crt,key}
//	DIR/disk/pull-secret.json   control plane: the registry credentials of the cluster, as in a
//	                        .dockerconfigjson; absent if it has none
//	DIR/disk/additional-trust-bundle.pem   control plane: certificates of authorities that the cluster trusts
//	                        in addition to those of the system; absent if there are none
//	DIR/disk/bootstrap.kubeconfig   worker: its credential for joining, as for a kubelet
//	DIR/disk/pki/kubelet-client.pem   a node's client certificate with its key; the node requests it, except that
//	                        a worker that is added later finds its first certificate there
//	DIR/disk/installed    control plane: exists from the end of the installation; written by the installer
//	DIR/disk/pods/        a folder for each pod whose image the machine runs; deleted with its process
//	DIR/disk/node/        a worker that runs containers: what its node keeps between starts, as in /var
//	DIR/network/socket    a control plane whose workers run containers: connects them to the network of pods
//	DIR/network/image-token    a control plane whose workers run containers: see EnsureImageToken
//	DIR/machine.log         the output of the process
//	DIR/problem             why the node of a worker that runs containers cannot become ready; see WriteProblem
//	DIR/lock                locked (flock) by the process for as long as it lives; contains its pid
//	DIR/quiesced            exists while a control plane that was told to freeze can be frozen; see CommandFreeze
//	DIR/faults/             an empty file for each fault of the machine; see AddInjection and RemoveInjection
//	DIR/disk.lost/          the disk, while the machine has the fault disk-lost
//
// The store writes commands to the standard input of a control plane, a line for each, and passes it the socket of its
// API: see APISocketVariable.
//
// Faults are for demonstrations and tests. The program in the machine applies them, from its start
// and while it runs; the store does not know about them and observes what it would observe of a
// machine that is really broken. For example, a machine that hangs still ends with the program that
// started it.
package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Role is the role of a machine in its cluster.
type Role string

// The roles of a machine.
const (
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
)

// Commands to a control plane. Workers need none.
const (
	// CommandFreeze prepares a control plane for being frozen: it suspends what must not be frozen in the middle
	// of its work, and then creates the file QuiescedPath. A control plane that is starting does so when it has
	// started.
	CommandFreeze = "freeze"
	// CommandThaw undoes CommandFreeze, after the process was thawed: when the API can be used, the control plane
	// removes the file.
	CommandThaw = "thaw"
)

// APISocketVariable is an environment variable. The value 1 means that the file descriptor APISocketFile of a control
// plane is the socket on which it serves the API. The store of machines keeps the socket, too.
const (
	APISocketVariable = "HOTSPARE_API_SOCKET"
	APISocketFile     = 3
)

// CrashExitCode is the exit code of a process of a machine that crashed and could not end by SIGKILL: the code with which
// a shell reports that signal.
const CrashExitCode = 137

// SimulatedPods is the type of a condition of nodes whose pods are not containers: its message says
// why.
const SimulatedPods corev1.NodeConditionType = "SimulatedPods"

// LabelUnmeasuredPods is a label of nodes that run containers without control groups, so that the kubelet measures in place of a
// pod all that its user runs on this computer.
const LabelUnmeasuredPods = "hotspare.io/unmeasured-pods"

// ContainerRuntimeUnhealthy is the type of a condition of nodes that run containers, named as node-problem-detector names
// it: it is True while containerd does not run, and its message says why.
const ContainerRuntimeUnhealthy corev1.NodeConditionType = "ContainerRuntimeUnhealthy"

// Config describes a machine. It does not change after the machine was created.
type Config struct {
	// Name is unique on this computer: <infraID>-master-0, <infraID>-worker-1. It is also the name
	// of the node.
	Name string `json:"name"`
	// InfraID is the infraID of the machine's cluster, as in the installer's metadata.json.
	InfraID string `json:"infraID"`
	Role    Role   `json:"role"`
	// APIPort is the loopback port of the cluster's API: the control plane serves it, workers
	// connect to it.
	APIPort int `json:"apiPort"`
	// ClusterName and BaseDomain are the values of the install-config.
	ClusterName string `json:"clusterName"`
	BaseDomain  string `json:"baseDomain"`
	// Workers is the number of workers of the cluster. If it is 0, the control plane runs pods.
	Workers int `json:"workers"`
	// CertificateDuration is the lifetime of the certificates that the cluster signs for its nodes.
	CertificateDuration metav1.Duration `json:"certificateDuration"`
	// OpenShiftVersion is the version of the release image if that is an OpenShift release, as in
	// "4.18.20"; empty for a plain Kubernetes cluster.
	OpenShiftVersion string `json:"openShiftVersion,omitempty"`
	// Owner is the ClusterDeployment that the machine was created for, as namespace/name; empty if
	// there was none. No other ClusterDeployment can start, stop or destroy the machine.
	Owner string `json:"owner,omitempty"`
	// Taints are the taints that a worker's node registers with.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Containers is true if the workers of the cluster run the containers of pods. Otherwise they
	// only report that the pods run.
	Containers bool `json:"containers,omitempty"`
	// ContainersObstacle is why Containers is false although containers were wanted, and what to do
	// about it. It is a clause without a period.
	ContainersObstacle string `json:"containersObstacle,omitempty"`
	// Images are the images that a worker that runs containers pulls before its node is ready for the first time.
	Images []string `json:"images,omitempty"`
	// Index is the number of a worker that runs containers, unique in its cluster: from 0 to
	// MaxIndex. Its addresses are derived from it.
	Index int `json:"index,omitempty"`
}

// NodeAddresses returns the addresses of the machine and of its node.
func (c Config) NodeAddresses() []corev1.NodeAddress {
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: c.NodeAddress().String()},
		{Type: corev1.NodeHostName, Address: c.Name},
		{Type: corev1.NodeInternalDNS, Address: c.Name},
	}
}

// ConfigPath and the functions that follow return paths below dir, a machine's folder.
func ConfigPath(dir string) string    { return filepath.Join(dir, "machine.json") }
func DiskPath(dir string) string      { return filepath.Join(dir, "disk") }
func PKIPath(dir string) string       { return filepath.Join(dir, "disk", "pki") }
func BootstrapPath(dir string) string { return filepath.Join(dir, "disk", "bootstrap.kubeconfig") }
func NodeCertificatePath(dir string) string {
	return filepath.Join(PKIPath(dir), "kubelet-client.pem")
}
func PullSecretPath(dir string) string { return filepath.Join(dir, "disk", "pull-secret.json") }
func TrustBundlePath(dir string) string {
	return filepath.Join(dir, "disk", "additional-trust-bundle.pem")
}
func InstalledPath(dir string) string     { return filepath.Join(dir, "disk", "installed") }
func PodsPath(dir string) string          { return filepath.Join(dir, "disk", "pods") }
func NodePath(dir string) string          { return filepath.Join(dir, "disk", "node") }
func NetworkPath(dir string) string       { return filepath.Join(dir, "network") }
func NetworkSocketPath(dir string) string { return filepath.Join(dir, "network", "socket") }
func LogPath(dir string) string           { return filepath.Join(dir, "machine.log") }
func LockPath(dir string) string          { return filepath.Join(dir, "lock") }
func QuiescedPath(dir string) string      { return filepath.Join(dir, "quiesced") }

// ControlPlaneName returns the name of the control plane of a cluster.
func ControlPlaneName(infraID string) string { return infraID + "-master-0" }

// ImagesPath returns the folder of the images that all machines on this computer share (package
// imagestore); store is the folder that contains a folder for each cluster. Names in it that start
// with "." are no clusters.
func ImagesPath(store string) string { return filepath.Join(store, ".images") }

// ImageCachePath returns the folder in which all machines on this computer keep the images of other
// registries (package pullthrough); store is as for ImagesPath.
func ImageCachePath(store string) string { return filepath.Join(store, ".image-cache") }

// LoadConfig reads the Config of the machine in dir.
func LoadConfig(dir string) (Config, error) {
	var c Config
	raw, err := os.ReadFile(ConfigPath(dir))
	if err != nil {
		return c, fmt.Errorf("reading machine: %w", err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("reading machine %s: %w", dir, err)
	}
	return c, nil
}
