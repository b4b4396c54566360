package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The stand-in for minikube v1.37 with driver docker. Source: minikube.sigs.k8s.io/docs/commands, and
// cmd/minikube/cmd of that version.

func init() {
	registerTool("minikube", runMinikube)
	registerParameters("minikube", map[string]string{
		"kubernetes-version": "v1.36.1", "nodes": "3", "addons": "ingress,metrics-server", "feature-gates": "A=true,B=false",
		"registry-mirror": "https://mirror.example", "insecure-registry": "10.0.0.0/24",
	})
	servers["minikube"] = toolCall.minikubeServer
}

const minikubeLabel = "name.minikube.sigs.k8s.io"

func runMinikube(t toolCall) int {
	command := strings.Join(t.Args[:min(len(t.Args), 2)], " ")
	if command != "image load" {
		command, _, _ = strings.Cut(command, " ")
	}
	run, ok := map[string]func(toolCall, *pflag.FlagSet, *string) int{
		"start": minikubeStart, "stop": minikubeStop, "delete": minikubeDelete, "status": minikubeStatus,
		"logs": minikubeLogs, "image load": minikubeLoad,
	}[command]
	if !ok {
		return t.fail(64, "Error: unknown command %q for \"minikube\"", command)
	}
	t.Args = t.Args[strings.Count(command, " ")+1:]
	flags := pflag.NewFlagSet(command, pflag.ContinueOnError)
	flags.SetOutput(t.Stderr)
	return run(t, flags, flags.StringP("profile", "p", "minikube", ""))
}

// nodesOf returns the names of the nodes of a profile, and false if it does not exist.
func (t toolCall) minikubeNodes(profile string) ([]string, bool) {
	raw, ok := t.read("minikube", "profiles", profile)
	return strings.Fields(raw), ok
}

// notFound is how commands end for a profile that does not exist: a message on standard output, and 85.
func (t toolCall) minikubeNotFound(profile string) int {
	fmt.Fprintf(t.Stdout, "* Profile %q not found. Run \"minikube profile list\" to view all profiles.\n", profile)
	return 85
}

// minikubeStart creates a cluster, or starts one that exists.
func minikubeStart(t toolCall, flags *pflag.FlagSet, profile *string) int {
	nodes := flags.IntP("nodes", "n", 1, "")
	embed := flags.Bool("embed-certs", false, "")
	interactive := flags.Bool("interactive", true, "")
	_ = flags.Bool("auto-update-drivers", true, "")
	driver := flags.StringP("driver", "d", "", "")
	runtime := flags.StringP("container-runtime", "c", "", "")
	_ = flags.StringSlice("wait", nil, "")
	memory, version := flags.String("memory", "", ""), flags.String("kubernetes-version", "", "")
	for _, f := range []string{"cpus", "disk-size", "cni", "feature-gates"} {
		_ = flags.String(f, "", "")
	}
	for _, f := range []string{"addons", "registry-mirror", "insecure-registry"} {
		_ = flags.StringSlice(f, nil, "")
	}
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(64, "Error: %v %v", err, flags.Args())
	}
	if *interactive || !*embed {
		return t.fail(14, "X this stand-in has no terminal, and certificates in files are lost with the profile")
	}
	if !slices.Contains([]string{"", "docker"}, *driver) || !slices.Contains([]string{"", "docker", "cri-o", "containerd"}, *runtime) {
		return t.fail(14, "X Exiting due to MK_USAGE: driver %q, container runtime %q", *driver, *runtime)
	}
	if *memory == "999g" {
		return t.fail(23, "X Exiting due to RSRC_INSUFFICIENT_CONTAINER_MEMORY: docker only has 7936MB available")
	}
	if *version == "v1.9.9" {
		return t.fail(10, "X Exiting due to K8S_OLD_UNSUPPORTED: Kubernetes 1.9.9 is not supported by this release of minikube")
	}
	names, exists := t.minikubeNodes(*profile)
	if !exists {
		for i := range *nodes {
			names = append(names, *profile)
			if i > 0 {
				names[i] = fmt.Sprintf("%s-m%02d", *profile, i+1)
			}
		}
		t.write(strings.Join(names, " "), "minikube", "profiles", *profile)
		t.step()
	}
	return t.startMinikubeNodes(*profile, names)
}

func (t toolCall) startMinikubeNodes(profile string, names []string) int {
	if _, ok := t.getDocker("networks", profile); !ok {
		t.putDocker("networks", profile, dockerResource{Subnet: "192.168.49.0/24", Labels: map[string]string{minikubeLabel: profile}})
	}
	for _, n := range names {
		if len(n) > 63 {
			return t.fail(80, "X Exiting due to GUEST_PROVISION: invalid hostname %s", n)
		}
		if _, ok := t.getDocker("volumes", n); !ok {
			t.putDocker("volumes", n, dockerResource{Labels: map[string]string{minikubeLabel: n}})
		}
		if _, ok := t.container(n); !ok {
			if err := t.runContainer("", n, map[string]string{minikubeLabel: n}); err != nil {
				return t.fail(80, "X Exiting due to GUEST_PROVISION: %v", err)
			}
		}
		t.setContainerState(n, "running")
		t.write("", "minikube", "kubelets", n)
		t.step()
	}
	// The port of the API is another one after each start of the container.
	starts, _ := t.read("minikube", "starts", profile)
	t.write(starts+"I", "minikube", "starts", profile)
	t.step()
	if err := t.mergeKubeconfig("", profile, t.minikubeServer(profile)); err != nil {
		return t.fail(60, "X Exiting due to HOST_KUBECONFIG_UPDATE: %v", err)
	}
	return 0
}

func (t toolCall) minikubeServer(profile string) string {
	starts, _ := t.read("minikube", "starts", profile)
	return fmt.Sprintf("https://127.0.0.1:%d", 32768+len(starts))
}

func minikubeStop(t toolCall, flags *pflag.FlagSet, profile *string) int {
	keep := flags.Bool("keep-context-active", false, "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(64, "Error: %v %v", err, flags.Args())
	}
	names, exists := t.minikubeNodes(*profile)
	if !exists {
		return t.minikubeNotFound(*profile)
	}
	for _, n := range names {
		t.remove("minikube", "kubelets", n)
		t.step()
		t.setContainerState(n, "exited")
	}
	if !*keep {
		if err := t.mergeKubeconfig("", *profile, ""); err != nil {
			return t.fail(60, "X Exiting due to HOST_KUBECONFIG_DELETE_CTX: %v", err)
		}
	}
	return 0
}

// minikubeDelete succeeds for a profile that does not exist.
func minikubeDelete(t toolCall, flags *pflag.FlagSet, profile *string) int {
	_ = flags.Bool("all", false, "")
	_ = flags.Bool("purge", false, "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(64, "Error: %v %v", err, flags.Args())
	}
	names, exists := t.minikubeNodes(*profile)
	if !exists {
		fmt.Fprintf(t.Stderr, "* %q profile does not exist, trying anyways.\n", *profile)
		names = []string{*profile}
	}
	for _, n := range names {
		if _, ok := t.container(n); ok {
			t.removeContainer(n)
		}
		t.remove("minikube", "kubelets", n)
		t.remove("docker", "volumes", n)
	}
	t.step()
	t.remove("docker", "networks", *profile)
	t.remove("minikube", "starts", *profile)
	t.step()
	t.remove("minikube", "profiles", *profile)
	if err := t.mergeKubeconfig("", *profile, ""); err != nil {
		return t.fail(60, "X Exiting due to GUEST_DELETION: update config: %v", err)
	}
	return 0
}

// minikubeStatus prints all nodes. The bits of the exit code are 1 for a host, 2 for a kubelet and 4 for
// a kubeconfig that is not as it should be.
func minikubeStatus(t toolCall, flags *pflag.FlagSet, profile *string) int {
	_ = flags.StringP("output", "o", "text", "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(64, "Error: %v %v", err, flags.Args())
	}
	names, exists := t.minikubeNodes(*profile)
	if !exists {
		return t.minikubeNotFound(*profile)
	}
	code := 0
	for i, n := range names {
		host, kubelet := "Nonexistent", "Nonexistent"
		if c, ok := t.container(n); ok {
			host, kubelet = "Running", "Stopped"
			if c.State != "running" {
				host = "Stopped"
			} else if _, runs := t.read("minikube", "kubelets", n); runs {
				kubelet = "Running"
			}
		}
		if host != "Running" {
			code |= 1
		}
		if kubelet != "Running" {
			code |= 2
		}
		if i == 0 {
			fmt.Fprintf(t.Stdout, "%s\ntype: Control Plane\nhost: %s\nkubelet: %s\napiserver: %s\nkubeconfig: Misconfigured\n\n", n, host, kubelet, kubelet)
			fmt.Fprint(t.Stdout, "\nWARNING: Your kubectl is pointing to stale minikube-vm.\nTo fix the kubectl context, run `minikube update-context`\n")
			code |= 4
			continue
		}
		fmt.Fprintf(t.Stdout, "%s\ntype: Worker\nhost: %s\nkubelet: %s\n\n", n, host, kubelet)
	}
	return code
}

func minikubeLogs(t toolCall, flags *pflag.FlagSet, profile *string) int {
	_ = flags.IntP("length", "n", 60, "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() > 0 {
		return t.fail(64, "Error: %v %v", err, flags.Args())
	}
	if _, exists := t.minikubeNodes(*profile); !exists {
		return t.minikubeNotFound(*profile)
	}
	fmt.Fprintln(t.Stdout, "==> kubelet <==")
	return 0
}

func minikubeLoad(t toolCall, flags *pflag.FlagSet, profile *string) int {
	if err := flags.Parse(t.Args); err != nil || flags.NArg() != 1 {
		return t.fail(14, "X Exiting due to MK_USAGE: Please provide an image: %v", err)
	}
	if _, exists := t.minikubeNodes(*profile); !exists || strings.HasPrefix(flags.Arg(0), "missing") {
		return t.fail(80, "X Exiting due to GUEST_IMAGE_LOAD: %s", flags.Arg(0))
	}
	return 0
}
