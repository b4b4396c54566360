//go:build linux

package containernode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/podnetwork"
)

// Paths in the node's root folder.
const (
	containerdConfigPath = "/etc/containerd/config.toml"
	containerdSocket     = "/run/containerd/containerd.sock"
	kubeletSocket        = "/run/kubelet/containerd.sock" // the kubelet's way to containerdSocket: see package runtimesocket
	registryHostsPath    = "/etc/containerd/certs.d/_default/hosts.toml"
	clusterCAPath        = "/etc/kubernetes/ca.crt"
	proxyKubeconfigPath  = "/etc/kubernetes/kube-proxy.kubeconfig"
	proxyConfigPath      = "/etc/kubernetes/kube-proxy.json"
	kubeletPath          = "/var/lib/kubelet"
)

// containerdConfig is in version 2 of the format, which containerd reads from 1.5 to 2.x.
var containerdConfig = template.Must(template.New("").Parse(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]

[grpc]
  address = "{{.Socket}}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.PauseImage}}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_cgroup = {{.DisableCgroup}}
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.Plugins}}"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        NoNewKeyring = {{.NoKeyrings}}
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
`))

// writeConfiguration writes the files in /etc that the node's programs read.
func writeConfiguration(o Options, p programs) error {
	var containerd bytes.Buffer
	err := containerdConfig.Execute(&containerd, struct {
		Socket, PauseImage, Plugins string
		DisableCgroup, NoKeyrings   bool
	}{containerdSocket, pauseImage, p.plugins, !hasCgroups(), isUserNamespace()}) // a user may have 200 keyrings in all, one for each container
	if err != nil {
		return fmt.Errorf("writing %s: %w", containerdConfigPath, err)
	}
	network, err := json.Marshal(podNetworkConfig(o.Machine))
	if err != nil {
		return fmt.Errorf("writing the configuration of the network: %w", err)
	}
	proxy, err := json.Marshal(proxyConfig(o.Machine, p.proxyMode))
	if err != nil {
		return fmt.Errorf("writing %s: %w", proxyConfigPath, err)
	}
	kubeconfig, err := clientcmd.Write(proxyKubeconfig(o))
	if err != nil {
		return fmt.Errorf("writing %s: %w", proxyKubeconfigPath, err)
	}
	token, err := machine.EnsureImageToken(controlPlaneDir(o.Dir, o.Machine))
	if err != nil {
		return err
	}
	if err := writeFile(registryHostsPath, registryHosts(token), privateMode); err != nil {
		return err
	}
	hosts := "127.0.0.1 localhost\n::1 localhost\n" + o.Machine.NodeAddress().String() + " " + o.Machine.Name + "\n"
	for path, content := range map[string][]byte{
		containerdConfigPath:             containerd.Bytes(),
		"/etc/cni/net.d/10-pod.conflist": network,
		clusterCAPath:                    o.Bootstrap.CAData,
		proxyConfigPath:                  proxy,
		proxyKubeconfigPath:              kubeconfig,
		"/etc/hosts":                     []byte(hosts),
		"/etc/hostname":                  []byte(o.Machine.Name + "\n"),
		"/etc/machine-id":                []byte(machineID(o.Machine.Name) + "\n"),
		"/etc/resolv.conf":               []byte("nameserver " + machine.Gateway.String() + "\n"),
	} {
		if err := writeFile(path, content, publicMode); err != nil {
			return err
		}
	}
	return nil
}

// registryHosts returns the configuration with which containerd pulls images from this computer's store first, and then
// from their registry. The token shows the store that containerd asks, and not a pod.
func registryHosts(token string) []byte {
	const format = "[host.\"http://%[1]s:%[2]d\"]\n  capabilities = [\"pull\", \"resolve\"]\n  [host.\"http://%[1]s:%[2]d\".header]\n    %[3]s = [%[4]q]\n"
	return fmt.Appendf(nil, format, machine.Gateway, machine.GatewayImagePort, machine.ImageTokenHeader, token)
}

// Modes of files in /etc. Tools of containers read public ones.
const (
	publicMode  = 0o644
	privateMode = 0o600
)

func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// podNetworkConfig returns the configuration of the CNI plugins. Each pod has a link of its own to
// the node, without a bridge, so that all packets pass the node's rules for Services.
func podNetworkConfig(c machine.Config) map[string]any {
	return map[string]any{
		"cniVersion": "0.4.0", // the latest that the plugins of containerd 1.6's time have
		"name":       "pods",
		"plugins": []map[string]any{
			{
				"type": "ptp",
				"mtu":  podnetwork.MTU,
				"ipam": map[string]any{
					"type":    "host-local",
					"dataDir": "/run/cni/addresses", // addresses are free after a restart: no pod survives it
					"ranges":  [][]map[string]any{{{"subnet": c.PodRange().String()}}},
					"routes":  []map[string]any{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}},
		},
	}
}

// proxyConfig returns the configuration of kube-proxy.
func proxyConfig(c machine.Config, mode string) map[string]any {
	return map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               mode,
		"hostnameOverride":   c.Name,
		"clusterCIDR":        machine.PodNetwork.String(),
		"clientConnection":   map[string]any{"kubeconfig": proxyKubeconfigPath},
		"bindAddress":        c.NodeAddress().String(),
		"healthzBindAddress": "127.0.0.1:10256",
		"metricsBindAddress": "127.0.0.1:10249",
		// These settings are this computer's, not those of the node's namespaces.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
}

// proxyKubeconfig returns the kubeconfig of kube-proxy, which uses the connections of the node: see
// registerNodeTransport.
func proxyKubeconfig(o Options) clientcmdapi.Config {
	const name = "node"
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: o.Bootstrap.Host, CertificateAuthorityData: o.Bootstrap.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {AuthProvider: &clientcmdapi.AuthProviderConfig{Name: nodeAuthProvider}}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}
