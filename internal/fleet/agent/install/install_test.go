package install

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/fleet/agent"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, objects []client.Object) {
	t.Helper()
	var docs []string
	for _, o := range objects {
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(raw))
	}
	got, path := strings.Join(docs, "---\n"), filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func local() Agent {
	return Agent{Namespace: "fleet", Name: "plane-1", UID: "u", Image: LocalImage, Operator: agent.StandIn, HubKubeconfig: []byte("config")}
}

func TestTheHubsManifests(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "hotspare.io/v1alpha1", Kind: "DataPlane", Name: "plane-1", UID: "u"}
	golden(t, "hub.yaml", HubObjects("fleet", "plane-1", owner))
}

func TestTheDataPlanesManifests(t *testing.T) {
	m, err := DataPlaneManifests(local())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "dataplane.yaml", m.Apply)
	var names []string
	for _, o := range m.Absent {
		names = append(names, o.GetName())
	}
	if diff := cmp.Diff([]string{"managedkafkaagents.managedkafka.bf2.org", "managedkafkas.managedkafka.bf2.org"}, names); diff != "" {
		t.Error(diff)
	}
}

// The agent does not write an operator's status, unless it is the stand-in.
func TestOnlyTheStandInWritesStatus(t *testing.T) {
	for operator, want := range map[string]bool{agent.StandIn: true, agent.Fleetshard: false} {
		a := local()
		a.Operator = operator
		m, err := DataPlaneManifests(a)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, o := range m.Apply {
			if role, ok := o.(*rbacv1.ClusterRole); ok {
				got = slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "managedkafkas/status") })
			}
		}
		if got != want {
			t.Errorf("%s: %t", operator, got)
		}
	}
}

func TestRightsNameWhatTheyAreFor(t *testing.T) {
	m, err := DataPlaneManifests(local())
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, o := range slices.Concat(m.Apply, HubObjects("fleet", "plane-1")) {
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, role.Rules...)
		case *rbacv1.Role:
			rules = append(rules, role.Rules...)
			for _, r := range role.Rules {
				if !slices.Equal(r.ResourceNames, []string{"plane-1"}) {
					t.Errorf("on the hub it may touch %v", r)
				}
			}
		}
	}
	for _, r := range rules {
		for _, s := range slices.Concat(r.APIGroups, r.Resources, r.Verbs) {
			if s == "*" || s == "secrets" || s == "pods" || s == "escalate" || s == "bind" || s == "impersonate" {
				t.Errorf("it may %v", r)
			}
		}
	}
}

func TestANewKubeconfigMakesANewPod(t *testing.T) {
	pod := func(config string) corev1.PodTemplateSpec {
		a := local()
		a.HubKubeconfig = []byte(config)
		return agentDeployment(a).Spec.Template
	}
	if cmp.Equal(pod("a"), pod("b")) || !cmp.Equal(pod("a"), pod("a")) {
		t.Error("the pod does not follow the kubeconfig")
	}
}

func TestKubeconfig(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "plane-1-agent-token"}}
	if _, err := BuildKubeconfig("https://127.0.0.1:1", nil, secret); err == nil {
		t.Error("there is a kubeconfig before the token")
	}
	secret.Data = map[string][]byte{"token": []byte("t"), "ca.crt": []byte("ca")}
	if _, err := BuildKubeconfig("", nil, secret); err == nil {
		t.Error("there is a kubeconfig that leads nowhere")
	}
	for want, own := range map[string][]byte{"ca": nil, "own": []byte("own")} {
		raw, err := BuildKubeconfig("https://127.0.0.1:1", own, secret)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(raw)
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != "https://127.0.0.1:1" || config.BearerToken != "t" || string(config.CAData) != want {
			t.Errorf("it leads to %+v", config)
		}
	}
}
