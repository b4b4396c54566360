package recipes

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// The stand-in for k3d v5.8. Source: k3d.io/stable/usage/commands, and cmd/cluster and pkg/client of that
// version.

func init() {
	registerTool("k3d", runK3d)
	registerParameters("k3d", map[string]string{
		"image": "rancher/k3s:v1.36.1-k3s1", "agents": "2", "cni": "none", "disable": "traefik,metrics-server", "memory": "2g", "registry-config": os.DevNull,
	})
}

const k3dLabel, k3dRole = "k3d.cluster", "k3d.role"

func runK3d(t toolCall) int {
	if len(t.Args) < 2 {
		return t.fail(1, "Error: accepts a command")
	}
	command := t.Args[0] + " " + t.Args[1]
	run, ok := map[string]func(toolCall, *pflag.FlagSet) int{
		"cluster create": k3dCreate, "cluster delete": k3dDelete, "cluster start": k3dStart, "cluster stop": k3dStop,
		"kubeconfig get": k3dKubeconfig, "image import": k3dImport,
	}[command]
	if !ok {
		return t.fail(1, "Error: unknown command %q for \"k3d\"", command)
	}
	flags := pflag.NewFlagSet(command, pflag.ContinueOnError)
	flags.SetOutput(t.Stderr)
	t.Args = t.Args[2:]
	return run(t, flags)
}

// parseK3d parses flags and returns the one argument. Errors exit with 1, as with cobra.
func (t toolCall) parseK3d(flags *pflag.FlagSet) (name string, ok bool) {
	if err := flags.Parse(t.Args); err != nil || flags.NArg() != 1 {
		t.fail(1, "Error: %v: arguments %q", err, flags.Args())
		return "", false
	}
	return flags.Arg(0), true
}

var (
	k3dAPIPort = regexp.MustCompile(`^(\S+:)?(\d{1,5}|random)$`)
	k3dArg     = regexp.MustCompile(`^--[a-z-]+(=[^@]+)?@(server|agent):(\*|\d+)$`)
)

func k3dCreate(t toolCall, flags *pflag.FlagSet) int {
	servers := flags.IntP("servers", "s", 1, "")
	agents := flags.IntP("agents", "a", 0, "")
	image := flags.StringP("image", "i", "", "")
	apiPort := flags.String("api-port", "random", "")
	arguments := flags.StringArray("k3s-arg", nil, "")
	update := flags.Bool("kubeconfig-update-default", true, "")
	for _, name := range []string{"servers-memory", "agents-memory", "network", "subnet", "token"} {
		_ = flags.String(name, "", "")
	}
	registries := flags.String("registry-config", "", "")
	_ = flags.Bool("wait", true, "")
	_ = flags.Bool("no-lb", false, "")
	_ = flags.Duration("timeout", 0, "")
	name, ok := t.parseK3d(flags)
	if !ok {
		return 1
	}
	for _, a := range *arguments {
		if !k3dArg.MatchString(a) {
			return t.fail(1, "FATA[0000] Invalid k3s-arg %q", a)
		}
	}
	switch {
	case len(name) > 32:
		return t.fail(1, "FATA[0000] Schema Validation failed: cluster name must be <= 32 characters, but has %d", len(name))
	case !k3dAPIPort.MatchString(*apiPort):
		return t.fail(1, "FATA[0000] failed to parse API Port spec %q", *apiPort)
	case len(t.containers(k3dLabel, name)) > 0:
		return t.fail(1, "FATA[0000] Failed to create cluster '%s' because a cluster with that name already exists", name)
	}
	if _, err := os.Stat(*registries); *registries != "" && err != nil {
		return t.fail(1, "FATA[0000] Failed to read registry config: %v", err)
	}
	if err := t.checkRoom(*image); err != nil {
		return t.fail(1, "FATA[0000] Failed Cluster Preparation: %v", err)
	}
	return t.createK3dCluster(name, *servers, *agents, *update)
}

// createK3dCluster creates the network and the volume, which no container refers to yet, the
// containers, and starts them. A network that exists counts as the user's: delete leaves it.
func (t toolCall) createK3dCluster(name string, servers, agents int, update bool) int {
	external := "true"
	if _, exists := t.getDocker("networks", "k3d-"+name); !exists {
		external = "false"
		t.putDocker("networks", "k3d-"+name, dockerResource{Subnet: "172.18.0.0/16", Labels: map[string]string{"app": "k3d"}})
	}
	t.putDocker("volumes", "k3d-"+name+"-images", dockerResource{Labels: map[string]string{k3dLabel: name}})
	labels := func(role string) map[string]string {
		return map[string]string{k3dLabel: name, k3dRole: role, "k3d.cluster.network.external": external}
	}
	t.putContainer(container{Names: "k3d-" + name + "-tools", State: "running", Labels: labels("noRole")})
	t.step()
	var nodes []string
	add := func(node, role string) {
		nodes = append(nodes, node)
		t.putContainer(container{Names: node, State: "created", Labels: labels(role)})
		t.step()
	}
	for i := range servers {
		add(fmt.Sprintf("k3d-%s-server-%d", name, i), "server")
	}
	for i := range agents {
		if err := t.checkRoom(""); err != nil {
			return t.fail(1, "FATA[0000] Cluster creation FAILED, all changes have been rolled back! %v", err)
		}
		add(fmt.Sprintf("k3d-%s-agent-%d", name, i), "agent")
	}
	add("k3d-"+name+"-serverlb", "loadbalancer")
	t.removeContainer("k3d-" + name + "-tools")
	for _, n := range nodes {
		t.setContainerState(n, "running")
	}
	if update {
		if err := t.mergeKubeconfig("", "k3d-"+name, "https://127.0.0.1:40001"); err != nil {
			fmt.Fprintln(t.Stderr, "WARN[0000]", err)
		}
	}
	return 0
}

// k3dDelete succeeds if the cluster has no containers, and then removes nothing else.
func k3dDelete(t toolCall, flags *pflag.FlagSet) int {
	_ = flags.BoolP("all", "a", false, "")
	_ = flags.StringP("config", "c", "", "")
	name, ok := t.parseK3d(flags)
	if !ok {
		return 1
	}
	nodes := t.containers(k3dLabel, name)
	if len(nodes) == 0 {
		fmt.Fprintln(t.Stderr, "INFO[0000] No clusters found")
		return 0
	}
	for _, n := range nodes {
		t.removeContainer(n.Names)
	}
	if nodes[0].Label("k3d.cluster.network.external") == "false" {
		t.remove("docker", "networks", "k3d-"+name)
		t.step()
	}
	t.remove("docker", "volumes", "k3d-"+name+"-images")
	if err := t.mergeKubeconfig("", "k3d-"+name, ""); err != nil {
		fmt.Fprintln(t.Stderr, "WARN[0000] Failed to remove cluster details from default kubeconfig:", err)
	}
	return 0
}

// k3dStart leaves a helper container if all nodes run already; the next start fails because of it
// (k3d issue 1006).
func k3dStart(t toolCall, flags *pflag.FlagSet) int {
	_ = flags.BoolP("all", "a", false, "")
	_ = flags.Bool("wait", true, "")
	_ = flags.Duration("timeout", time.Second, "")
	name, ok := t.parseK3d(flags)
	if !ok {
		return 1
	}
	nodes := t.containers(k3dLabel, name)
	if len(nodes) == 0 {
		return t.fail(1, "FATA[0000] No nodes found for given cluster")
	}
	tools := "k3d-" + name + "-tools"
	if _, exists := t.container(tools); exists {
		return t.fail(1, "FATA[0000] Failed to start helper node: container %s exists", tools)
	}
	t.putContainer(container{Names: tools, State: "running", Labels: map[string]string{k3dLabel: name, k3dRole: "noRole"}})
	t.step()
	started := false
	for _, role := range []string{"server", "agent", "loadbalancer"} {
		for _, n := range nodes {
			if n.Label(k3dRole) == role && n.State != "running" {
				t.setContainerState(n.Names, "running")
				started = true
			}
		}
	}
	if started {
		t.removeContainer(tools)
	}
	return 0
}

func k3dStop(t toolCall, flags *pflag.FlagSet) int {
	_ = flags.BoolP("all", "a", false, "")
	name, ok := t.parseK3d(flags)
	if !ok {
		return 1
	}
	nodes := t.containers(k3dLabel, name)
	if len(nodes) == 0 {
		return t.fail(1, "FATA[0000] No nodes found for given cluster")
	}
	for _, n := range nodes {
		t.setContainerState(n.Names, "exited")
	}
	return 0
}

func k3dKubeconfig(t toolCall, flags *pflag.FlagSet) int {
	_ = flags.BoolP("all", "a", false, "")
	name, ok := t.parseK3d(flags)
	if !ok {
		return 1
	}
	if len(t.containers(k3dLabel, name)) == 0 {
		return t.fail(1, "FATA[0000] No nodes found for given cluster")
	}
	return t.printKubeconfig("k3d-"+name, "https://127.0.0.1:40001")
}

func k3dImport(t toolCall, flags *pflag.FlagSet) int {
	clusters := flags.StringArrayP("cluster", "c", []string{"k3s-default"}, "")
	_ = flags.StringP("mode", "m", "tools-node", "")
	_ = flags.BoolP("keep-tarball", "k", false, "")
	image, ok := t.parseK3d(flags)
	if !ok || strings.HasPrefix(image, "missing") || len(t.containers(k3dLabel, (*clusters)[0])) == 0 {
		return t.fail(1, "FATA[0000] failed to import images: %s", image)
	}
	return 0
}
