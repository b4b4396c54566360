package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/agent/plan"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// rig is an agent between a hub and a data plane, both in memory.
type rig struct {
	*Agent
	hub, plane client.WithWatch
	clock      *clocktesting.FakePassiveClock
	log        bytes.Buffer
	// hubSilence and planeSilence, if not nil, are the errors with which a side answers every
	// request.
	hubSilence, planeSilence error
	// fail, if not nil, may refuse a write on the data plane.
	fail func(verb string, o client.Object) error
}

func newRig(t *testing.T, planeObjects ...client.Object) *rig {
	t.Helper()
	r := &rig{clock: clocktesting.NewFakePassiveClock(noon)}
	kinds := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(kinds), scheme.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"ManagedKafka", "ManagedKafkaAgent"} {
		gvk := plan.ManagedKafka.GroupVersion().WithKind(k)
		kinds.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		kinds.AddKnownTypeWithName(gvk.GroupVersion().WithKind(k+"List"), &unstructured.UnstructuredList{})
	}
	kafka := &unstructured.Unstructured{}
	kafka.SetGroupVersionKind(plan.ManagedKafka)
	hub := fake.NewClientBuilder().WithScheme(kinds).WithObjects(listing()).WithStatusSubresource(listing()).Build()
	plane := fake.NewClientBuilder().WithScheme(kinds).WithObjects(planeObjects...).WithStatusSubresource(kafka).Build()
	r.hub, r.plane = hub, plane
	r.Agent = &Agent{
		Hub: interceptor.NewClient(hub, r.hubFuncs()), Plane: interceptor.NewClient(plane, r.planeFuncs()),
		Live: interceptor.NewClient(plane, r.planeFuncs()), Key: types.NamespacedName{Namespace: "ns", Name: "plane"},
		StandIn: true, Pause: "pause", Version: "v1", Clock: r.clock,
	}
	return r
}

func (r *rig) hubFuncs() interceptor.Funcs {
	return interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if r.hubSilence != nil {
			return r.hubSilence
		}
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}}
}

func (r *rig) refuse(verb string, o client.Object) error {
	if r.planeSilence != nil {
		return r.planeSilence
	}
	if r.fail != nil {
		return r.fail(verb, o)
	}
	return nil
}

func (r *rig) planeFuncs() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if r.planeSilence != nil {
				return r.planeSilence
			}
			return c.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := r.refuse("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := r.refuse("delete", o); err != nil {
				return err
			}
			if o.GetObjectKind().GroupVersionKind() == plan.Namespace { // deletes its contents, too
				for _, kind := range []*unstructured.Unstructured{newObject(plan.ManagedKafka), newObject(plan.Deployment)} {
					if err := c.DeleteAllOf(ctx, kind, client.InNamespace(o.GetName())); err != nil {
						return err
					}
				}
			}
			return c.Delete(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, a runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := r.refuse("apply", nil); err != nil {
				return err
			}
			return c.Apply(ctx, a, opts...)
		},
	}
}

// listing is the hub's first list: one real instance and one reserved.
func listing() *v1alpha1.DataPlaneAgent {
	per := resource.MustParse("1")
	return &v1alpha1.DataPlaneAgent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "plane", Generation: 1},
		Spec: v1alpha1.DataPlaneAgentSpec{
			DataPlaneUID: "u", ReportEvery: "30s",
			Pools: []v1alpha1.AgentPool{{Type: "standard", MaxNodes: 3, NodesPerUnit: &per}},
			Instances: []v1alpha1.AgentInstance{
				{UID: "a", Namespace: "ns", Name: "a", Type: "standard", Size: "x1", Units: 1, PlacementID: "p"},
				{UID: "reserved-kafka-standard-1", Name: "reserved-kafka-standard-1", Reserved: true, Type: "standard", Size: "x1", Units: 1, PlacementID: "p"},
			},
		},
	}
}

func (r *rig) pass(t *testing.T) (reconcile.Result, error) {
	t.Helper()
	ctx := logr.NewContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(&r.log, nil)))
	return r.Reconcile(ctx, reconcile.Request{})
}

// settle runs passes until nothing changes.
func (r *rig) settle(t *testing.T) {
	t.Helper()
	for range 10 {
		if _, err := r.pass(t); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *rig) reported(t *testing.T) v1alpha1.DataPlaneReport {
	t.Helper()
	var a v1alpha1.DataPlaneAgent
	if err := r.hub.Get(t.Context(), r.Key, &a); err != nil {
		t.Fatal(err)
	}
	if a.Status.Report == nil {
		t.Fatal("there is no report")
	}
	return *a.Status.Report
}

func (r *rig) phaseOf(t *testing.T, uid string) string {
	t.Helper()
	for _, i := range r.reported(t).Instances {
		if i.UID == uid {
			return strings.TrimSpace(string(i.Phase) + " " + i.Reason)
		}
	}
	return ""
}

// objects returns the objects on the data plane, by name.
func (r *rig) objects(t *testing.T) string {
	t.Helper()
	var out []string
	for _, kind := range watchedKinds {
		list := newObjectList(kind)
		if err := r.plane.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			out = append(out, strings.TrimPrefix(u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName(), ""))
		}
	}
	return strings.Join(out, "\n")
}

const all = `Namespace /kafka-a
Namespace /reserved-kafka-standard-1
ManagedKafka kafka-a/a
ManagedKafka reserved-kafka-standard-1/reserved-kafka-standard-1
Deployment kafka-a/stand-in
Deployment reserved-kafka-standard-1/placeholder`

func (r *rig) change(t *testing.T, f func(*v1alpha1.DataPlaneAgent)) {
	t.Helper()
	var a v1alpha1.DataPlaneAgent
	if err := r.hub.Get(t.Context(), r.Key, &a); err != nil {
		t.Fatal(err)
	}
	f(&a)
	if err := r.hub.Update(t.Context(), &a); err != nil {
		t.Fatal(err)
	}
}

// podsRun makes the pods of all Deployments run.
func (r *rig) podsRun(t *testing.T) {
	t.Helper()
	list := newObjectList(plan.Deployment)
	if err := r.plane.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, u := range list.Items {
		u.Object["status"] = map[string]any{"availableReplicas": int64(1)}
		if err := r.plane.Status().Update(t.Context(), &u); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsListedIsMadeAndReported(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	if got := r.objects(t); got != all {
		t.Errorf("there is\n%s", got)
	}
	r.podsRun(t)
	r.settle(t)
	got := r.reported(t)
	if !got.Ready || got.DataPlaneUID != "u" || got.AgentVersion != "v1" || got.Capacity["standard"].RemainingUnits != 2 || len(got.Versions) != 1 {
		t.Errorf("it says %+v", got)
	}
	if a, b := r.phaseOf(t, "a"), r.phaseOf(t, "reserved-kafka-standard-1"); a != "Ready" || b != "Ready" {
		t.Errorf("a is %s, the reserved one %s", a, b)
	}
}

// TestTheGenerationThatWasReadIsReported changes the spec twice: tools that wait for the
// DataPlaneAgent use status.observedGeneration.
func TestTheGenerationThatWasReadIsReported(t *testing.T) {
	r := newRig(t)
	for generation := int64(1); generation < 4; generation++ {
		r.change(t, func(a *v1alpha1.DataPlaneAgent) { a.Generation = generation })
		r.settle(t)
		var a v1alpha1.DataPlaneAgent
		if err := r.hub.Get(t.Context(), r.Key, &a); err != nil {
			t.Fatal(err)
		}
		kstatustest.ExpectStatus(t, &a, "Current")
		if a.Generation != generation || a.Status.ObservedGeneration != generation {
			t.Errorf("generation %d of %d is observed, want %d", a.Status.ObservedGeneration, a.Generation, generation)
		}
	}
}

func TestWhatIsToGoGoes(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	r.change(t, func(a *v1alpha1.DataPlaneAgent) {
		a.Spec.Instances = a.Spec.Instances[:1]
		a.Spec.Instances[0].Deleted = true
	})
	r.settle(t)
	if got := r.objects(t); got != "" {
		t.Errorf("there is\n%s", got)
	}
	if got := r.phaseOf(t, "a"); got != "Deleted" {
		t.Errorf("a is %s", got)
	}
}

func TestAHeartbeatComesWhenItIsDue(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	first := r.reported(t).At
	r.clock.SetTime(noon.Add(29 * time.Second))
	res, err := r.pass(t)
	if err != nil || res.RequeueAfter != time.Second || !r.reported(t).At.Time.Equal(first.Time) {
		t.Errorf("a second before it: %v, %v, %v", res, err, r.reported(t).At)
	}
	r.clock.SetTime(noon.Add(30 * time.Second))
	res, err = r.pass(t)
	if err != nil || res.RequeueAfter != 30*time.Second || !r.reported(t).At.Time.Equal(noon.Add(30*time.Second)) {
		t.Errorf("then: %v, %v, %v", res, err, r.reported(t).At)
	}
}

// A restarted agent reports, although nothing else has changed.
func TestANewProcessReportsAtOnce(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	r.clock.SetTime(noon.Add(2 * time.Second))
	r.Agent = &Agent{
		Hub: r.Hub, Plane: r.Plane, Live: r.Live, Key: r.Key, StandIn: r.StandIn, Pause: r.Pause, Version: r.Version, Clock: r.clock,
	}
	for range 2 { // and then no more
		r.settle(t)
		if at := r.reported(t).At; !at.Time.Equal(noon.Add(2 * time.Second)) {
			t.Errorf("it reported at %s", at)
		}
		r.clock.SetTime(noon.Add(4 * time.Second))
	}
}

func TestNewsAreReportedAtOnce(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	r.podsRun(t)
	r.clock.SetTime(noon.Add(time.Second))
	if _, err := r.pass(t); err != nil || !r.reported(t).At.Time.Equal(noon.Add(time.Second)) {
		t.Errorf("%v, %v", r.reported(t).At, err)
	}
}

func TestAReportThatDoesNotArriveIsToldAndMadeAgain(t *testing.T) {
	r := newRig(t)
	r.hubSilence = errors.New("no route to host")
	for range 2 {
		if _, err := r.pass(t); err == nil || !strings.Contains(err.Error(), "no route to host") {
			t.Fatalf("the pass says %v", err)
		}
	}
	if got := r.objects(t); got != all {
		t.Errorf("while the hub is silent there is\n%s", got)
	}
	r.hubSilence = nil
	r.settle(t)
	if !r.reported(t).Ready || !strings.Contains(r.log.String(), "reporting to the hub again") {
		t.Errorf("the log says %s", &r.log)
	}
}

func TestAConflictIsNoNews(t *testing.T) {
	r := newRig(t)
	r.hubSilence = apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("dataplaneagents").GroupResource(), "plane", errors.New("changed"))
	res, err := r.pass(t)
	if err != nil || res.RequeueAfter != conflictRetry {
		t.Errorf("%v, %v", res, err)
	}
}

func TestASilentDataPlaneIsTold(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	r.planeSilence = errors.New("connection refused")
	r.clock.SetTime(noon.Add(time.Minute))
	res, err := r.pass(t)
	got := r.reported(t)
	if err != nil || got.Ready || got.Reason != v1alpha1.ReasonPlaneSilent || got.Capacity["standard"].MaxUnits != 3 || len(got.Instances) != 2 {
		t.Errorf("it says %+v, %v", got, err)
	}
	if !got.At.Time.Equal(noon.Add(time.Minute)) || res.RequeueAfter != firstRetry {
		t.Errorf("at %v, again after %v", got.At, res.RequeueAfter)
	}
	for range 20 { // each time later, but no later than the next heartbeat
		res, _ = r.pass(t)
	}
	if res.RequeueAfter != 30*time.Second {
		t.Errorf("again after %v", res.RequeueAfter)
	}
	r.planeSilence = nil
	r.settle(t)
	if !r.reported(t).Ready {
		t.Error("it does not recover")
	}
}

func TestACacheDoesNotHideASilentDataPlane(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	r.Live = interceptor.NewClient(r.plane, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("connection refused")
	}})
	if _, err := r.pass(t); err != nil || r.reported(t).Reason != v1alpha1.ReasonPlaneSilent {
		t.Errorf("it says %+v, %v", r.reported(t), err)
	}
}

func TestSomebodysNamespaceIsNotTouched(t *testing.T) {
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kafka-a"}}
	r := newRig(t, theirs)
	r.settle(t)
	if got := r.phaseOf(t, "a"); got != "Failed NamespaceTaken" {
		t.Errorf("a is %s", got)
	}
	if got := r.objects(t); strings.Contains(got, "kafka-a/") || !strings.Contains(got, "placeholder") {
		t.Errorf("there is\n%s", got)
	}
}

// typedPatchError is the API's answer to server-side apply of an object that does not fit the
// schema: a status without a reason, whose message quotes values.
func typedPatchError(faults string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: "failed to create typed patch object (kafka-a/a; managedkafka.bf2.org/v1alpha1, Kind=ManagedKafka): " + faults,
	}}
}

func TestARefusedApplyIsReportedWithoutValues(t *testing.T) {
	invalid := apierrors.NewInvalid(plan.ManagedKafka.GroupKind(), "a", field.ErrorList{field.Invalid(field.NewPath("spec", "oauth"), "hunter2", "hunter2 is bad")})
	outage := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcd is away, hunter2"}}
	for name, tc := range map[string]struct {
		err         error
		phase, says string
	}{
		"a value that the schema forbids": {invalid, "Failed NotApplied", "(422 Invalid): spec.oauth: FieldValueInvalid"},
		"a field that the schema does not have": {
			typedPatchError(".spec.oauthh: field not declared in schema"), "Failed NotApplied", "(500): .spec.oauthh: unknown field",
		},
		"a value of another type": {
			typedPatchError(`.spec.capacity.ingressPerSec: expected string, got &value.valueUnstructured{Value:"hunter2"}`),
			"Failed NotApplied", "(500): .spec.capacity.ingressPerSec: expected string",
		},
		"several faults": {
			typedPatchError("errors:\n  .spec.owners: expected list, got hunter2\n  .spec.x-y[0].z: field not declared in schema"),
			"Failed NotApplied", "(500): .spec.owners: expected list, .spec.x-y[0].z: unknown field",
		},
		"a fault without a field":         {typedPatchError("element 0: hunter2"), "Failed NotApplied", "(500)"},
		"an outage of the API is retried": {outage, "Provisioning NotApplied", "(500)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.fail = func(verb string, _ client.Object) error {
				if verb != "apply" {
					return nil
				}
				return tc.err
			}
			r.settle(t)
			if got := r.phaseOf(t, "a"); got != tc.phase {
				t.Errorf("a is %q, want %q", got, tc.phase)
			}
			if message := r.reported(t).Instances[0].Message; !strings.HasSuffix(message, tc.says) {
				t.Errorf("the message is %q, want it to end with %q", message, tc.says)
			}
			if said := fmt.Sprint(r.reported(t)) + r.log.String(); strings.Contains(said, "hunter2") {
				t.Errorf("the secret is told: %s", said)
			}
		})
	}
}

func TestANamespaceWithALiveInstanceIsNotRemoved(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	r.change(t, func(a *v1alpha1.DataPlaneAgent) { a.Spec.Instances = nil })
	// The cache has lost the ManagedKafka of the real instance, or never had it.
	r.Plane = interceptor.NewClient(r.plane, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if l.GetObjectKind().GroupVersionKind().Kind == "ManagedKafkaList" {
			return nil
		}
		return c.List(ctx, l, opts...)
	}})
	r.settle(t)
	if got := r.objects(t); !strings.Contains(got, "Namespace /kafka-a") {
		t.Errorf("there is\n%s", got)
	}
	if !strings.Contains(r.log.String(), "which is not marked as deleted") {
		t.Errorf("the log says %s", &r.log)
	}
}

func TestDeletedIsSaidOnlyWhenTheAPISaysSo(t *testing.T) {
	r := newRig(t)
	r.settle(t)
	r.change(t, func(a *v1alpha1.DataPlaneAgent) { a.Spec.Instances[0].Deleted = true })
	real := r.Plane
	r.Plane = interceptor.NewClient(r.plane, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return nil // a very stale cache
	}})
	if _, err := r.pass(t); err != nil {
		t.Fatal(err)
	}
	if got := r.phaseOf(t, "a"); got != "Deleting" {
		t.Errorf("a is %s", got)
	}
	r.Plane = real
	r.settle(t)
	if got := r.phaseOf(t, "a"); got != "Deleted" {
		t.Errorf("a is %s", got)
	}
}

func TestAnotherDataPlaneOfTheNameIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.UID = "mine"
	if res, err := r.pass(t); err != nil || res.RequeueAfter != 0 {
		t.Errorf("%v, %v", res, err)
	}
	if got := r.objects(t); got != "" {
		t.Errorf("there is\n%s", got)
	}
	var a v1alpha1.DataPlaneAgent
	if err := r.hub.Get(t.Context(), r.Key, &a); err != nil || a.Status.Report != nil {
		t.Errorf("%+v, %v", a.Status, err)
	}
}

// After a crash after any write, the next process ends in the same state as the first would have.
func TestACrashAfterAnyWrite(t *testing.T) {
	for n := range 8 {
		t.Run(fmt.Sprintf("%d writes", n), func(t *testing.T) {
			r := newRig(t)
			left := n
			r.fail = func(string, client.Object) error {
				if left == 0 {
					return errors.New("killed")
				}
				left--
				return nil
			}
			if _, err := r.pass(t); err != nil {
				t.Fatal(err)
			}
			r.fail = nil
			next := *r.Agent
			next.failedPasses = 0
			r.Agent = &next
			r.settle(t)
			if got := r.objects(t); got != all {
				t.Errorf("there is\n%s", got)
			}
		})
	}
}

// operatorSays writes the status of the real instance as an operator on the data plane does.
func (r *rig) operatorSays(t *testing.T, condition map[string]any) {
	t.Helper()
	k := newObject(plan.ManagedKafka)
	if err := r.plane.Get(t.Context(), types.NamespacedName{Namespace: "kafka-a", Name: "a"}, k); err != nil {
		t.Fatal(err)
	}
	k.Object["status"] = map[string]any{"conditions": []any{condition}}
	if err := r.plane.Status().Update(t.Context(), k); err != nil {
		t.Fatal(err)
	}
}

// With --operator fleetshard, the agent creates ManagedKafkas and no pods for them; operators on
// the data plane do the rest, and the agent reports what they write.
func TestOperatorsOnTheDataPlaneMakeInstances(t *testing.T) {
	r := newRig(t)
	r.StandIn = Options{Operator: Fleetshard}.isStandIn()
	r.settle(t)
	if got := r.reported(t); got.Ready || got.Reason != v1alpha1.ReasonNoOperator {
		t.Errorf("without operators the report is %t %s", got.Ready, got.Reason)
	}
	operators := newObject(plan.ManagedKafka.GroupVersion().WithKind("ManagedKafkaAgent"))
	operators.SetNamespace("redhat-kas-fleetshard-operator")
	operators.SetName("managed-agent")
	operators.Object["status"] = map[string]any{"strimzi": []any{map[string]any{
		"version": "strimzi.v1", "ready": true, "kafkaVersions": []any{"3.9.0"}, "kafkaIbpVersions": []any{"3.9"},
	}}}
	if err := r.plane.Create(t.Context(), operators); err != nil {
		t.Fatal(err)
	}
	r.settle(t)
	if got := r.reported(t); !got.Ready || len(got.Versions) != 1 || got.Versions[0].Strimzi != "strimzi.v1" {
		t.Errorf("with operators the report is %t, versions %+v", got.Ready, got.Versions)
	}
	if got := r.objects(t); strings.Contains(got, "stand-in") || !strings.Contains(got, "ManagedKafka kafka-a/a") {
		t.Errorf("the objects are\n%s", got)
	}
	if got := r.phaseOf(t, "a"); !strings.HasPrefix(got, "Provisioning") {
		t.Errorf("before its operator says anything, a is %s", got)
	}
	r.operatorSays(t, map[string]any{"type": "Ready", "status": "True"})
	r.settle(t)
	if got := r.phaseOf(t, "a"); !strings.HasPrefix(got, "Ready") {
		t.Errorf("a is %s", got)
	}

	r.change(t, func(a *v1alpha1.DataPlaneAgent) { a.Spec.Instances[0].Deleted = true })
	r.settle(t)
	if got := r.phaseOf(t, "a"); !strings.HasPrefix(got, "Deleting") || !strings.Contains(r.objects(t), "ManagedKafka kafka-a/a") {
		t.Errorf("before its operator has taken it away, a is %s", got)
	}
	r.operatorSays(t, map[string]any{"type": "Ready", "status": "False", "reason": "Deleted"})
	r.settle(t)
	if got := r.phaseOf(t, "a"); got != "Deleted" || strings.Contains(r.objects(t), "kafka-a") {
		t.Errorf("after that, a is %s, and the objects are\n%s", got, r.objects(t))
	}
}
