package recipes

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// The stand-in for hotspare with a hub on this machine, for the recipe hotspare-local. The recipe also
// passes the suite with the real program: hotspare up, and then hotspare recipe test.

const hotspareData = "/var/lib/stand-in"

func init() {
	registerTool("hotspare", runHotspare)
	registerParameters("hotspare-local", map[string]string{"data-dir": hotspareData, "namespace": "spares", "workers": "2"})
	runningParts["hotspare-local"] = func(t toolCall, infraID string) []string { return t.list("running", infraID) }
}

func runHotspare(t toolCall) int {
	flags := pflag.NewFlagSet("hotspare", pflag.ContinueOnError)
	flags.SetOutput(t.Stderr)
	data := flags.String("data-dir", "", "")
	kubeconfig := flags.String("kubeconfig", "", "")
	namespace := flags.StringP("namespace", "n", "default", "")
	file := flags.StringP("filename", "f", "", "")
	goal := flags.String("for", "", "")
	timeout := flags.Duration("timeout", 0, "")
	ignore := flags.Bool("ignore-not-found", false, "")
	if err := flags.Parse(t.Args); err != nil {
		return t.fail(2, "error: %v", err)
	}
	if *data != hotspareData || *kubeconfig != hotspareData+"/kubeconfig" || *namespace != "spares" {
		return t.fail(1, "error: %s, %s and %s are not those of the hub", *data, *kubeconfig, *namespace)
	}
	args := flags.Args()
	command := strings.Join(args[:min(len(args), 2)], " ")
	name := strings.TrimPrefix(flags.Arg(len(args)-1), "clusterdeployment/")
	switch {
	case command == "kubectl apply" && *file == "-":
		return t.hubApply()
	case command == "kubectl wait" && *goal == "jsonpath={.spec.installed}=true" && *timeout > 0:
		return t.hubInstall(name)
	case command == "kubectl delete" && len(args) == 4 && args[2] == "clusterdeployment":
		return t.hubDelete(name, *ignore)
	case command == "local list":
		return t.hubList()
	}
	if _, ok := t.read("clusters", name); !ok {
		return t.fail(1, "error: there is no claim %q in namespace spares and no cluster %q", name, name)
	}
	switch command {
	case "cluster hibernate":
		return t.hubSetRunning(name, false)
	case "cluster resume":
		return t.hubSetRunning(name, true)
	case "cluster logs":
		fmt.Fprintln(t.Stdout, "installed")
		return 0
	case "cluster kubeconfig":
		config := clientcmdapi.NewConfig()
		setContext(config, name, "https://127.0.0.1:40003")
		raw, err := clientcmd.Write(*config)
		if err != nil {
			panic(err)
		}
		t.step()
		_, _ = t.Stdout.Write(raw) // a broken pipe ends the process
		return 0
	}
	return t.fail(2, "error: unknown command %q for \"hotspare\"", command)
}

// hubApply stores a ClusterDeployment: its number of machines.
func (t toolCall) hubApply() int {
	raw, err := io.ReadAll(t.Stdin)
	var cd hivev1.ClusterDeployment
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &cd)
	}
	if err != nil || cd.Namespace != "spares" || cd.Spec.Platform.Local == nil || cd.Spec.Provisioning == nil || cd.Spec.Provisioning.ImageSetRef == nil {
		return t.fail(1, "error: error validating \"STDIN\": %v\n%s", err, raw)
	}
	if _, exists := t.read("clusters", cd.Name); !exists {
		t.write(strconv.Itoa(int(*cd.Spec.Platform.Local.Workers)+1), "clusters", cd.Name)
	}
	t.step()
	return 0
}

// hubInstall waits for the installation, which is the hub's work. Until then no machine runs.
func (t toolCall) hubInstall(name string) int {
	if _, ok := t.read("clusters", name); !ok {
		return t.fail(1, "Error from server (NotFound): clusterdeployments %q not found", name)
	}
	if _, installed := t.read("installed", name); installed {
		return 0
	}
	t.step()
	t.write("", "installed", name)
	return t.hubSetRunning(name, true)
}

func (t toolCall) hubSetRunning(name string, run bool) int {
	machines, _ := t.read("clusters", name)
	count, err := strconv.Atoi(machines)
	if err != nil {
		panic(err)
	}
	for i := range count {
		if run {
			t.write("", "running", name, strconv.Itoa(i))
		} else {
			t.remove("running", name, strconv.Itoa(i))
		}
		t.step()
	}
	return 0
}

func (t toolCall) hubDelete(name string, ignore bool) int {
	if _, ok := t.read("clusters", name); !ok {
		if ignore {
			return 0
		}
		return t.fail(1, "Error from server (NotFound): clusterdeployments %q not found", name)
	}
	t.hubSetRunning(name, false)
	t.remove("installed", name)
	t.remove("clusters", name)
	t.step()
	return 0
}

func (t toolCall) hubList() int {
	fmt.Fprintln(t.Stdout, "INFRAID   CLUSTER   MACHINES   RUNNING")
	for _, name := range t.list("clusters") {
		machines, _ := t.read("clusters", name)
		fmt.Fprintf(t.Stdout, "%s-x7k2p   spares/%s   %s   %d\n", name, name, machines, len(t.list("running", name)))
	}
	return 0
}
