package recipes

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
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
	c := hotspareCall{toolCall: t}
	flags := pflag.NewFlagSet("hotspare", pflag.ContinueOnError)
	flags.SetOutput(t.Stderr)
	data := flags.String("data-dir", "", "")
	kubeconfig := flags.String("kubeconfig", "", "")
	namespace := flags.StringP("namespace", "n", "default", "")
	flags.StringVarP(&c.file, "filename", "f", "", "")
	flags.StringVar(&c.goal, "for", "", "")
	_ = flags.Duration("timeout", 0, "")
	flags.BoolVar(&c.ignore, "ignore-not-found", false, "")
	if err := flags.Parse(t.Args); err != nil {
		return t.fail(2, "error: %v", err)
	}
	if hub := [...]string{*data, *kubeconfig, *namespace}; hub != [...]string{hotspareData, hotspareData + "/kubeconfig", "spares"} {
		return t.fail(1, "error: %q are not the data folder, the kubeconfig and the namespace of the hub", hub)
	}
	args := flags.Args()
	if len(args) < 2 {
		return t.fail(2, "error: unknown command %q for \"hotspare\"", args)
	}
	c.name = strings.TrimPrefix(args[len(args)-1], "clusterdeployment/")
	switch args[0] {
	case "kubectl":
		return c.runKubectl(args[1:])
	case "cluster":
		return c.runCluster(args[1])
	}
	if !slices.Equal(args, []string{"local", "list"}) {
		return t.fail(2, "error: unknown command %q for \"hotspare\"", args)
	}
	return t.hubList()
}

// hotspareCall is one call of hotspare with its flags.
type hotspareCall struct {
	toolCall
	// name is that of the cluster.
	name, file, goal string
	ignore           bool
}

func (c *hotspareCall) runKubectl(args []string) int {
	switch verb := args[0]; {
	case verb == "apply" && c.file == "-":
		return c.hubApply()
	case verb == "wait" && c.goal == "jsonpath={.spec.installed}=true":
		return c.hubInstall(c.name)
	case verb == "delete" && len(args) == 3 && args[1] == "clusterdeployment":
		return c.hubDelete(c.name, c.ignore)
	}
	return c.fail(1, "error: this stand-in does not know kubectl %q", args)
}

func (c *hotspareCall) runCluster(verb string) int {
	if _, ok := c.read("clusters", c.name); !ok {
		return c.fail(1, "error: there is no claim %q in namespace spares and no cluster %q", c.name, c.name)
	}
	switch verb {
	case "hibernate":
		return c.hubSetRunning(c.name, false)
	case "resume":
		return c.hubSetRunning(c.name, true)
	case "logs":
		fmt.Fprintln(c.Stdout, "installed")
		return 0
	case "kubeconfig":
		return c.printKubeconfig(c.name, "https://127.0.0.1:40003")
	}
	return c.fail(2, "error: unknown command %q for \"hotspare cluster\"", verb)
}

// hubApply stores a ClusterDeployment: its number of machines.
func (t toolCall) hubApply() int {
	raw, err := io.ReadAll(t.Stdin)
	var cd hivev1.ClusterDeployment
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &cd)
	}
	if err != nil || cd.Namespace != "spares" || cd.Spec.Platform.Local == nil || cd.Spec.Provisioning == nil {
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
	t.hubSetRunning(name, true)
	t.write("", "installed", name)
	return 0
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
