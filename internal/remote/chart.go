package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/helmchart"
)

// Keys of the Secret in a cluster that records the install of a chart: what was rendered, as gzipped JSON, and how many
// phases are installed. Templates may contain random values, so that a chart is rendered once for a cluster.
const (
	chartPhasesKey    = "phases.json.gz"
	chartInstalledKey = "installed"
	// chartDone is the number of installed phases after the last one. The record then has no phases any more: they
	// may contain secrets of the hub.
	chartDone = "all"
)

const (
	// maxChartRecord is the size of what was rendered, compressed, in bytes: that of a Secret, with some room.
	maxChartRecord = 1000 << 10
	// maxChartObjects is the size of what was rendered, in bytes.
	maxChartObjects = 32 << 20
)

// chartRecord is the record of a chart in a cluster.
type chartRecord struct {
	phases    []helmchart.Phase
	installed int
	done      bool
	// damage says what is wrong with a record that hotspare has not written; empty if nothing is.
	damage string
}

// installChart installs the phases of a chart, each after every object of the one before is current. It continues where
// an earlier attempt has ended.
func (a manifestApplier) installChart(ctx context.Context, c bootstrap.Chart) bootstrap.Outcome {
	record, err := a.readChartRecord(ctx, c.Record)
	if err != nil {
		return bootstrap.Outcome{Message: "the cluster does not answer: " + describeNoAnswer(err)}
	}
	if record == nil {
		return a.renderChart(ctx, c)
	}
	if record.damage != "" {
		return bootstrap.Outcome{Failed: true, Message: record.damage}
	}
	for i := record.installed; i < len(record.phases) && !record.done; i++ {
		phase := record.phases[i]
		manifests, err := readPhase(phase, c, i == 0)
		if err != nil {
			return bootstrap.Outcome{Failed: true, Message: fmt.Sprintf("the %s of the chart cannot be used: %s", phase.Name, err)}
		}
		if got := a.applyManifests(ctx, manifests); !got.Done {
			return got
		}
		if err := a.recordPhases(ctx, c.Record, i+1, len(record.phases)); err != nil {
			return bootstrap.Outcome{Message: "the cluster does not answer: " + describeNoAnswer(err)}
		}
	}
	return bootstrap.Outcome{Done: true}
}

// renderChart renders a chart for this cluster, and records the result in it.
func (a manifestApplier) renderChart(ctx context.Context, c bootstrap.Chart) bootstrap.Outcome {
	version, apis, err := a.discoverAPIs(ctx)
	if err != nil {
		return bootstrap.Outcome{Message: "the cluster does not answer: " + describeNoAnswer(err)}
	}
	phases, err := a.render(ctx, helmchart.Request{
		Archive: c.Archive, Release: c.Release, Namespace: c.Namespace, Values: c.Values, KubernetesVersion: version, APIVersions: apis,
	})
	var raw []byte
	if err == nil {
		raw, err = encodePhases(phases)
	}
	if err != nil {
		return bootstrap.Outcome{Failed: true, Message: "the chart cannot be rendered: " + a.describeRenderError(err, c)}
	}
	record := corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: bootstrap.JobNamespace, Name: c.Record, Labels: map[string]string{v1alpha1.LabelBootstrapVersion: c.Version},
		},
		Data: map[string][]byte{chartPhasesKey: raw, chartInstalledKey: []byte("0")},
	}
	if got := a.applyManifests(ctx, []bootstrap.Manifest{bootstrap.NewJobNamespace()}); !got.Done {
		return got
	}
	if err := a.createChartRecord(ctx, &record); err != nil {
		return bootstrap.Outcome{Message: "what was rendered cannot be recorded in the cluster: " + describeNoAnswer(err)}
	}
	return bootstrap.Outcome{Message: "waiting for the objects of the chart: it was rendered"}
}

// describeRenderError returns why a chart was not rendered. The words of a template may quote values.
func (a manifestApplier) describeRenderError(err error, c bootstrap.Chart) string {
	if c.Secret {
		return "the reason is not shown, because the chart or its values are secret: render it with helm template to see it"
	}
	return scrubMessage(err.Error(), a.secrets)
}

// readPhase returns the manifests of a phase. The first one creates the namespace of the release.
func readPhase(p helmchart.Phase, c bootstrap.Chart, first bool) ([]bootstrap.Manifest, error) {
	var out []bootstrap.Manifest
	if first && c.Namespace != metav1.NamespaceDefault {
		out = append(out, newReleaseNamespace(c.Namespace))
	}
	for _, text := range p.Manifests {
		manifests, err := bootstrap.ParseManifests(text, c.Secret)
		if err != nil {
			return nil, err
		}
		for _, m := range manifests {
			prepareChartObject(m.Object, c)
			m.RunsToEnd = p.Hooks
			out = append(out, m)
		}
	}
	return out, nil
}

// prepareChartObject puts an object into the namespace of the release, unless it has one, and marks it as Helm marks
// the objects of a release: helm upgrade --install takes them over.
func prepareChartObject(u *unstructured.Unstructured, c bootstrap.Chart) {
	if u.GetNamespace() == "" {
		u.SetNamespace(c.Namespace)
	}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"] = c.Release
	annotations["meta.helm.sh/release-namespace"] = c.Namespace
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
}

func newReleaseNamespace(name string) bootstrap.Manifest {
	return bootstrap.Manifest{Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}}
}

// chartRecordPath is the path of the Secret that records the install of a chart; of all such Secrets if name is empty.
func chartRecordPath(name string) string {
	return strings.TrimSuffix("/api/v1/namespaces/"+bootstrap.JobNamespace+"/secrets/"+name, "/")
}

// readChartRecord returns the record of a chart; nil if there is none.
func (a manifestApplier) readChartRecord(ctx context.Context, name string) (*chartRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var s corev1.Secret
	err := a.readJSON(ctx, chartRecordPath(name), &s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case string(s.Data[chartInstalledKey]) == chartDone:
		return &chartRecord{done: true}, nil
	}
	out := &chartRecord{}
	if out.installed, err = strconv.Atoi(string(s.Data[chartInstalledKey])); err != nil {
		return &chartRecord{damage: fmt.Sprintf("Secret %s/%s has no number of installed phases: delete it", bootstrap.JobNamespace, name)}, nil
	}
	if out.phases, err = decodePhases(s.Data[chartPhasesKey]); err != nil {
		return &chartRecord{damage: fmt.Sprintf("Secret %s/%s has no rendered chart: delete it", bootstrap.JobNamespace, name)}, nil
	}
	if out.installed < 0 || out.installed > len(out.phases) {
		return &chartRecord{damage: fmt.Sprintf("Secret %s/%s says that %d of %d phases are installed: delete it", bootstrap.JobNamespace, name, out.installed, len(out.phases))}, nil
	}
	return out, nil
}

// createChartRecord creates the record of a chart. One that another attempt has created stays.
func (a manifestApplier) createChartRecord(ctx context.Context, s *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding Secret %s: %w", s.Name, err)
	}
	err = a.core.RESTClient().Post().AbsPath(chartRecordPath("")).SetHeader("Content-Type", "application/json").Body(raw).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// recordPhases records how many phases are installed. After the last one, what was rendered is removed.
func (a manifestApplier) recordPhases(ctx context.Context, name string, installed, of int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	data := map[string]any{chartInstalledKey: []byte(strconv.Itoa(installed))}
	if installed == of {
		data = map[string]any{chartInstalledKey: []byte(chartDone), chartPhasesKey: nil}
	}
	raw, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encoding the record of the chart: %w", err)
	}
	return a.core.RESTClient().Patch(types.MergePatchType).AbsPath(chartRecordPath(name)).Body(raw).Do(ctx).Error()
}

func encodePhases(phases []helmchart.Phase) ([]byte, error) {
	if len(phases) == 0 {
		return nil, errors.New("it has no objects with these values")
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(z).Encode(phases), z.Close()); err != nil {
		return nil, fmt.Errorf("encoding what was rendered: %w", err)
	}
	if out.Len() > maxChartRecord {
		return nil, fmt.Errorf("its objects have %d KiB when they are compressed, and at most %d KiB can be recorded: install it in parts, or with a Job",
			out.Len()>>10, maxChartRecord>>10)
	}
	return out.Bytes(), nil
}

func decodePhases(raw []byte) ([]helmchart.Phase, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading what was rendered: %w", err)
	}
	var out []helmchart.Phase
	if err := json.NewDecoder(io.LimitReader(z, maxChartObjects)).Decode(&out); err != nil {
		return nil, fmt.Errorf("reading what was rendered: %w", err)
	}
	return out, nil
}

// discoverAPIs returns the version of Kubernetes, and the versions and kinds that the cluster serves, as Helm passes
// them to templates. Those of an API that does not answer are left out.
func (a manifestApplier) discoverAPIs(ctx context.Context) (version string, apis []string, err error) {
	version = a.readAPIVersion(ctx).Desired
	if version == "" {
		return "", nil, errors.New("its version cannot be read")
	}
	groups := metav1.APIGroupList{}
	if err := a.readWithTimeout(ctx, "/apis", &groups); err != nil {
		return "", nil, err
	}
	apis = []string{"v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			apis = append(apis, v.GroupVersion)
		}
	}
	for _, v := range slices.Clone(apis) {
		var served metav1.APIResourceList
		if err := a.readWithTimeout(ctx, groupVersionPath(v), &served); err != nil {
			continue
		}
		for _, r := range served.APIResources {
			if !strings.Contains(r.Name, "/") {
				apis = append(apis, v+"/"+r.Kind)
			}
		}
	}
	slices.Sort(apis)
	return version, slices.Compact(apis), nil
}

func (a manifestApplier) readWithTimeout(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.readJSON(ctx, path, into)
}

// convertObject decodes an object into its type.
func convertObject(u *unstructured.Unstructured, into any) error {
	raw, err := u.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding %s: %w", u.GetKind(), err)
	}
	return json.Unmarshal(raw, into)
}
