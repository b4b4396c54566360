package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Why manifests from the documentation of others are refused, in the words of the refusal.
const (
	noYAML    = "error parsing"
	noName    = "name may not be empty"
	notOurs   = `no matches for kind "Template"`
	presetRef = "hotspare sets it when it assigns a cluster"
)

// refusals are what is refused of testdata/examples; all else is accepted.
var refusals = map[string]string{
	"claims/openshift-hive/docs__clusterpools.md.L90.yaml":                                                    presetRef,
	"claims/openshift-hive/docs__clusterpools.md@ec5e793b40.L75.yaml":                                         presetRef,
	"customizations/openshift-hive/docs__enhancements__patch-install-manifests.md.L65.yaml":                   noYAML, // it has a ...
	"deployments/openshift-hive/docs__enhancements__patch-install-manifests.md.L107.yaml":                     noYAML,
	"pools/openshift-hive/docs__enhancements__patch-install-manifests.md.L146.yaml":                           noYAML,
	"deployments/openshift-assisted-service/docs__hive-integration__import-installed-cluster.md.L67.yaml":     noYAML, // a shell's here-document
	"deployments/openshift-assisted-service/docs__hive-integration__kube-api-select-ocp-versions.md.L63.yaml": noName,
	"deployments/openshift-hive/config/templates/cluster-deployment.yaml":                                     notOurs,
	"deployments/openshift-hive/config/templates/cluster-deployment-customimageset.yaml":                      notOurs,
}

var namespaceLine = regexp.MustCompile(`(?m)^ +namespace: *([a-z0-9-]+)`)

func TestManifestsFromTheFieldAreTakenAsTheyAre(t *testing.T) {
	h := shared(t)
	root := filepath.Join("testdata", "examples")
	files, namespaces := examples(t, root)
	h.ensureNamespaces(t, namespaces...)
	for name := range refusals {
		if !strings.Contains(strings.Join(files, "\n")+"\n", name+"\n") {
			t.Errorf("%s is to be refused but does not exist", name)
		}
	}
	for side, flag := range map[string]string{"client": "--server-side=false", "server": "--server-side=true"} {
		apply := func(t *testing.T, names ...string) result {
			args := []string{"kubectl", "apply", "--dry-run=server", flag}
			for _, name := range names {
				args = append(args, "-f", filepath.Join(root, name))
			}
			return h.run(t, "", args...)
		}
		t.Run(side+"-side apply", func(t *testing.T) {
			parallelSubtest(t)
			accepted := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return refusals[name] != "" })
			if r := apply(t, accepted...); r.code != 0 {
				t.Errorf("some were refused:\n%s", r.all())
			}
		})
		for name, why := range refusals {
			t.Run(side+"-side apply of "+name, func(t *testing.T) {
				parallelSubtest(t)
				refused(t, apply(t, name), why)
			})
		}
	}
}

// examples returns the files below root, and the namespaces that they name.
func examples(t *testing.T, root string) (files, namespaces []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files = append(files, name)
		raw, err := os.ReadFile(filepath.Join(root, name))
		for _, found := range namespaceLine.FindAllSubmatch(raw, -1) {
			namespaces = append(namespaces, string(found[1]))
		}
		return err
	})
	if err != nil || len(files) < 50 {
		t.Fatalf("found %d examples, %v", len(files), err)
	}
	return files, namespaces
}
