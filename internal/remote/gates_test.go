package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/gate"
)

// gateAPI is the API of a cluster whose gates are checked. Objects are stored by path.
type gateAPI struct {
	objects map[string]any
	token   string // the one that it accepts
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
	case r.Method == http.MethodDelete:
		delete(a.objects, r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	if !found {
		w.WriteHeader(http.StatusNotFound)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404}
	}
	_ = json.NewEncoder(w).Encode(answer)
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
	client, err := newSpokeClient([]byte(kubeconfig(server, token(secret))))
	if err != nil {
		t.Fatal(err)
	}
	return a, client
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
