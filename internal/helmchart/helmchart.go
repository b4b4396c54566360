// Package helmchart renders packaged Helm charts into the objects that they install, in the phases in which they
// are installed.
//
// It has no cluster and no network: the function lookup of a template returns nothing, and getHostByName an empty
// text. A template may use any amount of memory and time: package renderprocess renders in a process of its own.
package helmchart

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// A Request is a chart to render.
type Request struct {
	// Archive is the packaged chart, a gzipped tar archive.
	Archive []byte `json:"archive"`
	// Release and Namespace are those of the release.
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// Values override those of the chart.
	Values map[string]any `json:"values,omitempty"`
	// KubernetesVersion of the cluster, such as v1.36.3, and the versions and kinds that it serves, such as v1,
	// apps/v1 and apps/v1/Deployment.
	KubernetesVersion string   `json:"kubernetesVersion"`
	APIVersions       []string `json:"apiVersions,omitempty"`
}

// A Phase is a part of a chart. It is installed after every object of the phase before is current.
type Phase struct {
	// Name is what the phase installs, for messages.
	Name string `json:"name"`
	// Manifests are YAML documents. Their objects are applied in this order.
	Manifests []string `json:"manifests"`
	// Hooks is set if the objects are hooks. A Job or Pod among them is current only after it has succeeded.
	Hooks bool `json:"hooks,omitempty"`
}

// Load returns the metadata of a packaged chart, or why it is none that can be installed. An error does not contain
// any content of the archive besides names.
func Load(archive []byte) (name, version string, err error) {
	c, err := loadChart(archive)
	if err != nil {
		return "", "", err
	}
	return c.Metadata.Name, c.Metadata.Version, nil
}

// loadChart loads a chart and checks what its metadata say about it.
func loadChart(archive []byte) (*chart.Chart, error) {
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("it is not a packaged chart, as helm package writes it: %w", err)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("its Chart.yaml is not valid: %w", err)
	}
	if c.Metadata.Type != "" && c.Metadata.Type != "application" {
		return nil, fmt.Errorf("chart %s has type %s, and only charts of type application can be installed", c.Name(), c.Metadata.Type)
	}
	if missing := listMissingDependencies(c); len(missing) > 0 {
		return nil, fmt.Errorf("chart %s needs %s, which the archive does not contain: run helm dependency build before helm package", c.Name(), strings.Join(missing, ", "))
	}
	return c, nil
}

// listMissingDependencies returns the charts that c needs and does not contain.
func listMissingDependencies(c *chart.Chart) []string {
	var out []string
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(has *chart.Chart) bool { return has.Name() == d.Name }) {
			out = append(out, d.Name)
		}
	}
	return out
}

// Render renders a chart. The phases are its CustomResourceDefinitions, the hooks before the install by weight, its
// objects in the order in which Helm installs them, and the hooks after the install by weight; hooks of other events,
// such as tests, are left out. Phases without objects are left out.
//
// The values are not checked against the JSON schema of the chart, because a schema may refer to files and addresses.
// An error may quote values and templates.
func Render(r Request) ([]Phase, error) {
	c, err := loadChart(r.Archive)
	if err != nil {
		return nil, err
	}
	version, err := chartutil.ParseKubeVersion(r.KubernetesVersion)
	if err != nil {
		return nil, fmt.Errorf("the version %q of the cluster is not one of Kubernetes: %w", r.KubernetesVersion, err)
	}
	if wants := c.Metadata.KubeVersion; wants != "" && !chartutil.IsCompatibleRange(wants, version.Version) {
		return nil, fmt.Errorf("chart %s is for Kubernetes %s, and the cluster has %s", c.Name(), wants, version.Version)
	}
	files, err := renderFiles(c, r, version)
	if err != nil {
		return nil, err
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("chart %s renders no valid manifests: %w", c.Name(), err)
	}
	definitions, objects := Phase{Name: "CustomResourceDefinitions"}, Phase{Name: "objects"}
	for _, d := range c.CRDObjects() {
		definitions.Manifests = append(definitions.Manifests, string(d.File.Data))
	}
	for _, m := range manifests {
		objects.Manifests = append(objects.Manifests, m.Content)
	}
	phases := slices.Concat([]Phase{definitions}, listHookPhases(hooks, release.HookPreInstall), []Phase{objects}, listHookPhases(hooks, release.HookPostInstall))
	return slices.DeleteFunc(phases, func(p Phase) bool { return len(p.Manifests) == 0 }), nil
}

// renderFiles renders the templates of a chart, without its notes.
func renderFiles(c *chart.Chart, r Request, version *chartutil.KubeVersion) (map[string]string, error) {
	if err := chartutil.ProcessDependenciesWithMerge(c, r.Values); err != nil {
		return nil, fmt.Errorf("reading the charts in chart %s: %w", c.Name(), err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion, capabilities.APIVersions = *version, r.APIVersions
	values, err := chartutil.ToRenderValuesWithSchemaValidation(c, r.Values, chartutil.ReleaseOptions{
		Name: r.Release, Namespace: r.Namespace, Revision: 1, IsInstall: true,
	}, capabilities, true)
	if err != nil {
		return nil, fmt.Errorf("merging the values of chart %s: %w", c.Name(), err)
	}
	files, err := engine.Render(c, values)
	if err != nil {
		return nil, fmt.Errorf("rendering chart %s: %w", c.Name(), err)
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	return files, nil
}

// listHookPhases returns a phase for each weight of the hooks of an event, the lightest first.
func listHookPhases(hooks []*release.Hook, event release.HookEvent) []Phase {
	byWeight := map[int][]string{}
	for _, h := range hooks {
		if slices.Contains(h.Events, event) {
			byWeight[h.Weight] = append(byWeight[h.Weight], h.Manifest)
		}
	}
	var out []Phase
	for _, weight := range slices.Sorted(maps.Keys(byWeight)) {
		out = append(out, Phase{Name: fmt.Sprintf("%s hooks of weight %d", event, weight), Manifests: byWeight[weight], Hooks: true})
	}
	return out
}
