package recipes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// The stand-in for kind v0.33.0. Source: pkg/cmd/kind and pkg/cluster/internal of that version.

func init() {
	registerTool("kind", runKind)
	registerParameters("kind", map[string]string{
		"image": "kindest/node:v1.36.1", "workers": "2", "feature-gates": "A=true,B=false", "registry-config": "/etc/containerd/certs.d",
	})
}

const kindLabel = "io.x-k8s.io/kind.cluster"

func runKind(t toolCall) int {
	if len(t.Args) < 2 {
		return t.fail(1, "ERROR: Subcommand is required")
	}
	command := t.Args[0] + " " + t.Args[1]
	run, ok := map[string]func(toolCall, *pflag.FlagSet) int{
		"create cluster": kindCreate, "delete cluster": kindDelete, "load docker-image": kindLoad, "export logs": kindLogs,
	}[command]
	if !ok {
		return t.fail(1, "ERROR: unknown command %q for \"kind\"", command)
	}
	flags := pflag.NewFlagSet(command, pflag.ContinueOnError)
	flags.SetOutput(t.Stderr)
	t.Args = t.Args[2:]
	return run(t, flags)
}

// kindConfig is the part of kind.x-k8s.io/v1alpha4 Cluster that the recipe uses; other fields fail.
type kindConfig struct {
	Kind         string          `json:"kind"`
	APIVersion   string          `json:"apiVersion"`
	FeatureGates map[string]bool `json:"featureGates"`
	Networking   struct {
		DisableDefaultCNI bool   `json:"disableDefaultCNI"`
		KubeProxyMode     string `json:"kubeProxyMode"`
		IPFamily          string `json:"ipFamily"`
		PodSubnet         string `json:"podSubnet"`
		ServiceSubnet     string `json:"serviceSubnet"`
	} `json:"networking"`
	Nodes []struct {
		Role        string `json:"role"`
		ExtraMounts []struct {
			HostPath      string `json:"hostPath"`
			ContainerPath string `json:"containerPath"`
		} `json:"extraMounts"`
	} `json:"nodes"`
}

func kindCreate(t toolCall, flags *pflag.FlagSet) int {
	name := flags.StringP("name", "n", "", "")
	config := flags.String("config", "", "")
	image := flags.String("image", "", "")
	_ = flags.Bool("retain", false, "")
	wait := flags.Duration("wait", 0, "")
	kubeconfig := flags.String("kubeconfig", "", "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(1, "ERROR: %v %v", err, flags.Args())
	}
	if len(t.containers(kindLabel, *name)) > 0 {
		return t.fail(1, "ERROR: failed to create cluster: node(s) already exist for a cluster with the name %q", *name)
	}
	c, err := t.readKindConfig(*config)
	if err != nil {
		return t.fail(1, "ERROR: failed to create cluster: %v", err)
	}
	count := map[string]int{}
	for _, n := range c.Nodes {
		count[n.Role]++
		node := *name + "-" + n.Role
		if count[n.Role] > 1 {
			node = fmt.Sprintf("%s%d", node, count[n.Role])
		}
		if len(node) > 63 {
			return t.fail(1, "ERROR: failed to create cluster: invalid hostname %s", node)
		}
		labels := map[string]string{kindLabel: *name, "io.x-k8s.io/kind.role": n.Role}
		if err := t.runContainer(*image, node, labels); err != nil {
			return t.fail(1, "ERROR: failed to create cluster: %v", err)
		}
	}
	for _, progress := range []string{"Writing configuration", "Starting control-plane", "Installing StorageClass", "Joining worker nodes"} {
		fmt.Fprintln(t.Stderr, " ✓ "+progress)
		t.step()
	}
	if c.Networking.DisableDefaultCNI && *wait > 0 {
		time.Sleep(min(*wait, time.Second)) // no node becomes Ready, which kind only warns of
		fmt.Fprintln(t.Stderr, " • WARNING: Timed out waiting for Ready")
	}
	if err := t.changeKubeconfig(*kubeconfig, "kind-"+*name, "https://127.0.0.1:40000"); err != nil {
		return t.fail(1, "ERROR: failed to create cluster: failed to lock config file: %v", err)
	}
	return 0
}

func (t toolCall) readKindConfig(path string) (c kindConfig, err error) {
	var raw []byte
	if path == "-" {
		raw, err = io.ReadAll(t.Stdin)
	} else {
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return c, err
	}
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		return c, fmt.Errorf("unable to decode config: %w\n%s", err, raw)
	}
	if c.Kind != "Cluster" || c.APIVersion != "kind.x-k8s.io/v1alpha4" {
		return c, fmt.Errorf("unknown apiVersion: %s or kind: %s", c.APIVersion, c.Kind)
	}
	controlPlanes := 0
	for _, n := range c.Nodes {
		switch n.Role {
		case "control-plane":
			controlPlanes++
		case "worker":
		default:
			return c, fmt.Errorf("%q is not a valid node role", n.Role)
		}
	}
	if controlPlanes == 0 {
		return c, fmt.Errorf("must have at least one control-plane node")
	}
	return c, nil
}

// kindDelete succeeds if the cluster does not exist, and deletes the nodes even if it cannot lock the
// kubeconfig, which it then reports as an error.
func kindDelete(t toolCall, flags *pflag.FlagSet) int {
	name := flags.StringP("name", "n", "kind", "")
	kubeconfig := flags.String("kubeconfig", "", "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(1, "ERROR: %v %v", err, flags.Args())
	}
	fmt.Fprintf(t.Stderr, "Deleting cluster %q ...\n", *name)
	err := t.changeKubeconfig(*kubeconfig, "kind-"+*name, "")
	for _, c := range t.containers(kindLabel, *name) {
		t.removeContainer(c.Names)
	}
	if err != nil {
		return t.fail(1, "ERROR: failed to delete cluster %q: failed to lock config file: %v", *name, err)
	}
	return 0
}

func kindLoad(t toolCall, flags *pflag.FlagSet) int {
	name := flags.StringP("name", "n", "kind", "")
	_ = flags.StringSlice("nodes", nil, "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() < 1 {
		return t.fail(1, "ERROR: a list of image names is required: %v", err)
	}
	if strings.HasPrefix(flags.Arg(0), "missing") {
		return t.fail(1, "ERROR: image: %q not present locally", flags.Arg(0))
	}
	if len(t.containers(kindLabel, *name)) == 0 {
		return t.fail(1, "ERROR: no nodes found for cluster %q", *name)
	}
	return 0
}

func kindLogs(t toolCall, flags *pflag.FlagSet) int {
	name := flags.StringP("name", "n", "kind", "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() != 1 {
		return t.fail(1, "ERROR: accepts at most 1 arg(s): %v", err)
	}
	if len(t.containers(kindLabel, *name)) == 0 {
		return t.fail(1, "ERROR: unknown cluster %q", *name)
	}
	for _, c := range t.containers(kindLabel, *name) {
		for _, file := range []string{"kubelet.log", "containerd.log", "inspect.json"} {
			path := filepath.Join(flags.Arg(0), c.Names, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("log of "+c.Names+"\n"), 0o600)); err != nil {
				return t.fail(1, "ERROR: %v", err)
			}
		}
	}
	return 0
}
