package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/agent"
	"hotspare.io/hotspare/internal/fleet/agent/install"
	"hotspare.io/hotspare/internal/fleet/agent/plan"
)

// The agent of a local data plane makes what the hub lists, reports, survives kill -9,
// ends with its machine, and can do nothing else.
func TestAnAgentMakesAndReportsWhatIsListed(t *testing.T) { //nolint:tparallel // its parts are one story
	h := shared(t)
	ns := h.namespace(t)
	pool := localPool(ns, "planes", 1, 1)
	h.create(t, pool)
	h.settled(t, pool)
	h.hotspare(t, "claim", "create", pool.Name, "-n", ns, "--name", "mine", "--wait")
	t.Log("a data plane, and another that is none of the agent's business")
	mine, other := planeAgent(ns, "mine"), planeAgent(ns, "other")
	h.create(t, mine, other)
	creds := h.hubCredentials(t, ns, mine.Name)
	config := h.kubeconfigOf(t, ns, "mine")
	plane := planeOf(t, config)
	h.kubectl(t, "--kubeconfig", config, "label", "nodes", "--all", v1alpha1.LabelInstanceType+"=developer")
	installAgent(t, plane, install.Agent{
		Namespace: ns, Name: mine.Name, UID: mine.Spec.DataPlaneUID, Image: install.LocalImage, Operator: agent.StandIn, HubKubeconfig: creds,
	})

	r := h.reports(t, mine, func(r v1alpha1.DataPlaneReport) bool {
		return phases(r) == "a:Ready b:Ready reserved-kafka-developer-1:Ready"
	})
	want := map[string]v1alpha1.ReportedCapacity{"developer": {MaxNodes: 1, MaxUnits: 10, RemainingUnits: 7, ReservedUnits: 1}}
	if diff := cmp.Diff(want, r.Capacity); diff != "" || !r.Ready || r.DataPlaneUID != mine.Spec.DataPlaneUID {
		t.Errorf("the report says %+v: %s", r, diff)
	}
	placeholders(t, plane)
	madeKafka(t, plane, "kafka-a", "a", "2")

	t.Run("killed, it comes back", func(t *testing.T) { h.killed(t, plane, mine) })
	t.Run("it can read and write its own report only", func(t *testing.T) { refusedOnHub(t, creds, mine, other) })
	t.Run("it can write in its own namespaces only", func(t *testing.T) { refusedOnPlane(t, config) })
	t.Run("what was promised is not taken back", func(t *testing.T) { h.frozen(t, mine) })
	t.Run("parameters that the data plane's API refuses fail the instance", func(t *testing.T) { h.refusedParameters(t, mine) })
	t.Run("what is to go goes", func(t *testing.T) {
		h.list(t, mine, func(s *v1alpha1.DataPlaneAgentSpec) { s.Instances[0].Deleted = true })
		r := h.reports(t, mine, func(r v1alpha1.DataPlaneReport) bool { return strings.HasPrefix(phases(r), "a:Deleted") })
		if left := r.Capacity["developer"].RemainingUnits; left != 9 {
			t.Errorf("%d units remain", left)
		}
	})
	t.Run("it ends with its machine", func(t *testing.T) { h.killedMachine(t, mine) })
}

// refusedParameters lists instances with parameters that do not fit the schema, and takes
// them from the list again.
func (h *hub) refusedParameters(t *testing.T, a *v1alpha1.DataPlaneAgent) {
	t.Helper()
	for parameters, says := range map[string]string{
		`{"nosuch":"hunter2"}`:                               ".spec.nosuch: unknown field",
		`{"endpoint":{"bootstrapServerHost":{"hunter2":1}}}`: ".spec.endpoint.bootstrapServerHost: expected string",
	} {
		h.list(t, a, func(s *v1alpha1.DataPlaneAgentSpec) {
			wrong := s.Instances[1]
			wrong.UID, wrong.Name = "wrong", "wrong"
			wrong.Parameters = &runtime.RawExtension{Raw: []byte(parameters)}
			s.Instances = append(s.Instances, wrong)
		})
		r := h.reports(t, a, func(r v1alpha1.DataPlaneReport) bool { return strings.Contains(phases(r), "wrong:Failed") })
		for _, i := range r.Instances {
			if i.UID == "wrong" && (!strings.Contains(i.Message, says) || strings.Contains(i.Message, "hunter2")) {
				t.Errorf("%s: the message is %q, want %q", parameters, i.Message, says)
			}
		}
		h.list(t, a, func(s *v1alpha1.DataPlaneAgentSpec) { s.Instances[len(s.Instances)-1].Deleted = true })
		h.reports(t, a, func(r v1alpha1.DataPlaneReport) bool { return strings.Contains(phases(r), "wrong:Deleted") })
		h.list(t, a, func(s *v1alpha1.DataPlaneAgentSpec) { s.Instances = s.Instances[:len(s.Instances)-1] })
		h.reports(t, a, func(r v1alpha1.DataPlaneReport) bool { return !strings.Contains(phases(r), "wrong") })
	}
}

func planeAgent(ns, name string) *v1alpha1.DataPlaneAgent {
	instance := func(name string, units int32) v1alpha1.AgentInstance {
		return v1alpha1.AgentInstance{
			UID: name, Namespace: ns, Name: name, Type: "developer", Size: "x1", Units: units, PlacementID: "p",
			Versions: v1alpha1.InstanceVersions{Strimzi: "s", Kafka: "3.9.0"},
		}
	}
	warm := instance("reserved-kafka-developer-1", 1)
	warm.Reserved, warm.Namespace = true, ""
	return &v1alpha1.DataPlaneAgent{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.DataPlaneAgentSpec{
			DataPlaneUID: "uid-of-" + name, ReportEvery: "1s",
			Pools: []v1alpha1.AgentPool{{
				Type: "developer", MaxNodes: 1, UnitsPerNode: ptr.To(resource.MustParse("10")),
				NodeRequests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")},
			}},
			Instances: []v1alpha1.AgentInstance{instance("a", 2), instance("b", 1), warm},
		},
	}
}

// hubCredentials makes an identity for the agent, and waits for its token.
func (h *hub) hubCredentials(t *testing.T, ns, name string) []byte {
	t.Helper()
	h.create(t, install.HubObjects(ns, name)...)
	var raw []byte
	eventually(t, "the hub makes a token", func(ctx context.Context) error {
		var secret corev1.Secret
		if err := h.Get(ctx, client.ObjectKey{Namespace: ns, Name: install.TokenName(name)}, &secret); err != nil {
			return err
		}
		var err error
		raw, err = install.BuildKubeconfig(h.url, nil, &secret)
		return err
	})
	return raw
}

func planeOf(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, config)
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: kinds()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func installAgent(t *testing.T, plane client.Client, a install.Agent) {
	t.Helper()
	m, err := install.DataPlaneManifests(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range slices.Concat(m.Absent, m.Apply) {
		if err := plane.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// reports waits for a report.
func (h *hub) reports(t *testing.T, a *v1alpha1.DataPlaneAgent, as func(v1alpha1.DataPlaneReport) bool) (r v1alpha1.DataPlaneReport) {
	t.Helper()
	eventually(t, "agent "+a.Name+" reports", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		if a.Status.Report == nil {
			return errors.New("there is no report")
		}
		if r = *a.Status.Report; !as(r) {
			return fmt.Errorf("it says %+v", r)
		}
		return nil
	})
	return r
}

func phases(r v1alpha1.DataPlaneReport) string {
	said := map[string]string{}
	for _, i := range r.Instances {
		said[i.UID] = i.UID + ":" + string(i.Phase)
	}
	var out []string
	for _, uid := range slices.Sorted(maps.Keys(said)) {
		out = append(out, said[uid])
	}
	return strings.Join(out, " ")
}

func placeholders(t *testing.T, plane client.Client) {
	t.Helper()
	var pods corev1.PodList
	if err := plane.List(t.Context(), &pods, client.InNamespace("reserved-kafka-developer-1")); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 || *pods.Items[0].Spec.Priority != plan.PriorityClassValue || pods.Items[0].Status.Phase != corev1.PodRunning {
		t.Errorf("the placeholders are %+v", pods.Items)
	}
}

func madeKafka(t *testing.T, plane client.Client, ns, name, units string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(plan.ManagedKafka)
	if err := plane.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	if u.GetAnnotations()[v1alpha1.AnnotationID] != name || u.GetLabels()[v1alpha1.LabelUnits] != units {
		t.Errorf("the ManagedKafka is %+v", u.Object)
	}
}

// killed ends the agent's process as the kernel does, and waits for the next.
func (h *hub) killed(t *testing.T, plane client.Client, a *v1alpha1.DataPlaneAgent) {
	t.Helper()
	first := h.agentPID(t, a)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	eventually(t, "the pod tells of a restart", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := plane.List(ctx, &pods, client.InNamespace(install.Namespace)); err != nil {
			return err
		}
		for _, p := range pods.Items {
			if s := p.Status.ContainerStatuses; len(s) == 1 && s[0].RestartCount > 0 && s[0].Ready && s[0].LastTerminationState.Terminated != nil && s[0].LastTerminationState.Terminated.Signal == 9 {
				return nil
			}
		}
		return fmt.Errorf("the pods are %+v", pods.Items)
	})
	h.reports(t, a, func(r v1alpha1.DataPlaneReport) bool { return r.At.After(at.Add(time.Second)) })
	t.Logf("killed and back after %s", time.Since(at).Round(time.Millisecond))
	if second := h.agentPID(t, a); second == first {
		t.Errorf("the process is still %d", second)
	}
}

// agentPID is the process of the agent of a DataPlane in this hub's machines.
func (h *hub) agentPID(t *testing.T, a *v1alpha1.DataPlaneAgent) int {
	t.Helper()
	var pid int
	eventually(t, "an agent runs", func(context.Context) error {
		all, err := processesOf(h.machines())
		if err != nil {
			return err
		}
		flags := fmt.Sprintf(" --namespace=%s --name=%s ", a.Namespace, a.Name)
		agents := slices.DeleteFunc(all, func(line string) bool {
			return !strings.Contains(line, " agent --hub-kubeconfig=") || !strings.Contains(line, flags)
		})
		if len(agents) != 1 {
			return fmt.Errorf("the agents are %q", agents)
		}
		first, _, _ := strings.Cut(agents[0], " ")
		pid, err = strconv.Atoi(first)
		return err
	})
	return pid
}

// killedMachine ends the machine under the agent without a word.
func (h *hub) killedMachine(t *testing.T, a *v1alpha1.DataPlaneAgent) {
	t.Helper()
	pid := h.agentPID(t, a)
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), ") ") // then come the state and the parent
	parent, err := strconv.Atoi(strings.Fields(after)[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(parent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent ends", func(context.Context) error {
		all, err := processesOf(h.machines()) // which does not know the dead, even if nobody has buried them
		if err == nil && slices.ContainsFunc(all, func(line string) bool { return strings.HasPrefix(line, strconv.Itoa(pid)+" ") }) {
			err = fmt.Errorf("process %d lives", pid)
		}
		return err
	})
}

func refusedOnHub(t *testing.T, creds []byte, mine, other *v1alpha1.DataPlaneAgent) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(creds)
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := clientOf(t, config), t.Context()
	if err := c.Get(ctx, client.ObjectKeyFromObject(mine), mine.DeepCopy()); err != nil {
		t.Errorf("reading its own: %v", err)
	}
	merge := func(raw string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(raw)) }
	const report = `{"status":{"report":{"at":"2026-01-01T00:00:00Z"}}}`
	for what, do := range map[string]func() error{
		"reading another":       func() error { return c.Get(ctx, client.ObjectKeyFromObject(other), other.DeepCopy()) },
		"reading all":           func() error { return c.List(ctx, &v1alpha1.DataPlaneAgentList{}, client.InNamespace(mine.Namespace)) },
		"reporting for another": func() error { return c.Status().Patch(ctx, other.DeepCopy(), merge(report)) },
		"changing its orders":   func() error { return c.Patch(ctx, mine.DeepCopy(), merge(`{"spec":{"reportEvery":"1h"}}`)) },
		"deleting itself":       func() error { return c.Delete(ctx, mine.DeepCopy()) },
		"reading Secrets":       func() error { return c.List(ctx, &corev1.SecretList{}, client.InNamespace(mine.Namespace)) },
		"reading its own Secret": func() error {
			return c.Get(ctx, client.ObjectKey{Namespace: mine.Namespace, Name: install.TokenName(mine.Name)}, &corev1.Secret{})
		},
		"reading data planes":       func() error { return c.List(ctx, &v1alpha1.DataPlaneList{}, client.InNamespace(mine.Namespace)) },
		"reading service instances": func() error { return c.List(ctx, &v1alpha1.ServiceInstanceList{}, client.InNamespace(mine.Namespace)) },
	} {
		if err := do(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func refusedOnPlane(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = "system:serviceaccount:" + install.Namespace + ":" + install.Name
	c, ctx := clientOf(t, config), t.Context()
	space := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{plan.LabelManagedBy: plan.ManagedBy}}}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
	unmarked := space("kafka-x")
	unmarked.Labels = nil
	for what, do := range map[string]func() error{
		"deleting somebody's namespace":       func() error { return c.Delete(ctx, space("default")) },
		"making a namespace of another name":  func() error { return c.Create(ctx, space("mine")) },
		"making a namespace without its mark": func() error { return c.Create(ctx, unmarked) },
		"making pods in somebody's namespace": func() error { return c.Create(ctx, deployment) },
		"reading Secrets":                     func() error { return c.List(ctx, &corev1.SecretList{}) },
	} {
		if err := do(); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// list changes what is listed.
func (h *hub) list(t *testing.T, a *v1alpha1.DataPlaneAgent, change func(*v1alpha1.DataPlaneAgentSpec)) {
	t.Helper()
	if err := h.changed(t, a, change); err != nil {
		t.Fatal(err)
	}
}

func (h *hub) changed(t *testing.T, a *v1alpha1.DataPlaneAgent, change func(*v1alpha1.DataPlaneAgentSpec)) error {
	t.Helper()
	get(t, h, a)
	before := a.DeepCopy()
	change(&a.Spec)
	return h.Patch(t.Context(), a, client.MergeFrom(before))
}

func (h *hub) frozen(t *testing.T, a *v1alpha1.DataPlaneAgent) {
	t.Helper()
	for what, change := range map[string]func(*v1alpha1.DataPlaneAgentSpec){
		"spec.dataPlaneUID cannot be changed":                          func(s *v1alpha1.DataPlaneAgentSpec) { s.DataPlaneUID = "another" },
		"units of an instance cannot be changed":                       func(s *v1alpha1.DataPlaneAgentSpec) { s.Instances[0].Units = 3 },
		"type and reserved of an instance cannot be changed":           func(s *v1alpha1.DataPlaneAgentSpec) { s.Instances[0].Type = "standard" },
		"the name of a reserved instance must be reserved-kafka-TYPE-": func(s *v1alpha1.DataPlaneAgentSpec) { s.Instances[1].Reserved = true },
	} {
		if err := h.changed(t, a.DeepCopy(), change); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
