package remote

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/gate"
)

// gateAPI is the API of a cluster whose gates are checked. Objects are stored by path.
type gateAPI struct {
	objects map[string]any
	token   string // the one that it accepts
	// refuseDeletions is set while the cluster deletes nothing.
	refuseDeletions bool
}

const issued = "issued-t0ken"

func (a *gateAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	answer, found := a.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/token"):
		answer, found = authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: issued}}, true
	case r.Method == http.MethodPost && r.URL.Path == tokenReviewsPath:
		var review authenticationv1.TokenReview
		decode(body, &review)
		review.Status.Authenticated = review.Spec.Token == a.token
		answer, found = review, true
	case r.Method == http.MethodPost:
		var pod corev1.Pod
		decode(body, &pod)
		pod.UID = "u1"
		a.objects[r.URL.Path+"/"+pod.Name] = &pod
		answer, found = pod, true
	case r.Method == http.MethodDelete && a.refuseDeletions:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.Method == http.MethodDelete:
		delete(a.objects, r.URL.Path)
	case r.URL.Path == gatePodsPath:
		answer, found = a.listPods(r.URL.Query().Get("labelSelector")), true
	}
	w.Header().Set("Content-Type", "application/json")
	if !found {
		w.WriteHeader(http.StatusNotFound)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

const gatePodsPath = "/api/v1/namespaces/default/pods"

// listPods returns the pods in namespace default that a selector selects.
func (a *gateAPI) listPods(selector string) corev1.PodList {
	selected, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, path := range slices.Sorted(maps.Keys(a.objects)) {
		if pod, is := a.objects[path].(*corev1.Pod); is && selected.Matches(labels.Set(pod.Labels)) {
			list.Items = append(list.Items, *pod)
		}
	}
	return list
}

// decode decodes the body of a request, which is JSON or Protobuf.
func decode(body []byte, into runtime.Object) {
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		panic(err)
	}
}

// newGateAPI returns a healthy cluster, and its client.
func newGateAPI(t *testing.T) (*gateAPI, *spokeClient) {
	t.Helper()
	a, server := newGateServer(t)
	client, err := newSpokeClient([]byte(kubeconfig(server, token(secret))))
	if err != nil {
		t.Fatal(err)
	}
	return a, client
}

// newGateServer returns a healthy cluster.
func newGateServer(t *testing.T) (*gateAPI, *httptest.Server) {
	t.Helper()
	available := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Status: appsv1.DeploymentStatus{
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}}
	ready := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m0"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	a := &gateAPI{token: issued, objects: map[string]any{
		"/api/v1/nodes":   corev1.NodeList{Items: []corev1.Node{ready}},
		systemDeployments: appsv1.DeploymentList{Items: []appsv1.Deployment{available}},
		apiServicesPath:   map[string]any{"items": []any{apiService("v1.", "True")}},
		"/api/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{
			{Name: "secrets", Kind: "Secret", Namespaced: true}, {Name: "nodes/proxy", Kind: "Node"}, {Name: "nodes", Kind: "Node"},
		}},
		"/api/v1/namespaces/d/secrets/s": map[string]any{"data": map[string]any{"password": "aHVudGVyMg=="}},
		"/api/v1/nodes/m0":               ready,
	}}
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	return a, server
}

func apiService(name, available string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": available}}}}
}

func describeAnswer(a gate.Answer) string {
	if a.Passed {
		return "passed"
	}
	return a.Message
}

func TestGates(t *testing.T) {
	object := func(kind, namespace, name, expression string) v1alpha1.Gate {
		return v1alpha1.Gate{Type: v1alpha1.GateObject, Object: &v1alpha1.GateObjectCheck{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name, Expression: expression}}
	}
	set := func(path string, value any) func(*gateAPI) { return func(a *gateAPI) { a.objects[path] = value } }
	said := object("Secret", "d", "s", "false")
	said.Object.Message = "the licence is missing"
	for name, tc := range map[string]struct {
		gate   v1alpha1.Gate
		change func(*gateAPI)
		want   string
	}{
		"nodes":                              {gate: v1alpha1.Gate{Type: v1alpha1.GateNodesReady}, want: "passed"},
		"no node":                            {v1alpha1.Gate{Type: v1alpha1.GateNodesReady}, set("/api/v1/nodes", corev1.NodeList{}), "the cluster has no node"},
		"a node that is not ready":           {v1alpha1.Gate{Type: v1alpha1.GateNodesReady}, set("/api/v1/nodes", corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}}}), "nodes are not ready: m1"},
		"system Deployments":                 {gate: v1alpha1.Gate{Type: v1alpha1.GateSystemDeploymentsAvailable}, want: "passed"},
		"a Deployment that is not available": {v1alpha1.Gate{Type: v1alpha1.GateSystemDeploymentsAvailable}, set(systemDeployments, appsv1.DeploymentList{Items: []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Name: "dns"}}}}), "Deployments in namespace kube-system are not available: dns"},
		"APIServices":                        {gate: v1alpha1.Gate{Type: v1alpha1.GateAPIServicesAvailable}, want: "passed"},
		"APIServices that are not available": {
			v1alpha1.Gate{Type: v1alpha1.GateAPIServicesAvailable},
			set(apiServicesPath, map[string]any{"items": []any{apiService("d", "False"), apiService("a", "Unknown"), apiService("c", ""), apiService("b", "False"), apiService("ok", "True")}}),
			"APIServices are not available: a, b, c and 1 more",
		},
		"a token":                         {gate: v1alpha1.Gate{Type: v1alpha1.GateServiceAccountToken}, want: "passed"},
		"a token that is not accepted":    {v1alpha1.Gate{Type: v1alpha1.GateServiceAccountToken}, func(a *gateAPI) { a.token = "" }, "the cluster does not accept the token that it has issued"},
		"an object":                       {gate: object("Secret", "d", "s", "has(object.data.password)"), want: "passed"},
		"an object without a namespace":   {gate: object("Node", "", "m0", "object.metadata.name == 'm0'"), want: "passed"},
		"an expression that is false":     {gate: object("Secret", "d", "s", "size(object.data) > 1"), want: "Secret d/s: it is not true that size(object.data) > 1"},
		"an expression with a message":    {gate: said, want: "the licence is missing"},
		"an object that does not exist":   {gate: object("Secret", "d", "t", "true"), want: "Secret d/t does not exist"},
		"a kind that is not served":       {gate: object("Ghost", "d", "t", "true"), want: "the cluster does not serve kind Ghost of v1"},
		"a kind that needs a namespace":   {gate: object("Secret", "", "s", "true"), want: "kind Secret has a namespace: set object.namespace"},
		"a field that does not exist":     {gate: object("Secret", "d", "s", "object.data.user == 'x'"), want: "Secret d/s: the expression cannot be evaluated: a field that it uses is missing or has another type"},
		"a value in an error":             {gate: object("Secret", "d", "s", "object.data.password > 3"), want: "Secret d/s: the expression cannot be evaluated: a field that it uses is missing or has another type"},
		"an expression that is not valid": {gate: object("Secret", "d", "s", "subject"), want: "the expression is not valid: undeclared reference to 'subject' (in container '')"},
		"a type of a newer hotspare":      {gate: v1alpha1.Gate{Type: "Moon"}, want: "hotspare does not know type Moon"},
	} {
		t.Run(name, func(t *testing.T) {
			a, client := newGateAPI(t)
			if tc.change != nil {
				tc.change(a)
			}
			got, err := client.checkGate(t.Context(), tc.gate, "r1")
			if err != nil || describeAnswer(got) != tc.want {
				t.Errorf("got %q, %v, want %q", describeAnswer(got), err, tc.want)
			}
		})
	}
}

func TestTheClusterOfAGateDoesNotAnswer(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	text := []byte(kubeconfig(server, token(secret)))
	server.Close()
	client, err := newSpokeClient(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.checkGate(t.Context(), v1alpha1.Gate{Type: v1alpha1.GateNodesReady}, "r1"); err == nil || DescribeFailure(err) != "connection refused" {
		t.Errorf("got %v", err)
	}
}

func TestThePodOfAGate(t *testing.T) {
	a, client := newGateAPI(t)
	g := v1alpha1.Gate{Name: "p", Type: v1alpha1.GatePodRuns, Pod: &v1alpha1.GatePod{Image: "i", Command: []string{"true"}}}
	const path = "/api/v1/namespaces/default/pods/hotspare-gate-p"
	check := func(run, want string) {
		t.Helper()
		got, err := client.checkGate(t.Context(), g, run)
		if err != nil || describeAnswer(got) != want {
			t.Errorf("got %q, %v, want %q", describeAnswer(got), err, want)
		}
	}
	pod := func() *corev1.Pod {
		t.Helper()
		p, ok := a.objects[path].(*corev1.Pod)
		if !ok {
			t.Fatal("there is no pod")
		}
		return p
	}
	check("r1", "pod hotspare-gate-p has not run yet")
	pod().Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}
	check("r1", "pod hotspare-gate-p does not run yet: ImagePullBackOff")
	pod().Status = corev1.PodStatus{Phase: corev1.PodRunning}
	check("r1", "pod hotspare-gate-p runs, and has not ended yet")
	pod().Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}}
	check("r1", "pod hotspare-gate-p has ended: exit code 3")
	check("r1", "pod hotspare-gate-p has not run yet") // the failed one was deleted
	pod().Status = corev1.PodStatus{Phase: corev1.PodSucceeded}
	check("r2", "pod hotspare-gate-p is of an earlier run, and is replaced")
	check("r2", "pod hotspare-gate-p has not run yet")
	pod().Status = corev1.PodStatus{Phase: corev1.PodSucceeded}
	check("r2", "passed")
	if a.objects[path] != nil {
		t.Error("the pod of a gate that has passed remains")
	}
}

// A gate that was renamed or removed leaves a pod that does not run yet: no other gate passes before it is deleted.
func TestThePodsOfEarlierGatesAreDeleted(t *testing.T) {
	a, server := newGateServer(t)
	c, _ := connector(t, kubeconfig(server, token(secret)))
	for name, run := range map[string]string{"hotspare-gate-old": "v1-1", "hotspare-gate-new": "v2-1", "of-the-user": ""} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u1"}}
		if run != "" {
			pod.Labels = map[string]string{v1alpha1.LabelGate: run}
		}
		a.objects[gatePodsPath+"/"+name] = pod
	}
	expect := func(want string) {
		t.Helper()
		var got []string
		for _, pod := range a.listPods("").Items {
			got = append(got, pod.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the pods are %v, want %s", got, want)
		}
	}
	gates := []v1alpha1.Gate{{Name: "nodes", Type: v1alpha1.GateNodesReady}}
	a.refuseDeletions = true
	got, err := c.CheckGates(t.Context(), key, gates, "v2-1")
	if err != nil || got["nodes"].Passed || !strings.HasPrefix(got["nodes"].Message, "the cluster does not answer: ") {
		t.Errorf("got %+v, %v", got, err)
	}
	expect("hotspare-gate-new hotspare-gate-old of-the-user")
	a.refuseDeletions = false
	if got, err := c.CheckGates(t.Context(), key, gates, "v2-1"); err != nil || !got["nodes"].Passed {
		t.Errorf("got %+v, %v", got, err)
	}
	expect("hotspare-gate-new of-the-user")
	if trouble, err := c.DeleteGatePods(t.Context(), key); err != nil || trouble != "" {
		t.Errorf("%s, %v", trouble, err)
	}
	expect("of-the-user")
}
