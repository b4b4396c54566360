package resourcemetrics

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/metrics-server/pkg/api"
)

// cluster is a Collector of a cluster with fake kubelets, whose API a test server serves.
type cluster struct {
	t         *testing.T
	collector *Collector
	pods      *metadatafake.FakeMetadataClient
	api       *genericapiserver.GenericAPIServer
	url       string
}

// newCluster returns a cluster with the nodes of a kubelet and running pods.
func newCluster(t *testing.T, k *fakeKubelet, nodes []*corev1.Node, pods ...string) *cluster {
	t.Helper()
	var objects, metadata []runtime.Object
	for _, n := range nodes {
		objects = append(objects, n)
	}
	for _, name := range pods {
		metadata = append(metadata, podMetadata(name))
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, pods: metadatafake.NewSimpleMetadataClient(scheme, metadata...)}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.server.Certificate().Raw})
	var err error
	c.collector, err = New(Options{
		Client:     fake.NewClientset(objects...),
		Metadata:   c.pods,
		Kubelets:   rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: authority}},
		IsMeasured: func(n *corev1.Node) bool { return !slices.Contains(n.Status.Conditions, simulated) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.serve()
	return c
}

func podMetadata(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"name": name}},
	}
}

// serve serves the API of the collector.
func (c *cluster) serve() {
	c.t.Helper()
	config := genericapiserver.NewConfig(api.Codecs)
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &rest.Config{}
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.36", "", "")
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(api.Scheme))
	var err error
	c.api, err = config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.api.Destroy)
	if err := c.collector.Install(c.api); err != nil {
		c.t.Fatal(err)
	}
	info := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}
	server := httptest.NewServer(filters.WithRequestInfo(c.api.UnprotectedHandler(), info))
	c.t.Cleanup(server.Close)
	c.url = server.URL
}

// definitions are OpenAPI definitions of the API, as far as the server needs them.
func definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return map[string]common.OpenAPIDefinition{v1beta1.NodeMetrics{}.OpenAPIModelName(): {}, v1beta1.PodMetrics{}.OpenAPIModelName(): {}}
}

// watch lets the collector know the nodes and pods.
func (c *cluster) watch() {
	c.t.Helper()
	for _, informer := range c.collector.informers() {
		go informer.RunWithContext(c.t.Context())
		if !cache.WaitForCacheSync(c.t.Context().Done(), informer.HasSynced) {
			c.t.Fatal("the test ended")
		}
	}
}

// get returns the answer to a request for a path below the API's.
func (c *cluster) get(path, accept string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+"/apis/metrics.k8s.io/v1beta1/"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// list returns what the pods or nodes at a path use, in one line each.
func (c *cluster) list(path string) []string {
	c.t.Helper()
	code, body := c.get(path, "application/json")
	var got struct {
		Items []struct {
			v1beta1.NodeMetrics
			Containers []v1beta1.ContainerMetrics
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
		c.t.Fatalf("%s: %d, %v\n%s", path, code, err, body)
	}
	lines := []string{}
	for _, i := range got.Items {
		use := i.Usage
		if len(i.Containers) > 0 {
			use = i.Containers[0].Usage
		}
		lines = append(lines, fmt.Sprintf("%s %s %s in %s", i.Name, use.Cpu(), use.Memory(), i.Window.Duration))
	}
	return lines
}

func (c *cluster) wantList(path string, want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), c.list(path)); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestTheUseIsThatBetweenTwoMeasurements(t *testing.T) {
	k := newFakeKubelet(t)
	c := newCluster(t, k, []*corev1.Node{k.node("worker", ready)}, "a", "b")
	k.measure(100*time.Second, measurement{"a", 1, 1 << 20}, measurement{"b", 50, 1 << 20})
	c.collector.collect(t.Context())
	c.wantList("pods") // nodes and pods are not known yet
	c.watch()
	c.collector.collect(t.Context())
	c.wantList("nodes") // one measurement
	c.wantList("pods")

	k.measure(110*time.Second, measurement{"a", 1.5, 2 << 20}, measurement{"b", 51, 3 << 20}, measurement{"unknown", 1, 1})
	c.collector.collect(t.Context())
	c.wantList("nodes", "worker 1 1Gi in 10s")
	c.wantList("pods", "a 50m 2Mi in 10s", "b 100m 3Mi in 10s")
	c.collector.collect(t.Context()) // the kubelet has not measured again
	c.wantList("namespaces/ns/pods", "a 50m 2Mi in 10s", "b 100m 3Mi in 10s")
	c.wantList("namespaces/other/pods")
	c.wantList("pods?labelSelector=name%3Db", "b 100m 3Mi in 10s")
	c.wantList("pods?fieldSelector=metadata.name%3Da", "a 50m 2Mi in 10s")
	c.wantList("nodes?labelSelector=name%21%3Dworker")
}

func TestAYoungContainerNeedsOneMeasurement(t *testing.T) {
	k := newFakeKubelet(t)
	c := newCluster(t, k, []*corev1.Node{k.node("worker", ready)}, "a")
	c.watch()
	k.measure(12*time.Second, measurement{"a", 6, 1 << 20})
	c.collector.collect(t.Context())
	c.wantList("pods", "a 500m 1Mi in 12s")
}

func TestNodesAreAskedIfTheyAreReadyAndMeasured(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		want       int
	}{
		"a ready node is asked":                    {[]corev1.NodeCondition{{Type: "Other"}, ready}, 1},
		"a node without conditions is not asked":   {nil, 0},
		"a node that is not ready is not asked":    {[]corev1.NodeCondition{notReady}, 0},
		"a node that is not measured is not asked": {[]corev1.NodeCondition{ready, simulated}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := newFakeKubelet(t)
			c := newCluster(t, k, []*corev1.Node{k.node("node", tc.conditions...)})
			c.watch()
			c.collector.collect(t.Context())
			if got := k.requested(); got != tc.want {
				t.Errorf("%d requests", got)
			}
		})
	}
}

func TestAKubeletThatFailsHasNoMetricsAndTheOthersKeepTheirs(t *testing.T) {
	k, failing := newFakeKubelet(t), newFakeKubelet(t)
	c := newCluster(t, k, []*corev1.Node{k.node("worker", ready), failing.node("failing", ready)}, "a", "b")
	c.watch()
	for _, age := range []time.Duration{100 * time.Second, 110 * time.Second} {
		k.measure(age, measurement{"a", age.Seconds() / 10, 1 << 20})
		failing.measure(age, measurement{"b", age.Seconds() / 5, 1 << 20})
		c.collector.collect(t.Context())
	}
	c.wantList("nodes", "failing 1 1Gi in 10s", "worker 1 1Gi in 10s")
	failing.fail()
	c.collector.collect(t.Context())
	c.wantList("nodes", "worker 1 1Gi in 10s")
	c.wantList("pods", "a 100m 1Mi in 10s")
}

func TestOnePodOrNodeIsReadByItsName(t *testing.T) {
	k := newFakeKubelet(t)
	c := newCluster(t, k, []*corev1.Node{k.node("worker", ready), k.node("master", ready, simulated)}, "a", "waiting")
	c.watch()
	k.measure(12*time.Second, measurement{"a", 6, 1 << 20})
	c.collector.collect(t.Context())
	k.measure(13*time.Second, measurement{"a", 6, 1 << 20})
	c.collector.collect(t.Context())
	for path, want := range map[string]int{
		"nodes/worker":               http.StatusOK,
		"nodes/master":               http.StatusNotFound,
		"nodes/none":                 http.StatusNotFound,
		"namespaces/ns/pods/a":       http.StatusOK,
		"namespaces/ns/pods/waiting": http.StatusNotFound,
		"namespaces/ns/pods/none":    http.StatusNotFound,
		"namespaces/other/pods/a":    http.StatusNotFound,
	} {
		if code, body := c.get(path, "application/json"); code != want {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
}

func TestListsAreTablesForThoseWhoWantThem(t *testing.T) {
	k := newFakeKubelet(t)
	c := newCluster(t, k, []*corev1.Node{k.node("worker", ready)}, "a")
	c.watch()
	k.measure(12*time.Second, measurement{"a", 6, 1 << 20})
	c.collector.collect(t.Context())
	code, body := c.get("pods", "application/json;as=Table;v=v1;g=meta.k8s.io")
	var table metav1.Table
	if err := json.Unmarshal([]byte(body), &table); err != nil || code != http.StatusOK || table.Kind != "Table" {
		t.Fatalf("%d, %v\n%s", code, err, body)
	}
	if got := fmt.Sprint(table.Rows[0].Cells); got != "[a 500m 1Mi 12s]" {
		t.Error(got)
	}
}

func TestDiscoveryListsTheAPI(t *testing.T) {
	c := newCluster(t, newFakeKubelet(t), nil)
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis", nil)
	r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	c.api.AggregatedDiscoveryGroupManager.ServeHTTP(w, r)
	var got struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []struct {
					Resource string
					Verbs    []string
				}
			}
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, w.Body)
	}
	if want := "[{{metrics.k8s.io} [{v1beta1 [{nodes [get list]} {pods [get list]}]}]}]"; fmt.Sprint(got.Items) != want {
		t.Error(got.Items)
	}
}

func TestOnlyRunningPodsAreWatched(t *testing.T) {
	c := newCluster(t, newFakeKubelet(t), nil)
	c.watch()
	lists := 0
	for _, action := range c.pods.Actions() {
		if list, ok := action.(clienttesting.ListAction); ok {
			lists++
			if got := list.GetListRestrictions().Fields.String(); got != "status.phase=Running" {
				t.Errorf("pods are selected by %q", got)
			}
		}
	}
	if lists == 0 {
		t.Error("pods are not listed")
	}
}

func TestTheCollectorKeepsWhatItNeedsOfObjects(t *testing.T) {
	k := newFakeKubelet(t)
	node := k.node("worker", ready)
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"large"}}}
	c := newCluster(t, k, []*corev1.Node{node})
	c.watch()
	got, err := c.collector.nodeLister().Get("worker")
	if err != nil {
		t.Fatal(err)
	}
	if got.Annotations != nil || got.Status.Images != nil || got.Labels["name"] != "worker" || len(got.Status.Addresses) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestRunCollectsUntilItsContextEnds(t *testing.T) {
	k := newFakeKubelet(t)
	c := newCluster(t, k, []*corev1.Node{k.node("worker", ready)}, "a")
	k.measure(12*time.Second, measurement{"a", 6, 1 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.collector.Run(ctx)
	}()
	for !slices.Equal(c.list("pods"), []string{"a 500m 1Mi in 12s"}) {
		if ctx.Err() != nil {
			t.Fatalf("no metrics: %q", c.list("pods"))
		}
	}
	cancel()
	<-ended
}

func TestKindsAreAddedToThoseThatAreKnown(t *testing.T) {
	const podMetrics = "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics"
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	namer := openapi.NewDefinitionNamer(scheme)
	v2, v3 := &common.Config{GetDefinitionName: namer.GetDefinitionName}, &common.OpenAPIV3Config{GetDefinitionName: namer.GetDefinitionName}
	DescribeKinds(v2, v3)
	for name, want := range map[string]string{
		podMetrics:                 "metrics.k8s.io",
		"io.k8s.api.core.v1.Pod":   "kind:Pod",
		"io.k8s.api.core.v1.Spell": "map[]",
	} {
		for version, describe := range map[string]func(string) (string, spec.Extensions){"v2": v2.GetDefinitionName, "v3": v3.GetDefinitionName} {
			if got, kinds := describe(name); got != name || !strings.Contains(fmt.Sprint(kinds), want) {
				t.Errorf("%s: %s is %s, %v", version, name, got, kinds)
			}
		}
	}
}
