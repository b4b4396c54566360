package recipes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// The stand-ins for vcluster v0.35 with driver helm, and for kubectl v1.36 with the host cluster. Source:
// pkg/cli and pkg/lifecycle of vcluster, and kubernetes.io/docs/reference/kubectl. Objects of the host
// cluster are the files <namespace or "-">/<resource>/<name>.

const vclusterHost = "/etc/stand-in/host.kubeconfig"

func init() {
	registerTool("vcluster", runVcluster)
	registerTool("kubectl", runKubectl)
	registerParameters("vcluster", map[string]string{
		"host-kubeconfig": vclusterHost, "host-context": "host", "kubernetes-version": "v1.36", "chart-version": "0.35.2", "endpoint": "service",
		"values": "controlPlane:\n  statefulSet:\n    highAvailability:\n      replicas: 3\n",
	})
	runningParts["vcluster"] = vclusterPods
}

// vclusterPods returns the pods of a virtual cluster's workload.
func vclusterPods(t toolCall, infraID string) []string { return t.list(infraID, "pods") }

// object is an object of the host cluster.
type object struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas      int `json:"replicas"`
		ReadyReplicas int `json:"readyReplicas,omitempty"`
	} `json:"status"`
}

func (t toolCall) putObject(namespace, resource string, o object) {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	t.write(string(raw), namespace, resource, o.Metadata.Name)
	t.step()
}

func (t toolCall) putNamed(namespace, resource, name string, labels map[string]string) {
	o := object{}
	o.Metadata.Name, o.Metadata.Labels = name, labels
	t.putObject(namespace, resource, o)
}

// selectObjects returns the objects of a resource that match a selector, sorted by name.
func (t toolCall) selectObjects(namespace, resource string, selector labels.Selector) []object {
	var out []object
	for _, name := range t.list(namespace, resource) {
		var o object
		raw, ok := t.read(namespace, resource, name)
		if ok && json.Unmarshal([]byte(raw), &o) != nil {
			panic(raw)
		}
		if ok && selector.Matches(labels.Set(o.Metadata.Labels)) {
			out = append(out, o)
		}
	}
	return out
}

// rejectHost reports whether a program does not talk to the host cluster.
func (t toolCall) rejectHost(context string) bool {
	if t.Getenv("KUBECONFIG") == vclusterHost && context == "host" {
		return false
	}
	t.fail(1, "error: KUBECONFIG is %q and the context %q, and not those of the host cluster", t.Getenv("KUBECONFIG"), context)
	return true
}

func vclusterLabels(name string) map[string]string {
	return map[string]string{"app": "vcluster", "release": name}
}

func vclusterSelector(name string) labels.Selector {
	return labels.SelectorFromSet(vclusterLabels(name))
}

func runVcluster(t toolCall) int {
	if len(t.Args) < 2 {
		return t.fail(1, "fatal  accepts a command and a name")
	}
	run, ok := map[string]func(*vclusterCall) int{
		"create": vclusterCreate, "connect": vclusterConnect, "delete": vclusterDelete, "pause": vclusterPause, "resume": vclusterResume,
	}[t.Args[0]]
	if !ok {
		return t.fail(1, "fatal  unknown command %q for \"vcluster\"", t.Args[0])
	}
	c := &vclusterCall{toolCall: t, flags: pflag.NewFlagSet(t.Args[0], pflag.ContinueOnError)}
	c.flags.SetOutput(t.Stderr)
	c.Args = t.Args[1:]
	c.flags.StringVar(&c.context, "context", "", "")
	c.flags.StringVarP(&c.namespace, "namespace", "n", "", "")
	c.flags.StringVar(&c.driver, "driver", "helm", "")
	return run(c)
}

// vclusterCall is one call of vcluster with its common flags.
type vclusterCall struct {
	toolCall
	flags                            *pflag.FlagSet
	name, context, namespace, driver string
}

// parse reads the flags. It returns false after a usage error.
func (c *vclusterCall) parse() bool {
	if err := c.flags.Parse(c.Args); err != nil || c.flags.NArg() != 1 || c.driver != "helm" {
		c.fail(1, "fatal  %v: arguments %q, driver %q", err, c.flags.Args(), c.driver)
		return false
	}
	c.name = c.flags.Arg(0)
	return !c.rejectHost(c.context)
}

// find returns the StatefulSet by which vcluster finds a virtual cluster.
func (c *vclusterCall) find() (object, bool) {
	found := c.selectObjects(c.namespace, "statefulset", vclusterSelector(c.name))
	if len(found) == 0 {
		c.fail(1, "fatal  couldn't find vcluster %s in namespace %s", c.name, c.namespace)
		return object{}, false
	}
	return found[0], true
}

func vclusterCreate(c *vclusterCall) int {
	values := c.flags.StringArrayP("values", "f", nil, "")
	_ = c.flags.String("kubernetes-version", "", "")
	_ = c.flags.String("chart-version", "", "")
	add := c.flags.Bool("add", true, "")
	connect := c.flags.Bool("connect", true, "")
	_ = c.flags.Bool("expose", false, "")
	_ = c.flags.Bool("upgrade", false, "")
	if !c.parse() {
		return 1
	}
	if *add || *connect {
		return c.fail(1, "fatal  this stand-in has no platform and no terminal")
	}
	if len(c.name) > 53 {
		return c.fail(1, "fatal  invalid release name, must match regex and the length must not be longer than 53")
	}
	replicas := 1
	for _, file := range *values {
		var v struct {
			ControlPlane struct {
				StatefulSet struct {
					HighAvailability struct {
						Replicas int `json:"replicas"`
					} `json:"highAvailability"`
				} `json:"statefulSet"`
			} `json:"controlPlane"`
		}
		raw, err := os.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(raw, &v)
		}
		if err != nil {
			return c.fail(1, "fatal  parse values: %v", err)
		}
		replicas = max(replicas, v.ControlPlane.StatefulSet.HighAvailability.Replicas)
	}
	return c.install(replicas)
}

// install creates the namespace and then the objects of the release.
func (c *vclusterCall) install(replicas int) int {
	if _, exists := c.read("-", "namespace", c.namespace); !exists {
		c.putNamed("-", "namespace", c.namespace, nil)
	}
	if _, exists := c.read(c.namespace, "secret", "sh.helm.release.v1."+c.name); exists {
		return c.fail(1, "fatal  vcluster %s already exists in namespace %s", c.name, c.namespace)
	}
	c.putNamed(c.namespace, "secret", "sh.helm.release.v1."+c.name, nil)
	c.putNamed("-", "clusterrole", "vc-"+c.name, vclusterLabels(c.name))
	c.putNamed("-", "clusterrolebinding", "vc-"+c.name, vclusterLabels(c.name))
	set := object{}
	set.Metadata.Name, set.Metadata.Labels, set.Spec.Replicas = c.name, vclusterLabels(c.name), replicas
	c.putObject(c.namespace, "statefulset", set)
	return 0
}

// vclusterConnect resumes a paused cluster, as vcluster does.
func vclusterConnect(c *vclusterCall) int {
	printOnly := c.flags.Bool("print", false, "")
	proxy := c.flags.Bool("background-proxy", true, "")
	server := c.flags.String("server", "", "")
	if !c.parse() {
		return 1
	}
	set, ok := c.find()
	if !ok {
		return 1
	}
	if !*printOnly || *proxy || *server == "" {
		return c.fail(1, "fatal  this stand-in has no port to forward")
	}
	if set.Metadata.Annotations["loft.sh/paused"] == "true" {
		c.resume(set)
	}
	return c.printKubeconfig("vcluster_"+c.name, *server)
}

// vclusterDelete finds nothing without the StatefulSet, and then leaves everything else.
func vclusterDelete(c *vclusterCall) int {
	ignore := c.flags.Bool("ignore-not-found", false, "")
	withNamespace := c.flags.Bool("delete-namespace", false, "")
	if !c.parse() {
		return 1
	}
	if _, ok := c.find(); !ok {
		if *ignore {
			return 0
		}
		return 1
	}
	for _, path := range [][]string{
		{c.namespace, "statefulset", c.name},
		{"-", "clusterrole", "vc-" + c.name},
		{"-", "clusterrolebinding", "vc-" + c.name},
		{c.namespace, "secret", "sh.helm.release.v1." + c.name},
	} {
		c.remove(path...)
		c.step()
	}
	if *withNamespace {
		c.remove("-", "namespace", c.namespace)
		c.remove(c.namespace)
		c.step()
	}
	return 0
}

// vclusterPause does nothing for a cluster that is paused, and leaves the pods of its workload.
func vclusterPause(c *vclusterCall) int {
	if !c.parse() {
		return 1
	}
	set, ok := c.find()
	if !ok || set.Metadata.Annotations["loft.sh/paused"] == "true" {
		return map[bool]int{false: 1, true: 0}[ok]
	}
	set.Metadata.Annotations = map[string]string{"loft.sh/paused": "true", "loft.sh/paused-replicas": fmt.Sprint(set.Spec.Replicas)}
	set.Spec.Replicas = 0
	c.putObject(c.namespace, "statefulset", set)
	set.Status.Replicas, set.Status.ReadyReplicas = 0, 0
	c.putObject(c.namespace, "statefulset", set)
	c.remove(c.namespace, "pods", "workload")
	c.step()
	return 0
}

func vclusterResume(c *vclusterCall) int {
	if !c.parse() {
		return 1
	}
	set, ok := c.find()
	if !ok {
		return 1
	}
	if set.Metadata.Annotations["loft.sh/paused"] != "true" {
		return c.fail(1, "fatal  couldn't find a paused vcluster %s in namespace %s. Make sure the vcluster exists and was paused previously", c.name, c.namespace)
	}
	c.resume(set)
	return 0
}

func (c *vclusterCall) resume(set object) {
	_, _ = fmt.Sscan(set.Metadata.Annotations["loft.sh/paused-replicas"], &set.Spec.Replicas) // as pause wrote it
	set.Metadata.Annotations = nil
	c.putObject(c.namespace, "statefulset", set)
}

func runKubectl(t toolCall) int {
	flags := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	flags.SetOutput(t.Stderr)
	context := flags.String("context", "", "")
	c := kubectlCall{toolCall: t}
	flags.StringVarP(&c.namespace, "namespace", "n", "default", "")
	selector := flags.StringP("selector", "l", "", "")
	flags.StringVarP(&c.output, "output", "o", "", "")
	flags.BoolVar(&c.ignore, "ignore-not-found", false, "")
	_ = flags.Duration("timeout", 0, "")
	_ = flags.Bool("all-containers", false, "")
	_ = flags.Int("tail", -1, "")
	if err := flags.Parse(t.Args); err != nil || flags.NArg() == 0 {
		return t.fail(1, "error: %v", err)
	}
	if t.rejectHost(*context) {
		return 1
	}
	var err error
	if c.selector, err = labels.Parse(*selector); err != nil {
		return t.fail(1, "error: %v", err)
	}
	return c.run(flags.Args(), *selector != "")
}

func (c *kubectlCall) run(args []string, selected bool) int {
	switch verb := args[0]; {
	case verb == "get" && len(args) == 2:
		return c.get(args[1])
	case verb == "delete" && len(args) == 2 && selected:
		return c.deleteSelected(args[1])
	case verb == "delete" && len(args) == 3:
		return c.deleteNamed(args[1], args[2])
	case verb == "rollout" && len(args) == 3:
		return c.rollOut(args[2])
	case verb == "logs" && selected:
		fmt.Fprintln(c.Stdout, "log of the control plane")
		return 0
	}
	return c.fail(1, "error: this stand-in does not know kubectl %s", strings.Join(args, " "))
}

// kubectlCall is one call of kubectl with its flags.
type kubectlCall struct {
	toolCall
	namespace, output string
	selector          labels.Selector
	ignore            bool
}

// resources splits a comma-separated list, and requires those that the stand-in knows.
func (c *kubectlCall) resources(list string) ([]string, bool) {
	all := strings.Split(list, ",")
	for _, r := range all {
		if !slices.Contains([]string{"statefulset", "deployment", "clusterrole", "clusterrolebinding", "pods", "namespace"}, r) {
			c.fail(1, "error: the server doesn't have a resource type %q", r)
			return nil, false
		}
	}
	return all, true
}

func scopeOf(resource, namespace string) string {
	if slices.Contains([]string{"clusterrole", "clusterrolebinding", "namespace"}, resource) {
		return "-"
	}
	return namespace
}

// get prints objects. Each call moves the StatefulSets a step towards their goal.
func (c *kubectlCall) get(list string) int {
	resources, ok := c.resources(list)
	if !ok {
		return 1
	}
	if !strings.HasPrefix(c.output, "jsonpath=") {
		return c.fail(1, "error: this stand-in does not know the output %q", c.output)
	}
	items := []any{}
	for _, r := range resources {
		for _, o := range c.selectObjects(scopeOf(r, c.namespace), r, c.selector) {
			raw, err := json.Marshal(o)
			if err != nil {
				panic(err)
			}
			var item any
			if err := json.Unmarshal(raw, &item); err != nil {
				panic(err)
			}
			items = append(items, item)
			if o.Status.ReadyReplicas != o.Spec.Replicas {
				o.Status.Replicas, o.Status.ReadyReplicas = o.Spec.Replicas, min(o.Status.ReadyReplicas+1, o.Spec.Replicas)
				c.putObject(c.namespace, r, o)
			}
			if r == "statefulset" && o.Status.ReadyReplicas > 0 && o.Status.ReadyReplicas == o.Spec.Replicas {
				c.putNamed(c.namespace, "pods", "workload", map[string]string{"vcluster.loft.sh/managed-by": o.Metadata.Name})
			}
		}
	}
	query := jsonpath.New("").AllowMissingKeys(true)
	if err := query.Parse(strings.TrimPrefix(c.output, "jsonpath=")); err != nil {
		return c.fail(1, "error: error parsing jsonpath: %v", err)
	}
	if err := query.Execute(c.Stdout, map[string]any{"items": items}); err != nil {
		return c.fail(1, "error: error executing jsonpath: %v", err)
	}
	return 0
}

// deleteSelected succeeds if no object matches.
func (c *kubectlCall) deleteSelected(list string) int {
	resources, ok := c.resources(list)
	if !ok {
		return 1
	}
	for _, r := range resources {
		for _, o := range c.selectObjects(scopeOf(r, c.namespace), r, c.selector) {
			c.remove(scopeOf(r, c.namespace), r, o.Metadata.Name)
			c.step()
		}
	}
	return 0
}

// deleteNamed deletes one object, and for a namespace everything in it.
func (c *kubectlCall) deleteNamed(resource, name string) int {
	scope := scopeOf(resource, c.namespace)
	if _, exists := c.read(scope, resource, name); !exists {
		if c.ignore {
			return 0
		}
		return c.fail(1, "Error from server (NotFound): %s %q not found", resource, name)
	}
	if resource == "namespace" {
		c.remove(name)
		c.step()
	}
	c.remove(scope, resource, name)
	return 0
}

// rollOut waits until all replicas are ready, and creates a pod of the workload.
func (c *kubectlCall) rollOut(list string) int {
	resources, ok := c.resources(list)
	if !ok {
		return 1
	}
	for _, r := range resources {
		for _, o := range c.selectObjects(c.namespace, r, c.selector) {
			o.Status.Replicas, o.Status.ReadyReplicas = o.Spec.Replicas, o.Spec.Replicas
			c.putObject(c.namespace, r, o)
			c.putNamed(c.namespace, "pods", "workload", map[string]string{"vcluster.loft.sh/managed-by": o.Metadata.Name})
		}
	}
	return 0
}
