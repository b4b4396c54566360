// Package machine is what a local machine is: a folder and a process.
//
// It is the contract between the store that owns machines (internal/cloud/local),
// the installer that fills their disks, and the program that runs in them
// (internal/spoke). It imports neither of them.
//
//	DIR/machine.json        Config: what the machine is; written by the store
//	DIR/disk/               the machine's disk; filled by the installer, then the machine's own
//	DIR/disk/pki/           control plane: ca.crt ca.key sa.key (service accounts) front-proxy-ca.{crt,key}
//	DIR/disk/bootstrap.kubeconfig   worker: how it joins, as a kubelet does
//	DIR/disk/pki/kubelet-client.pem   a node's client certificate with its key; its own, but a worker
//	                        that comes later finds its first one there
//	DIR/disk/installed    control plane: there from the end of the installation on; written by the installer
//	DIR/disk/pods/        a folder for each pod whose image the machine runs; gone with its process
//	DIR/machine.log         what the process prints
//	DIR/lock                held (flock) by the process for as long as it lives; contains its pid
//	DIR/faults/             an empty file for each Fault that the machine has; made by Break, removed by Heal
//	DIR/disk.lost/          the disk, while fault disk-lost keeps it away
//
// Faults are for demonstrations and tests. The program in the machine makes them
// real, from its start on and while it runs; the store knows nothing of them and
// sees what it would see of a machine that is really broken. That is: a machine that
// hangs still ends with the program that holds it.
package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Role says what a machine does in its cluster.
type Role string

// The two roles a machine can have.
const (
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
)

// Config says what a machine is. It does not change after the machine was created.
type Config struct {
	// Name is unique on this computer: <infraID>-master-0, <infraID>-worker-1. It is the node's name too.
	Name string `json:"name"`
	// InfraID names the cluster the machine belongs to, as in the installer's metadata.json.
	InfraID string `json:"infraID"`
	Role    Role   `json:"role"`
	// APIPort is the loopback port of the cluster's API: served by the control plane, dialled by a worker.
	APIPort int `json:"apiPort"`
	// ClusterName and BaseDomain are those of the install-config.
	ClusterName string `json:"clusterName"`
	BaseDomain  string `json:"baseDomain"`
	// Workers is how many workers the cluster has. Without any, its control plane runs pods.
	Workers int `json:"workers"`
	// CertificateDuration is how long the certificates live that the cluster signs for its nodes.
	CertificateDuration metav1.Duration `json:"certificateDuration"`
	// OpenShiftVersion is the version of the release image when that is an OpenShift
	// release, as in "4.18.20"; empty for a plain Kubernetes cluster.
	OpenShiftVersion string `json:"openShiftVersion,omitempty"`
	// Owner is the ClusterDeployment that the machine was made for, as namespace/name; empty
	// if there was none. Nobody else moves or destroys the machine.
	Owner string `json:"owner,omitempty"`
	// Taints are what a worker's node registers with.
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// Address is where all machines are.
const Address = "127.0.0.1"

// NodeAddresses are those of the machine, and of the node that it is.
func (c Config) NodeAddresses() []corev1.NodeAddress {
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: Address},
		{Type: corev1.NodeHostName, Address: c.Name},
		{Type: corev1.NodeInternalDNS, Address: c.Name},
	}
}

// Paths below a machine's folder.
func ConfigPath(dir string) string    { return filepath.Join(dir, "machine.json") }
func DiskPath(dir string) string      { return filepath.Join(dir, "disk") }
func PKIPath(dir string) string       { return filepath.Join(dir, "disk", "pki") }
func BootstrapPath(dir string) string { return filepath.Join(dir, "disk", "bootstrap.kubeconfig") }
func NodeCertificatePath(dir string) string {
	return filepath.Join(PKIPath(dir), "kubelet-client.pem")
}
func InstalledPath(dir string) string { return filepath.Join(dir, "disk", "installed") }
func PodsPath(dir string) string      { return filepath.Join(dir, "disk", "pods") }
func LogPath(dir string) string       { return filepath.Join(dir, "machine.log") }
func LockPath(dir string) string      { return filepath.Join(dir, "lock") }

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
