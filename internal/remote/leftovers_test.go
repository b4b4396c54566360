package remote

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/bootstrap"
)

// leftoverAPI is the API of a cluster in which steps have left objects, by path.
type leftoverAPI struct {
	objects map[string]metav1.PartialObjectMetadata
	// slow are paths of objects that exist until the next list of their kind, and refusal is the answer to each deletion.
	slow    map[string]bool
	refusal int
	deleted []string
}

func (a *leftoverAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodDelete && a.refusal != 0:
		w.WriteHeader(a.refusal)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Message: "no", Code: int32(a.refusal),
		})
	case r.Method == http.MethodDelete:
		a.delete(r)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"})
	case strings.HasSuffix(r.URL.Path, "/serviceaccounts"): // a kind that is not served
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(a.list(r))
	}
}

func (a *leftoverAPI) delete(r *http.Request) {
	var options metav1.DeleteOptions
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &options); err != nil {
		panic(err)
	}
	o := a.objects[r.URL.Path]
	if options.PropagationPolicy == nil || *options.PropagationPolicy != metav1.DeletePropagationBackground || *options.Preconditions.UID != o.UID {
		panic(string(body))
	}
	a.deleted = append(a.deleted, path.Base(path.Dir(r.URL.Path))+"/"+o.Name)
	if a.slow[r.URL.Path] {
		now := metav1.Now()
		o.DeletionTimestamp = &now
		a.objects[r.URL.Path] = o
		return
	}
	delete(a.objects, r.URL.Path)
}

// list returns the objects that a list selects, and removes those that are being deleted.
func (a *leftoverAPI) list(r *http.Request) metav1.PartialObjectMetadataList {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil || !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
		panic(r.URL.String())
	}
	var out metav1.PartialObjectMetadataList
	for _, p := range slices.Sorted(maps.Keys(a.objects)) {
		o := a.objects[p]
		if path.Dir(p) != r.URL.Path || !selector.Matches(labels.Set(o.Labels)) {
			continue
		}
		out.Items = append(out.Items, o)
		if o.DeletionTimestamp != nil {
			delete(a.objects, p)
		}
	}
	return out
}

const (
	namespacePath = "/api/v1/namespaces/hotspare-bootstrap/"
	bindingsPath  = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"
	jobsPath      = "/apis/batch/v1/namespaces/hotspare-bootstrap/jobs/"
)

// newLeftoverAPI returns a cluster with what a Job and a chart of version v1 have left, a Job of v2, and objects of others.
func newLeftoverAPI(t *testing.T) (*leftoverAPI, *Connector) {
	t.Helper()
	a := &leftoverAPI{objects: map[string]metav1.PartialObjectMetadata{}, slow: map[string]bool{namespacePath + "pods/a-v1-x": true}}
	add := func(p, version string) {
		o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: path.Base(p), UID: types.UID("uid of " + p)}}
		if version != "" {
			o.Labels = map[string]string{"hotspare.io/bootstrap-version": version}
		}
		a.objects[p] = o
	}
	for _, p := range []string{
		bindingsPath + "hotspare-bootstrap-a-v1", jobsPath + "a-v1", namespacePath + "pods/a-v1-x",
		namespacePath + "secrets/a-v1", namespacePath + "secrets/chart-b-v1",
	} {
		add(p, "v1")
	}
	add(jobsPath+"a-v2", "v2")
	add(namespacePath+"secrets/chart-b-v2", "v2")
	add(bindingsPath+"cluster-admins", "")
	add(namespacePath+"secrets/of-the-user", "")
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	c, _ := connector(t, kubeconfig(server, token(secret)))
	return a, c
}

func TestWhatOtherVersionsHaveLeftIsRemoved(t *testing.T) {
	const ofV1 = "clusterrolebindings/hotspare-bootstrap-a-v1 jobs/a-v1 pods/a-v1-x secrets/a-v1 secrets/chart-b-v1"
	for name, tc := range map[string]struct{ version, deleted, rest string }{
		"version v2 remains": {"v2", ofV1, "a-v2 chart-b-v2 cluster-admins of-the-user"},
		"no version remains": {
			"", "clusterrolebindings/hotspare-bootstrap-a-v1 jobs/a-v1 jobs/a-v2 pods/a-v1-x secrets/a-v1 secrets/chart-b-v1 secrets/chart-b-v2", "cluster-admins of-the-user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := newLeftoverAPI(t)
			remove := func() bootstrap.Outcome {
				got, err := c.RemoveOtherVersions(t.Context(), key, tc.version)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			for _, want := range []string{"ClusterRoleBinding hotspare-bootstrap-a-v1; Job a-v1; ", "Pod a-v1-x"} {
				got := remove()
				if got.Done || got.Failed || !strings.HasPrefix(got.Message, "waiting for the deletion of what earlier steps have left in the cluster: "+want) {
					t.Errorf("got %+v", got)
				}
			}
			if got := remove(); !got.Done {
				t.Errorf("got %+v", got)
			}
			if got := strings.Join(a.deleted, " "); got != tc.deleted {
				t.Errorf("deleted %s", got)
			}
			var rest []string
			for _, p := range slices.Sorted(maps.Keys(a.objects)) {
				rest = append(rest, path.Base(p))
			}
			slices.Sort(rest)
			if got := strings.Join(rest, " "); got != tc.rest {
				t.Errorf("%s remain", got)
			}
		})
	}
}

func TestWhatOtherVersionsHaveLeftCannotBeRemoved(t *testing.T) {
	a, c := newLeftoverAPI(t)
	a.refusal = http.StatusForbidden
	got, err := c.RemoveOtherVersions(t.Context(), key, "v2")
	if err != nil || got.Done || !strings.HasPrefix(got.Message, "what earlier steps have left in the cluster cannot be removed: it responds: ") {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = c.RemoveOtherVersions(t.Context(), types.NamespacedName{Namespace: "n", Name: "missing"}, "v2")
	if err != nil || got.Done || got.Message != "the cluster does not answer: Secret missing with its admin kubeconfig does not exist" {
		t.Errorf("got %+v, %v", got, err)
	}
}
