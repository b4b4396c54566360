package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	for _, side := range []string{"client", "server"} {
		for _, name := range files {
			t.Run(side+"-side apply of "+name, func(t *testing.T) {
				t.Parallel()
				r := h.run(t, "", "kubectl", "apply", "--dry-run=server", "--server-side="+map[string]string{"client": "false", "server": "true"}[side],
					"-f", filepath.Join(root, name))
				if why := refusals[name]; why != "" {
					refused(t, r, why)
					return
				}
				if r.code != 0 {
					t.Errorf("it was refused:\n%s", r.all())
				}
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
