package recipes

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The stand-in for the Google Cloud CLI and its plugin for kubectl, for the commands that the recipe
// gcloud uses. Sources: docs.cloud.google.com/sdk/gcloud/reference (2026) and lib/surface/container of
// the CLI. Exit codes: 2 wrong arguments, 1 all other errors.

func init() {
	registerTool("gcloud", runGcloud)
	registerTool("gke-gcloud-auth-plugin", runGkePlugin)
	registerParameters("gcloud", map[string]string{
		"project": "spares", "location": "europe-west1-b", "nodes": "3", "spot": "true", "cluster-version": "1.35", "subnetwork": "nodes",
	})
	servers["gcloud"] = func(_ toolCall, infraID string) string { return "https://" + infraID + ".gke.invalid" }
	registerSecrets("gcloud", map[string]string{"service-account.json": `{"type":"service_account","private_key":"` + standinSecret + `"}`})
}

// gkeQuota is how many nodes the stand-in's project may have.
const gkeQuota = 9

type gcloudCommand struct {
	spec []string
	run  func(toolCall, arguments) int
}

func runGcloud(t toolCall) int {
	if err := t.rejectSecrets(); err != nil {
		return t.fail(99, "ERROR: %v", err)
	}
	location := []string{"--location!", "--async?"}
	list := []string{"--filter", "--format"}
	commands := map[string]gcloudCommand{
		"container clusters list": {append(list, "--location"), gkeList},
		"container clusters create": {append(location, "--labels", "--num-nodes", "--machine-type", "--disk-size", "--release-channel",
			"--cluster-version", "--network", "--subnetwork", "--spot?"), gkeCreate},
		"container clusters delete":          {location, gkeDelete},
		"container clusters describe":        {append(list, "--location!"), gkeDescribe},
		"container clusters resize":          {append(location, "--node-pool", "--num-nodes!"), gkeResize},
		"container clusters get-credentials": {location[:1], gkeGetCredentials},
		"container operations list":          {append(list, "--location"), gkeOperations},
		"compute instances list":             {list, gceInstances},
		"compute disks list":                 {list, gceDisks},
		"compute disks delete":               {nil, gceDeleteDisks},
	}
	for length := len(t.Args); length > 0; length-- {
		command, ok := commands[strings.Join(t.Args[:length], " ")]
		if !ok {
			continue
		}
		a, err := parseArguments(t.Args[length:], command.spec...)
		if err != nil {
			return t.fail(2, "ERROR: (gcloud.%s) %v", strings.Join(t.Args[:length], "."), err)
		}
		if code := gcloudSignIn(t); code != 0 {
			return code
		}
		t.step()
		t.advanceOperations("gke", func(r resource) { gkeEnd(t, r) })
		t.advanceOperations("instances", nil)
		return command.run(t, a)
	}
	return t.fail(2, "ERROR: (gcloud) Invalid choice: %q.", t.Args)
}

// gcloudSignIn reads the service account's key and writes a token into the CLI's folder.
func gcloudSignIn(t toolCall) int {
	raw, err := os.ReadFile(t.Getenv("CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE"))
	switch {
	case err != nil:
		return t.fail(1, "ERROR: (gcloud) You do not currently have an active account selected. %v", err)
	case !strings.Contains(string(raw), standinSecret):
		return t.fail(1, "ERROR: (gcloud) There was a problem refreshing auth tokens: ('invalid_grant: Invalid JWT Signature.')")
	case t.Getenv("CLOUDSDK_CORE_PROJECT") != "spares":
		return t.fail(1, "ERROR: (gcloud) PERMISSION_DENIED: required permission for project %s", t.Getenv("CLOUDSDK_CORE_PROJECT"))
	}
	dir := t.Getenv("CLOUDSDK_CONFIG")
	if dir == "" {
		dir = filepath.Join(t.Getenv("HOME"), ".config", "gcloud")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return t.fail(1, "ERROR: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "access_tokens.db"), []byte(standinSecret), 0o600); err != nil {
		return t.fail(1, "ERROR: %v", err)
	}
	return 0
}

func runGkePlugin(t toolCall) int {
	if code := gcloudSignIn(t); code != 0 {
		return code
	}
	printExecCredential(t.Stdout)
	return 0
}

// gkeEnd carries out the end of an operation. A new cluster gets nodes, and a disk, as if its user had
// created a volume. Nodes come and disappear with operations of their own.
func gkeEnd(t toolCall, r resource) {
	if r.Next == "" {
		for _, i := range gkeNodes(t, r.Name) {
			t.remove("instances", i.Name)
		}
		t.remove("tokens", r.Name)
		return
	}
	if r.State == "PROVISIONING" {
		t.saveResource(resource{Kind: "disks", Name: "pvc-" + r.Name, State: "READY", Fields: map[string]string{"cluster": r.Name}})
	}
	nodes := gkeNodes(t, r.Name)
	size, _ := strconv.Atoi(r.Fields["size"])
	for i := len(nodes); i < size; i++ {
		n := resource{Kind: "instances", Name: fmt.Sprintf("gke-%s-default-pool-%d", r.Name, i), Fields: map[string]string{"cluster": r.Name}}
		n.operate("STAGING", "RUNNING")
		t.saveResource(n)
	}
	for _, n := range nodes[min(size, len(nodes)):] {
		n.operate("STOPPING", "")
		t.saveResource(n)
	}
	// create waits for the nodes; resize does not wait.
	if r.State == "PROVISIONING" {
		for _, n := range gkeNodes(t, r.Name) {
			n.State, n.Next, n.Remaining = "RUNNING", "", 0
			t.saveResource(n)
		}
	}
}

func gkeNodes(t toolCall, cluster string) []resource {
	var out []resource
	for _, i := range t.resources("instances") {
		if i.Fields["cluster"] == cluster {
			out = append(out, i)
		}
	}
	return out
}

// filterValue returns the value of a filter "key=value".
func (a arguments) filterValue(key string) (string, bool) {
	return strings.CutPrefix(a.flags["--filter"], key+"=")
}

func gkeList(t toolCall, a arguments) int {
	name, ok := a.filterValue("name")
	if !ok || a.flags["--format"] != "value(status)" {
		return t.fail(2, "ERROR: the stand-in does not know filter %q and format %q", a.flags["--filter"], a.flags["--format"])
	}
	if r, exists := t.resource("gke", name); exists {
		fmt.Fprintln(t.Stdout, r.State)
	}
	return 0
}

func (a arguments) findGKE(t toolCall) (resource, int) {
	name := strings.Join(a.rest, " ")
	r, ok := t.resource("gke", name)
	if !ok || a.flags["--location"] != "europe-west1-b" {
		return r, t.fail(1, "ERROR: ResponseError: code=404, message=Not found: projects/spares/locations/%s/clusters/%s.", a.flags["--location"], name)
	}
	return r, 0
}

var gkeName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

func gkeCreate(t toolCall, a arguments) int {
	const prefix = "ERROR: (gcloud.container.clusters.create) ResponseError: "
	name := strings.Join(a.rest, " ")
	nodes, err := strconv.Atoi(a.flags["--num-nodes"])
	used := nodes
	for _, r := range t.resources("gke") {
		n, _ := strconv.Atoi(r.Fields["size"])
		used += n
	}
	_, exists := t.resource("gke", name)
	switch {
	case err != nil || !a.has("--async"):
		return t.fail(2, "ERROR: (gcloud.container.clusters.create) argument --num-nodes: %v", err)
	case !gkeName.MatchString(name):
		return t.fail(1, prefix+"code=400, message=Invalid value for field \"cluster.name\": %q.", name)
	case exists:
		return t.fail(1, prefix+"code=409, message=Already exists: projects/spares/zones/europe-west1-b/clusters/%s.", name)
	case !strings.HasPrefix(a.flags["--machine-type"], "e2-"):
		return t.fail(1, prefix+"code=400, message=Machine type with name %q does not exist in zone \"europe-west1-b\".", a.flags["--machine-type"])
	case used > gkeQuota:
		return t.fail(1, prefix+"code=403, message=Insufficient regional quota to satisfy request: resource \"CPUS\".")
	}
	r := resource{Kind: "gke", Name: name, Fields: map[string]string{"size": a.flags["--num-nodes"], "labels": a.flags["--labels"]}}
	r.operate("PROVISIONING", "RUNNING")
	if t.isShort(name, a.flags["--machine-type"] == "e2-highcpu-32") {
		r.Next = "ERROR"
		r.Fields["message"] = "Try a different location, or try again later: Google Compute Engine does not have enough resources available to fulfill request."
	}
	t.saveResource(r)
	t.step()
	return 0
}

func gkeDelete(t toolCall, a arguments) int {
	r, code := a.findGKE(t)
	if code != 0 {
		return code
	}
	if r.Remaining > 0 {
		return t.fail(1, "ERROR: ResponseError: code=400, message=Cluster is running incompatible operation operation-1.")
	}
	r.operate("STOPPING", "")
	t.saveResource(r)
	t.step()
	return 0
}

func gkeDescribe(t toolCall, a arguments) int {
	r, code := a.findGKE(t)
	if code == 0 {
		fmt.Fprintln(t.Stdout, r.Fields["message"])
	}
	return code
}

func gkeResize(t toolCall, a arguments) int {
	r, code := a.findGKE(t)
	switch {
	case code != 0:
		return code
	case a.flags["--node-pool"] != "default-pool":
		return t.fail(1, "ERROR: ResponseError: code=404, message=Not found: node pool %s", a.flags["--node-pool"])
	case r.Remaining > 0:
		return t.fail(1, "ERROR: ResponseError: code=400, message=Cluster is running incompatible operation operation-1.")
	}
	r.Fields["size"] = a.flags["--num-nodes"]
	r.operate("RECONCILING", "RUNNING")
	t.saveResource(r)
	t.step()
	return 0
}

func gkeGetCredentials(t toolCall, a arguments) int {
	r, code := a.findGKE(t)
	if code != 0 {
		return code
	}
	if err := t.writeExecKubeconfig("gke_"+r.Name, "https://"+r.Name+".gke.invalid", "gke-gcloud-auth-plugin"); err != nil {
		return t.fail(1, "ERROR: %v", err)
	}
	return 0
}

func gceInstances(t toolCall, a arguments) int {
	cluster, ok := a.filterValue("labels.goog-k8s-cluster-name")
	if !ok || a.flags["--format"] != "value(name,status)" {
		return t.fail(2, "ERROR: the stand-in does not know filter %q and format %q", a.flags["--filter"], a.flags["--format"])
	}
	for _, i := range gkeNodes(t, cluster) {
		fmt.Fprintf(t.Stdout, "%s\t%s\n", i.Name, i.State)
	}
	return 0
}

const gceDiskURL = "https://www.googleapis.com/compute/v1/projects/spares/zones/europe-west1-b/disks/"

func gceDisks(t toolCall, a arguments) int {
	cluster, ok := a.filterValue("labels.goog-k8s-cluster-name")
	if !ok || a.flags["--format"] != "value(selfLink)" {
		return t.fail(2, "ERROR: the stand-in does not know filter %q and format %q", a.flags["--filter"], a.flags["--format"])
	}
	for _, d := range t.resources("disks") {
		if d.Fields["cluster"] == cluster {
			fmt.Fprintln(t.Stdout, gceDiskURL+d.Name)
		}
	}
	return 0
}

func gceDeleteDisks(t toolCall, a arguments) int {
	for _, link := range a.rest {
		d, ok := t.resource("disks", path.Base(link))
		if _, inUse := t.resource("gke", d.Fields["cluster"]); !ok || inUse || !strings.HasPrefix(link, gceDiskURL) {
			return t.fail(1, "ERROR: (gcloud.compute.disks.delete) The resource %s was not found or is used", link)
		}
		t.remove("disks", d.Name)
		t.step()
	}
	return 0
}

// gkeOperations prints the operations of one cluster.
func gkeOperations(t toolCall, a arguments) int {
	name, ok := strings.CutPrefix(a.flags["--filter"], "targetLink~/clusters/")
	if !ok || !strings.HasSuffix(name, "$") {
		return t.fail(2, "ERROR: the stand-in does not know filter %q", a.flags["--filter"])
	}
	fmt.Fprintln(t.Stdout, "NAME         TYPE            STATUS\noperation-1  CREATE_CLUSTER  DONE")
	return 0
}
