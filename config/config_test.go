package config_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"hotspare.io/hotspare/config"
)

func TestTheKustomizationListsEveryManifest(t *testing.T) {
	raw, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(raw, &k); err != nil {
		t.Fatal(err)
	}
	want := []string{"manager/manager.yaml", "manager/namespace.yaml", "rbac/pool-admin.yaml", "rbac/role.yaml"}
	for _, folder := range []string{"admission", "crd"} {
		names, err := fs.Glob(config.Manifests, folder+"/*.yaml")
		if err != nil || len(names) == 0 {
			t.Fatalf("found nothing in %s: %v", folder, err)
		}
		want = append(want, names...)
	}
	slices.Sort(want)
	slices.Sort(k.Resources)
	if diff := cmp.Diff(want, k.Resources); diff != "" {
		t.Errorf("kustomization.yaml (+) differs from what there is (-):\n%s", diff)
	}
}

// page tells operators why hotspare has the rights that could do harm.
const page = "../docs/operate/install.md"

// row is one of its table: a right, and why.
var row = regexp.MustCompile("^\\| ((?:everything|read|write|bind|escalate|impersonate) `[^|]*) \\| ([^|]+) \\|$")

func TestEveryStrongRightIsJustifiedInWords(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(raw)) {
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			told = append(told, m[1])
			if len(strings.Fields(m[2])) < 5 {
				t.Errorf("%s: %q justifies nothing", m[1], m[2])
			}
		}
	}
	slices.Sort(told)
	var have []string
	for _, r := range rules(t, "rbac/role.yaml", "manager/manager.yaml") {
		t.Logf("may %s", r)
		have = append(have, strong(r)...)
	}
	slices.Sort(have)
	if diff := cmp.Diff(slices.Compact(have), told); diff != "" {
		t.Errorf("%s (+) does not tell of the strong rights that hotspare-manager has (-): give one up, or say there why it needs it:\n%s", page, diff)
	}
}

// A rule that names objects tells its reader that others cannot be touched.
func TestRulesThatNameObjectsAreNotGrantedForAll(t *testing.T) {
	all := rules(t, "rbac/role.yaml", "manager/manager.yaml")
	for _, named := range all {
		if len(named.ResourceNames) == 0 {
			continue
		}
		for _, wide := range all {
			if len(wide.ResourceNames) > 0 || !overlap(wide.APIGroups, named.APIGroups) || !overlap(wide.Resources, named.Resources) {
				continue
			}
			if overlap(wide.Verbs, named.Verbs) {
				t.Errorf("%v of %v %v is granted for all, and so %v narrows nothing: %v", named.Verbs, named.APIGroups, named.Resources, named.ResourceNames, wide.Verbs)
			}
		}
	}
}

func overlap(wide, named []string) bool {
	return slices.Contains(wide, "*") || slices.ContainsFunc(named, func(one string) bool { return slices.Contains(wide, one) })
}

// rules are those of all roles in these files, but the one that is for others.
func rules(t *testing.T, files ...string) []rbacv1.PolicyRule {
	t.Helper()
	var out []rbacv1.PolicyRule
	for _, name := range files {
		for _, role := range roles(t, name) {
			if role.Name != "hotspare-metrics-reader" {
				out = append(out, role.Rules...)
			}
		}
	}
	if len(out) < 10 {
		t.Fatalf("found %d rules: this test looks in the wrong place", len(out))
	}
	return out
}

// roles are those in a file, whatever else is in it.
func roles(t *testing.T, name string) (out []rbacv1.ClusterRole) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for dec := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var role rbacv1.ClusterRole
		if err := dec.Decode(&role); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(role.Rules) > 0 {
			out = append(out, role)
		}
	}
}

var (
	reading = []string{"get", "list", "watch"}
	// handing over rights, whatever they are.
	handing = []string{"bind", "escalate", "impersonate"}
	// harmful to write: what gives rights, or runs programs, or takes all with it.
	harmful = []string{
		"roles", "rolebindings", "clusterroles", "clusterrolebindings", "serviceaccounts", "serviceaccounts/token",
		"pods", "pods/exec", "jobs", "cronjobs", "deployments", "daemonsets", "statefulsets", "replicasets",
		"namespaces", "nodes", "customresourcedefinitions", "validatingadmissionpolicies", "mutatingadmissionpolicies",
	}
)

// strong names what of a rule could do harm: all of something, Secrets, rights, programs.
// What is limited to names does little, unless it hands over rights.
func strong(r rbacv1.PolicyRule) []string {
	var out []string
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				if how := strength(r, group, resource, verb); how != "" {
					out = append(out, how)
				}
			}
		}
	}
	return out
}

func strength(r rbacv1.PolicyRule, group, resource, verb string) string {
	what := "`" + resource + "`"
	if resource == "*" {
		what = "`*` of `" + group + "`"
	}
	all := group == "*" || resource == "*"
	reads := slices.Contains(reading, verb)
	switch {
	case slices.Contains(handing, verb):
		return verb + " " + what + " " + strings.Join(r.ResourceNames, " ")
	case verb == "*":
		return "everything " + what
	case len(r.ResourceNames) > 0:
		return ""
	case reads && (all || resource == "secrets"):
		return "read " + what
	case !reads && (all || resource == "secrets" || slices.Contains(harmful, resource)):
		return "write " + what
	}
	return ""
}

func TestStrongRightsAreSeen(t *testing.T) {
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	for name, c := range map[string]struct {
		rule rbacv1.PolicyRule
		want string
	}{
		"all verbs":                     {rule("apps", "deployments", "*"), "everything `deployments`"},
		"all resources":                 {rule("apps", "*", "get"), "read `*` of `apps`"},
		"all groups":                    {rule("*", "things", "patch"), "write `things`"},
		"all Secrets":                   {rule("", "secrets", "watch"), "read `secrets`"},
		"one Secret":                    {rule("", "secrets", "get", "mine"), ""},
		"escalation":                    {rule("rbac.authorization.k8s.io", "roles", "escalate"), "escalate `roles` "},
		"even of one role":              {rule("rbac.authorization.k8s.io", "clusterroles", "bind", "x"), "bind `clusterroles` x"},
		"being another":                 {rule("", "users", "impersonate"), "impersonate `users` "},
		"giving rights":                 {rule("rbac.authorization.k8s.io", "rolebindings", "create"), "write `rolebindings`"},
		"running programs":              {rule("batch", "jobs", "create"), "write `jobs`"},
		"looking at who runs":           {rule("", "pods", "list"), ""},
		"an ordinary write of our kind": {rule("hotspare.io", "dataplanes/status", "patch"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(strong(c.rule), ", "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
