package config_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fleet/agent"
	"hotspare.io/hotspare/internal/fleet/agent/install"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/rbac"
)

var update = flag.Bool("update", false, "write docs/operate/rights.md anew")

const rightsPage = "../docs/operate/rights.md"

const rightsHead = `# Rights

This page lists the rights of each identity of hotspare. [Security](security.md#identities)
describes the identities and what a right can be used for;
[admission policies](security.md#admission-policies) restrict some rights further. Names in capitals,
such as ` + "`DATAPLANE` and `KUBECONFIG`" + `, are placeholders.

Do not edit this page: ` + "`make generate`" + ` writes it from the manifests and from the code
that grants rights. A test fails when this page differs.
`

// identity is somebody who has rights by hotspare's doing.
type identity struct {
	who, where string
	rules      []rbacv1.PolicyRule
}

func identities(t *testing.T) []identity {
	t.Helper()
	plane, err := install.DataPlaneManifests(install.Agent{Namespace: "NAMESPACE", Name: "DATAPLANE", UID: "UID", Image: "x/hotspare", Operator: agent.Fleetshard, HubKubeconfig: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	return []identity{
		{"`hotspare-manager`, on any hub", "everywhere", named(t, "rbac/role.yaml", "hotspare-manager")},
		{"`hotspare-manager` as a ServiceAccount, in addition", "everywhere", named(t, "manager/manager.yaml", "hotspare-metrics-guard")},
		{"`hotspare-manager` as a ServiceAccount, in addition", "in its namespace", named(t, "manager/manager.yaml", "hotspare-leader")},
		{"A subject of a binding to `hotspare-metrics-reader`", "everywhere", named(t, "manager/manager.yaml", "hotspare-metrics-reader")},
		{"A subject of a binding to `hive-cluster-pool-admin`", "in the namespace of the binding, and in those of its pools' clusters", named(t, "rbac/pool-admin.yaml", "hive-cluster-pool-admin")},
		{"A subject of a claim", "in the namespace of its cluster", owner(t)},
		{"The pod of an installer", "in the namespace of its cluster", hubjob.PolicyRules("ATTEMPT", "PARTS OF ITS STATE")},
		{"The pod of a recipe", "in the namespace of its cluster", hubjob.PolicyRules("STATE", "PARTS OF ITS STATE")},
		{"The agent of a data plane", "on the hub, in the namespace of its DataPlane", held(t, install.HubObjects("NAMESPACE", "DATAPLANE"))},
		{"The agent of a data plane", "on the data plane, everywhere", held(t, slices.Concat(plane.Absent, plane.Apply))},
	}
}

// owner is what the subjects of a claim get.
func owner(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	about := metav1.ObjectMeta{Namespace: "pools", Name: "mine"}
	claim := &hivev1.ClusterClaim{ObjectMeta: about, Spec: hivev1.ClusterClaimSpec{Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "alice"}}}}
	o := rbac.DecideOwnerAccess(claim, &hivev1.ClusterDeployment{Spec: hivev1.ClusterDeploymentSpec{
		ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p", ClaimName: "mine"},
		ClusterMetadata: &hivev1.ClusterMetadata{
			AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "KUBECONFIG"},
			AdminPasswordSecretRef:   &corev1.LocalObjectReference{Name: "PASSWORD"},
			MetadataJSONSecretRef:    &corev1.LocalObjectReference{Name: "METADATA"},
		},
	}})
	if o.Role == nil {
		t.Fatal("a subject of a claim gets nothing")
	}
	return o.Role.Rules
}

// named are the rules of the role of that name in a file.
func named(t *testing.T, file, name string) []rbacv1.PolicyRule {
	t.Helper()
	for _, r := range roles(t, file) {
		if r.Name == name {
			return r.Rules
		}
	}
	t.Fatalf("there is no %s in %s", name, file)
	return nil
}

// held are the rules of all roles among objects.
func held(t *testing.T, objects []client.Object) (out []rbacv1.PolicyRule) {
	t.Helper()
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.Role:
			out = append(out, o.Rules...)
		case *rbacv1.ClusterRole:
			out = append(out, o.Rules...)
		}
	}
	if len(out) == 0 {
		t.Fatal("found no roles")
	}
	return out
}

func TestThePageOfRightsIsWhatIsGranted(t *testing.T) {
	var b strings.Builder
	b.WriteString(rightsHead)
	for _, who := range identities(t) {
		fmt.Fprintf(&b, "\n## %s, %s\n\n| group | resources | verbs |\n|---|---|---|\n", who.who, who.where)
		for _, line := range told(who.rules) {
			b.WriteString(line)
		}
	}
	if *update {
		if err := os.WriteFile(rightsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(rightsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(page), b.String()); diff != "" {
		t.Errorf("docs/operate/rights.md is stale: run make generate\n%s", diff)
	}
}

// told are the rows of rules, sorted by group and resource.
func told(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		for _, path := range r.NonResourceURLs {
			out = append(out, fmt.Sprintf("| | the path `%s` | %s |\n", path, strings.Join(r.Verbs, ", ")))
		}
		for _, group := range r.APIGroups {
			what := code(r.Resources)
			if len(r.ResourceNames) > 0 {
				what += " named " + code(r.ResourceNames)
			}
			out = append(out, fmt.Sprintf("| %s | %s | %s |\n", cmp.Or(group, "core"), strings.ReplaceAll(what, "`*`", "all"), strings.ReplaceAll(strings.Join(r.Verbs, ", "), "*", "all")))
		}
	}
	slices.Sort(out)
	return out
}

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// Nobody but hotspare itself can hand out rights, run programs or read all Secrets of a
// hub; pool admins read those of their own namespaces.
func TestOnlyHotspareHasStrongRights(t *testing.T) {
	allowed := map[string][]string{
		"A subject of a binding to `hive-cluster-pool-admin`": {"read `secrets`", "everything `claimpolicies`", "everything `claimsets`", "everything `clusterclaims`", "everything `clusterpools`", "everything `clusterbootstraps`", "everything `poolpolicies`", "everything `powerschedules`"},
		"A subject of a claim":                                {"everything `*` of `hive.openshift.io`"},
		"The agent of a data plane":                           {"write `namespaces`", "write `deployments`"},
	}
	for _, who := range identities(t) {
		if strings.HasPrefix(who.who, "`hotspare-manager`") {
			continue // see TestEveryStrongRightIsJustifiedInWords
		}
		for _, r := range who.rules {
			for _, right := range strong(r) {
				if !slices.Contains(allowed[who.who], right) {
					t.Errorf("%s may, %s: %s", who.who, who.where, right)
				}
			}
		}
	}
}
