//go:build linux

package containernode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"hotspare.io/hotspare/internal/embedded/controlplane/kubeversion"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/node"
)

// leaseSeconds is how long a node counts as alive without a heartbeat, as for other local nodes.
const leaseSeconds = 16

// maxPods is the largest number of pods of a node, as on OpenShift.
const maxPods = 250

// kubeletFeatures are feature gates of the kubelet. The kubelet may lack rights that a kubelet of a
// whole computer has, such as those for lower OOM scores and for settings of the kernel.
var kubeletFeatures = map[string]bool{"KubeletInUserNamespace": true}

// runKubelet runs the kubelet until ctx ends.
func runKubelet(ctx context.Context, o Options, member *node.Membership, heartbeats *heartbeatGate) error {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(kubeletFeatures); err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	kubeversion.Report()
	server, err := newKubeletServer(o)
	if err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	dependencies, err := app.UnsecuredDependencies(ctx, server, utilfeature.DefaultFeatureGate)
	if err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	thaws := &thawDetector{}
	go thaws.noteRuns(ctx)
	if err := addClients(dependencies, member, heartbeats, thaws); err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	if err := app.Run(ctx, server, dependencies, utilfeature.DefaultFeatureGate); err != nil {
		return fmt.Errorf("running the kubelet: %w", err)
	}
	return nil
}

// addClients gives the kubelet clients that use the node's certificate, whichever is current.
func addClients(d *kubelet.Dependencies, member *node.Membership, heartbeats *heartbeatGate, thaws *thawDetector) error {
	config := member.ClientConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	signs := rest.CopyConfig(config)
	signs.Timeout = leaseSeconds * time.Second / 2
	signs.Wrap(heartbeats.wrap)
	signs.Wrap(thaws.wrapTransport)
	heartbeat, err := kubernetes.NewForConfig(signs)
	if err != nil {
		return err
	}
	d.KubeClient, d.EventClient, d.HeartbeatClient = client, client.CoreV1(), heartbeat
	d.OnHeartbeatFailure = func() {}
	return nil
}

func newKubeletServer(o Options) (*options.KubeletServer, error) {
	s, err := options.NewKubeletServer()
	if err != nil {
		return nil, err
	}
	f := &s.KubeletFlags
	f.KubeConfig = proxyKubeconfigPath // not read, because there are clients; its presence means that there is an API
	f.HostnameOverride = o.Machine.Name
	f.NodeIP = o.Machine.NodeAddress().String()
	f.RootDirectory = kubeletPath
	if !hasCgroups() {
		f.NodeLabels = map[string]string{machine.LabelUnmeasuredPods: ""}
	}
	f.CertDirectory = filepath.Join(kubeletPath, "pki")
	c := &s.KubeletConfiguration
	configureServing(c)
	configurePods(c, o)
	if err := configureResources(c); err != nil {
		return nil, err
	}
	c.NodeLeaseDurationSeconds = leaseSeconds
	c.NodeStatusUpdateFrequency = metav1.Duration{Duration: leaseSeconds * time.Second / 4}
	c.RegisterWithTaints = o.taints()
	return s, nil
}

// configureServing configures who may call the kubelet: the API server, and whom the cluster's RBAC
// allows.
func configureServing(c *kubeletconfig.KubeletConfiguration) {
	c.ReadOnlyPort, c.HealthzPort = 0, 0
	c.ServerTLSBootstrap = true
	c.Authentication.Anonymous.Enabled = false
	c.Authentication.Webhook.Enabled = true
	c.Authentication.X509.ClientCAFile = clusterCAPath
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
}

func configurePods(c *kubeletconfig.KubeletConfiguration, o Options) {
	c.ContainerRuntimeEndpoint = "unix://" + kubeletSocket
	c.ClusterDomain = "cluster.local"
	c.ClusterDNS = []string{o.ClusterDNS.String()}
	c.ResolverConfig = "/etc/resolv.conf"
	c.MaxPods = maxPods
	c.SerializeImagePulls = false
	c.VolumePluginDir = filepath.Join(kubeletPath, "volume-plugins")
	c.MakeIPTablesUtilChains = false // chains that kube-proxy has not used for years
}

// configureResources configures what a node of a shared computer does with its resources: it evicts
// no pods because the computer's disk is full, and leaves images to package imagecollector. Its pods
// together do not get the last of the memory: without a limit, one pod could use up that of the computer, and the kernel
// might then end the hub.
func configureResources(c *kubeletconfig.KubeletConfiguration) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return fmt.Errorf("reading the size of the memory: %w", err)
	}
	c.SystemReserved = map[string]string{"memory": reservedMemory(info.Totalram * uint64(info.Unit)).String()}
	c.FailSwapOn = false
	c.FailCgroupV1 = false
	c.CgroupDriver = "cgroupfs"
	c.EvictionHard = map[string]string{"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"}
	c.ImageGCHighThresholdPercent = 100
	switch {
	case !hasCgroups():
		c.CgroupsPerQOS, c.EnforceNodeAllocatable = false, nil
	case hasPIDController("/proc/cgroups"):
		c.PodPidsLimit = podProcesses
	}
	return nil
}

// reservedMemory is what the pods of a worker leave to other programs of the computer, of which total is the memory in bytes:
// a gibibyte, or half of a small memory.
func reservedMemory(total uint64) *resource.Quantity {
	return resource.NewQuantity(int64(min(1<<30, total/2)), resource.BinarySI) //nolint:gosec // at most a gibibyte
}

// podProcesses is how many processes and threads a pod may have, so that one cannot use up those of
// this computer. It is the default of OpenShift.
const podProcesses = 4096

// hasPIDController reports whether the kernel can limit the number of processes; path is that of
// /proc/cgroups.
func hasPIDController(path string) bool {
	raw, _ := os.ReadFile(path) // without it, there is no such controller
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "pids" { // name, hierarchy, groups, enabled
			return fields[3] == "1"
		}
	}
	return false
}
