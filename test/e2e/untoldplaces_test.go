package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// everywhere looks for secrets in all that people see of a hub.
func (s *secrets) everywhere(t *testing.T) {
	t.Helper()
	s.objects(t)
	s.commands(t)
	text, err := s.scrape(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	s.noneIn(t, "the metrics of the controllers", text)
	s.noneIn(t, "the metrics of the API server", s.kubectl(t, "get", "--raw", "/metrics"))
	s.noneIn(t, "what hotspare up prints", s.said.String())
	s.logs(t)
}

// held are the fields that hold secrets by what they are for.
var held = map[string][][]string{
	"Secret":                         {{"data"}},
	"ClusterDeploymentCustomization": {{"spec"}, {"status", "lastAppliedConfiguration"}}, // patches, as their user wrote them
}

// objects looks at all objects of all kinds, events and conditions among them.
func (s *secrets) objects(t *testing.T) {
	t.Helper()
	config, err := s.config()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	disco, err1 := discovery.NewDiscoveryClientForConfig(config)
	all, err2 := dynamic.NewForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	groups, err := disco.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, group := range groups {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range group.APIResources {
			if strings.Contains(strings.Join(r.Verbs, " "), "list") {
				seen[r.Kind] += s.listed(t, all.Resource(gv.WithResource(r.Name)), r.Kind)
			}
		}
	}
	for _, kind := range []string{
		"Event", "Secret", "ConfigMap", "Job", "Pod", "Role", "ClusterPool", "ClusterDeployment", "ClusterProvision", "ClusterDeploymentCustomization", "DataPlane",
	} {
		if seen[kind] == 0 && kind != "Pod" && kind != "Job" && kind != "Role" { // these go with claims and installs
			t.Errorf("there is no %s: this test looks in the wrong place", kind)
		}
	}
}

func (s *secrets) listed(t *testing.T, of dynamic.ResourceInterface, kind string) int {
	t.Helper()
	list, err := of.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("listing %s: %v", kind, err)
	}
	for _, o := range list.Items {
		for _, field := range held[kind] {
			unstructured.RemoveNestedField(o.Object, field...)
		}
		raw, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		s.noneIn(t, kind+" "+o.GetNamespace()+"/"+o.GetName(), string(raw))
	}
	return len(list.Items)
}

// commands looks at what commands print, well and ill.
func (s *secrets) commands(t *testing.T) {
	t.Helper()
	lines := []string{
		"pool describe dev", "pool describe stock", "pool list -o yaml", "claim list -o yaml", "cluster list -o yaml", "inventory list", "inventory list -o yaml",
		"inventory describe good", "inventory describe typo", "inventory describe occupied", "fleet status", "fleet explain", "status", "status -o yaml",
		"schedule list", "kubectl describe clusterdeployments", "kubectl describe clusterprovisions", "kubectl describe clusterpools", "kubectl get events",
		"cluster describe nothing",
	}
	for _, name := range strings.Fields(s.kubectl(t, "get", "clusterdeployments", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name} {end}")) {
		lines = append(lines, "cluster describe "+name)
	}
	for _, line := range lines {
		r := s.run(t, "", append(strings.Fields(line), "-n", s.ns)...)
		s.noneIn(t, "hotspare "+line, r.all())
	}
}

// holds are the files below the data folder that hold secrets, by what they are for: the
// hub's store and keys, the disks of local clusters, and what an installer was given.
var holds = regexp.MustCompile(`^(kubeconfig|hub/.*|machines/[^/]+/[^/]+/disk/.*|machines/[^/]+/[^/]+/machine\.json|installs/[^/]+/(install-config\.yaml|metadata\.json|auth/.*))$`)

// files checks that nobody else can read the files that hold secrets, and that others
// hold none.
func (s *secrets) files(t *testing.T) {
	t.Helper()
	kept := 0
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has gone meanwhile
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		if holds.MatchString(filepath.ToSlash(name)) {
			kept++
			return forItsOwner(t, path)
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if len(raw) > 0 {
			s.noneIn(t, name, string(raw))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept < 10 {
		t.Errorf("%d files hold secrets: this test looks in the wrong place", kept)
	}
}

func forItsOwner(t *testing.T, path string) error {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%s holds secrets, and has mode %o", path, info.Mode().Perm())
	}
	return err
}

// logs looks at what machines and installers of local clusters have logged, while they
// are there.
func (s *secrets) logs(t *testing.T) {
	t.Helper()
	var all []string
	for _, pattern := range []string{"hotspare.log", "machines/*/*/machine.log", "installs/*/.openshift_install.log", "pods/*/log"} {
		found, err := filepath.Glob(filepath.Join(s.dir, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Errorf("found no %s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	for _, path := range all {
		if raw, err := os.ReadFile(path); err == nil && len(raw) > 0 { // else it has gone, or says nothing
			s.noneIn(t, path, string(raw))
		}
	}
}
