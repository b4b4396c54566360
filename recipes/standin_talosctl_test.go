package recipes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// The stand-in for talosctl v1.13 with the Docker provisioner. Source: cmd/talosctl/cmd/mgmt/cluster and
// pkg/provision/providers/docker of that version.

func init() {
	registerTool("talosctl", runTalosctl)
	registerParameters("talosctl", map[string]string{
		"image": "ghcr.io/siderolabs/talos:v1.13.4", "kubernetes-version": "v1.36.1", "workers": "2", "cni-manifest": "https://example.com/cilium.yaml?a=b",
		"registry-mirror": "docker.io=http://10.5.0.1:5000,ghcr.io=http://10.5.0.1:5001",
	})
}

const talosLabel = "talos.cluster.name"

func runTalosctl(t toolCall) int {
	command := strings.Join(t.Args[:min(len(t.Args), 3)], " ")
	flags := pflag.NewFlagSet(command, pflag.ContinueOnError)
	flags.SetOutput(t.Stderr)
	name := flags.String("name", "talos-default", "")
	state := flags.String("state", filepath.Join(t.Getenv("HOME"), ".talos", "clusters"), "")
	switch {
	case command == "cluster create docker":
		t.Args = t.Args[3:]
		return talosCreate(t, flags, name, state)
	case strings.HasPrefix(command, "cluster destroy"):
		t.Args = t.Args[2:]
		return talosDestroy(t, flags, name, state)
	}
	return t.fail(1, "unknown command %q for \"talosctl\"", command)
}

func talosCreate(t toolCall, flags *pflag.FlagSet, name, state *string) int {
	workers := flags.Int("workers", 1, "")
	subnet := flags.String("subnet", "10.5.0.0/24", "")
	talosconfig := flags.String("talosconfig-destination", filepath.Join(t.Getenv("HOME"), ".talos", "config"), "")
	version := flags.String("kubernetes-version", "1.36.0", "")
	image := flags.String("image", "", "")
	patches := flags.StringArray("config-patch", nil, "")
	mirrors := flags.StringSlice("registry-mirror", nil, "")
	for _, f := range []string{"cpus-controlplanes", "cpus-workers", "memory-controlplanes", "memory-workers", "host-ip"} {
		_ = flags.String(f, "", "")
	}
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(1, "%v %v", err, flags.Args())
	}
	for _, p := range *patches {
		var patch struct {
			Cluster struct {
				Network struct {
					CNI struct {
						Name string   `json:"name"`
						URLs []string `json:"urls"`
					} `json:"cni"`
				} `json:"network"`
			} `json:"cluster"`
		}
		if err := json.Unmarshal([]byte(p), &patch); err != nil {
			return t.fail(1, "error parsing config patch: %v: %s", err, p)
		}
		if cni := patch.Cluster.Network.CNI; cni.Name != "custom" || len(cni.URLs) != 1 {
			return t.fail(1, "error parsing config patch: CNI %v", cni)
		}
	}
	for _, m := range *mirrors {
		if !strings.Contains(m, "=") {
			return t.fail(1, "invalid registry mirror spec: %q", m)
		}
	}
	if strings.HasPrefix(*version, "v") {
		return t.fail(1, "error parsing Kubernetes version %q", *version)
	}
	folder := filepath.Join(*state, *name)
	if _, err := os.Stat(folder); err == nil {
		return t.fail(1, "state directory %q already exists, is the cluster %q already running? remove cluster state with talosctl cluster destroy", folder, *name)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return t.fail(1, "%v", err)
	}
	t.step()
	return t.createTalosCluster(*name, *subnet, folder, *talosconfig, *image, *workers)
}

func (t toolCall) createTalosCluster(name, subnet, folder, talosconfig, image string, workers int) int {
	for _, network := range t.list("docker", "networks") {
		if r, _ := t.getDocker("networks", network); network != name && r.Subnet == subnet {
			return t.fail(1, "Error response from daemon: invalid pool request: Pool overlaps with other one on this address space")
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "state.yaml"), []byte("provisioner: docker\n"), 0o600); err != nil {
		return t.fail(1, "%v", err)
	}
	t.putDocker("networks", name, dockerResource{Subnet: subnet, Labels: map[string]string{talosLabel: name, "talos.owned": "true"}})
	for i := range workers + 1 {
		node, role := name+"-controlplane-1", "controlplane"
		if i > 0 {
			node, role = fmt.Sprintf("%s-worker-%d", name, i), "worker"
		}
		if len(node) > 63 {
			return t.fail(1, "invalid hostname %s", node)
		}
		if err := t.runContainer(image, node, map[string]string{talosLabel: name, "talos.owned": "true", "talos.type": role}); err != nil {
			return t.fail(1, "%v", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(talosconfig), 0o700); err != nil {
		return t.fail(1, "%v", err)
	}
	if err := os.WriteFile(talosconfig, []byte("context: "+name+"\n"), 0o600); err != nil {
		return t.fail(1, "%v", err)
	}
	for _, progress := range []string{"waiting for Talos API (to bootstrap the cluster)", "waiting for etcd to be healthy", "waiting for all k8s nodes to report ready"} {
		fmt.Fprintln(t.Stderr, progress)
		t.step()
	}
	// talosctl renames the new context if the kubeconfig has one of that name.
	context := "admin@" + name
	if old, err := os.ReadFile(t.kubeconfigPath("")); err == nil && strings.Contains(string(old), context) {
		context += "-1"
	}
	if err := t.mergeKubeconfig("", context, "https://127.0.0.1:40002"); err != nil {
		return t.fail(1, "error merging kubeconfig: %v", err)
	}
	return 0
}

// talosDestroy succeeds if there is no such cluster.
func talosDestroy(t toolCall, flags *pflag.FlagSet, name, state *string) int {
	provisioner := flags.String("provisioner", "docker", "")
	_ = flags.BoolP("force", "f", false, "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 || *provisioner != "docker" {
		return t.fail(1, "%v %v %s", err, flags.Args(), *provisioner)
	}
	for _, c := range t.containers(talosLabel, *name) {
		t.removeContainer(c.Names)
	}
	if _, ok := t.getDocker("networks", *name); ok {
		t.remove("docker", "networks", *name)
		t.step()
	}
	if err := os.RemoveAll(filepath.Join(*state, *name)); err != nil {
		return t.fail(1, "%v", err)
	}
	return 0
}
