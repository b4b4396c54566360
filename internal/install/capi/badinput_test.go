package capi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	k8stesting "k8s.io/client-go/testing"

	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

func TestAHubWithoutClusterAPIIsReported(t *testing.T) {
	const remedy = "in version v1beta2: install Cluster API 1.11 or later and its providers on the hub, or upgrade it"
	prepared := install.Metadata{InfraID: "c-1"}
	for name, c := range map[string]struct {
		missing schema.GroupVersionResource
		do      func(l *lab) error
		want    string
	}{
		"when a cluster is prepared": {
			clusterapi.Clusters, func(l *lab) error { _, err := l.Prepare(t.Context(), l.req); return err },
			"denied: the hub does not serve the resource clusters.cluster.x-k8s.io " + remedy,
		},
		"without ClusterClasses": {
			clusterapi.ClusterClasses, func(l *lab) error { _, err := l.Prepare(t.Context(), l.req); return err },
			"denied: the hub does not serve the resource clusterclasses.cluster.x-k8s.io " + remedy,
		},
		"when it is created": {
			clusterapi.Clusters, func(l *lab) error { _, err := l.Install(t.Context(), l.req, prepared); return err },
			"denied: the hub does not serve the resource clusters.cluster.x-k8s.io " + remedy,
		},
		"when it is destroyed: its machines may exist": {clusterapi.Clusters, func(l *lab) error {
			_, err := l.Destroy(t.Context(), l.req.ClusterTarget, prepared)
			return err
		}, "denied: the hub does not serve the resource clusters.cluster.x-k8s.io " + remedy},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Unserve(c.missing)
			if diff := cmp.Diff(c.want, describe(install.Result{}, c.do(l))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAClusterThatTheHubRejectsIsReported(t *testing.T) {
	kind := schema.GroupKind{Group: clusterapi.Group, Kind: "Cluster"}
	refused := field.Invalid(field.NewPath("spec", "topology", "variables").Key("size"), "{\"cores\":4}", "must be of type integer")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"variables that the class refuses": {
			apierrors.NewInvalid(kind, "ID", field.ErrorList{refused}),
			"denied: the hub rejects Cluster ID: Cluster.cluster.x-k8s.io \"ID\" is invalid: spec.topology.variables[size]: Invalid value: \"{\\\"cores\\\":4}\": must be of type integer",
		},
		"a policy that denies it": {
			apierrors.NewForbidden(clusterapi.Clusters.GroupResource(), "ID", errors.New("no more clusters today")),
			"denied: the hub rejects Cluster ID: clusters.cluster.x-k8s.io \"ID\" is forbidden: no more clusters today",
		},
		"a webhook that does not answer": {
			apierrors.NewInternalError(errors.New("failed calling webhook")),
			"unknown: creating Cluster ID: Internal error occurred: failed calling webhook",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			md := l.prepare()
			l.PrependReactor("create", "clusters", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			res, err := l.Install(t.Context(), l.req, md)
			if diff := cmp.Diff(c.want, strings.ReplaceAll(describe(res, err), md.InfraID, "ID")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATemplateWithAKindThatTheHubDoesNotServeIsReported(t *testing.T) {
	l := newLab(t, templateMap(template))
	l.req = templateRequest()
	l.Unserve(schema.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Resource: "awsclusters"})
	md := l.prepare()
	_, err := l.Install(t.Context(), l.req, md)
	want := "wait: the hub does not serve AWSCluster of infrastructure.cluster.x-k8s.io/v1beta2: install the provider of Cluster API on the hub, or correct the template"
	if diff := cmp.Diff(want, describe(install.Result{}, err)); diff != "" {
		t.Error(diff)
	}
	if l.Get(clusterapi.Clusters, "ns", md.InfraID) != nil {
		t.Error("the Cluster exists without its infrastructure")
	}
}

func TestKubeconfigsThatCannotBeUsedAreReportedWithoutTheirContent(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string]any
		want string
	}{
		"text that is no kubeconfig": {map[string]any{"value": "cGxhbnRlZC1zZWNyZXQ="}, // planted-secret
			"wait: the kubeconfig in Secret ID-kubeconfig cannot be parsed: correct or delete it, and Cluster API creates another"},
		"a kubeconfig without a cluster": {map[string]any{"value": "a2luZDogQ29uZmlnCg=="}, // kind: Config
			"wait: the kubeconfig in Secret ID-kubeconfig cannot be parsed: correct or delete it, and Cluster API creates another"},
		"another key":              {map[string]any{"admin.conf": "cGxhbnRlZC1zZWNyZXQ="}, "wait: Secret ID-kubeconfig has no kubeconfig in its key value yet"},
		"no keys":                  {nil, "wait: Secret ID-kubeconfig has no kubeconfig in its key value yet"},
		"an empty value":           {map[string]any{"value": ""}, "wait: Secret ID-kubeconfig has no kubeconfig in its key value yet"},
		"a value of no known form": {map[string]any{"value": "planted secret"}, "wait: Secret ID-kubeconfig has no kubeconfig in its key value yet"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			md := l.prepare()
			l.untilInstalled(md)
			l.Edit(clusterapi.Secrets, "ns", clusterapi.KubeconfigSecret(md.InfraID), func(o *unstructured.Unstructured) { o.Object["data"] = c.data })
			res, err := l.Install(t.Context(), l.req, md)
			got := strings.ReplaceAll(describe(res, err), md.InfraID, "ID")
			if diff := cmp.Diff(c.want, got); diff != "" || fault.KindOf(err) != fault.Wait || strings.Contains(got, "planted") {
				t.Errorf("%s: %s", diff, got)
			}
		})
	}
}
