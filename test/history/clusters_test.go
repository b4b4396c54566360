package history

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	"hotspare.io/hotspare/internal/gate"
)

// moveCluster is what the other controllers do: it moves one cluster on, or a namespace, or a gate begins or ceases to
// fail.
func (h *history) moveCluster() {
	if h.rand.IntN(10) == 0 {
		if o := h.pick(&corev1.Namespace{}); o != nil {
			h.store.SweepNamespace(h.t.Context(), o.GetName())
		}
		return
	}
	for range 6 { // until one is not where it should be
		o := h.pick(&hivev1.ClusterDeployment{})
		if o == nil {
			return
		}
		if h.mood.gates && (h.rand.IntN(12) == 0 || h.mood.flapping && h.rand.IntN(4) == 0) {
			h.toggleGate(o.GetName())
			return
		}
		before := h.store.CountWrites()
		if h.move(o.(*hivev1.ClusterDeployment), h.rand.IntN(40) == 0); h.store.CountWrites() != before {
			return
		}
	}
}

func (h *history) toggleGate(cluster string) {
	if h.red[cluster] == nil {
		h.red[cluster] = map[string]bool{}
	}
	name := gateNames[h.rand.IntN(len(gateNames))]
	h.red[cluster][name] = !h.red[cluster][name]
	h.log.Addf("gate %s of %s fails: %t", name, cluster, h.red[cluster][name])
}

// CheckGates implements clustergate.Spokes. A cluster that does not run does not answer.
func (h *history) CheckGates(ctx context.Context, secret types.NamespacedName, gates []v1alpha1.Gate, _ string) (map[string]gate.Answer, error) {
	cluster := secret.Namespace
	cd, _ := h.store.GetSharedObject(&hivev1.ClusterDeployment{}, types.NamespacedName{Namespace: cluster, Name: cluster}).(*hivev1.ClusterDeployment)
	answers := map[string]gate.Answer{}
	for _, g := range gates {
		if cd != nil && cd.Status.PowerState == hivev1.StatusRunning && (h.rand.IntN(30) > 0 || h.judge.converging) {
			answers[g.Name] = gate.Answer{Passed: !h.red[cluster][g.Name], Message: "gate " + g.Name + " is red"}
		}
	}
	h.judge.recordCheck(chaos.TaskFromContext(ctx), cluster, answers)
	return answers, nil
}

// DeleteGatePods implements clustergate.Spokes.
func (h *history) DeleteGatePods(context.Context, types.NamespacedName) (trouble string, err error) {
	return "", nil
}

// move moves a cluster on, well or badly. The end of a run and the removal of its verdict are one write, as in the power
// controller.
func (h *history) move(cd *hivev1.ClusterDeployment, bad bool) {
	if !gate.RunStart(cd).Before(h.clock.Now()) {
		h.pass(time.Second) // two runs begin at different times
	}
	now := metav1.NewTime(h.clock.Now())
	what := "move"
	if bad {
		what = "move badly"
	}
	h.edit("world", cd, what, func() {
		switch {
		case cd.DeletionTimestamp != nil:
			controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision)
		case !slices.Contains(cd.Finalizers, hivev1.FinalizerDeprovision):
			controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision)
		case condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped):
		case !cd.Spec.Installed:
			condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionTrue, "X", "", now.Time)
			install(cd, bad, h.rand.IntN(2) == 0, now)
		default:
			setPower(cd, bad, now)
		}
		if !h.mood.foreignPower {
			gate.EndRun(cd, now.Time)
		}
	})
}

func install(cd *hivev1.ClusterDeployment, bad, forGood bool, now metav1.Time) {
	condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionFailed, condition.StatusOf(bad), "X", "", now.Time)
	condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionStopped, condition.StatusOf(bad && forGood), "X", "", now.Time)
	if bad {
		return
	}
	cd.Spec.Installed, cd.Spec.ClusterMetadata = true, &hivev1.ClusterMetadata{InfraID: cd.Name}
	cd.Status.InstalledTimestamp, cd.Status.PowerState = &now, hivev1.StatusRunning
}

// setPower takes a step towards the power state that is wanted.
func setPower(cd *hivev1.ClusterDeployment, bad bool, now metav1.Time) {
	target, state := hivev1.PowerRunning, hivev1.StatusRunning
	if cd.Spec.PowerState == hivev1.PowerHibernating {
		target, state = hivev1.PowerHibernating, hivev1.StatusHibernating
	}
	t := cd.Status.PowerTransition
	switch {
	case cd.Status.PowerState == state && !bad:
	case cd.Status.PowerState == state && target == hivev1.PowerRunning: // its machines were stopped
		cd.Status.PowerTransition, cd.Status.PowerState = &hivev1.PowerTransition{Target: target, StartedAt: now}, hivev1.ReasonWaitingForMachines
	case cd.Status.PowerState == state, bad:
	case t == nil || t.Target != target || t.FinishedAt != nil:
		cd.Status.PowerTransition, cd.Status.PowerState = newTransition(cd, target, now), hivev1.ReasonWaitingForNodes
		if target == hivev1.PowerHibernating {
			cd.Status.PowerState = hivev1.ReasonStopping
		}
	default:
		t.FinishedAt, t.Deadline, cd.Status.PowerState = &now, nil, state
	}
}

func newTransition(cd *hivev1.ClusterDeployment, target hivev1.PowerState, now metav1.Time) *hivev1.PowerTransition {
	t := &hivev1.PowerTransition{Target: target, StartedAt: now}
	if d := cd.Spec.PowerstateTransitionToRunningTimeout; d != nil && target == hivev1.PowerRunning {
		span, _ := d.Parse() // the pool's own
		t.Deadline = &metav1.Time{Time: now.Add(span)}
	}
	return t
}

// moveAll moves every cluster on, well, and lets namespaces go.
func (h *history) moveAll() {
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		h.move(o.DeepCopyObject().(*hivev1.ClusterDeployment), false)
	}
	for _, o := range h.store.ListSharedObjects(&corev1.Namespace{}) {
		h.store.SweepNamespace(h.t.Context(), o.GetName())
	}
}

// pick returns a copy of some object of like's kind, or nil.
func (h *history) pick(like client.Object) client.Object {
	all := h.store.ListSharedObjects(like)
	if len(all) == 0 {
		return nil
	}
	return all[h.rand.IntN(len(all))].DeepCopyObject().(client.Object)
}

func (h *history) create(o client.Object) {
	if err := h.store.Create(h.t.Context(), o); err == nil {
		h.log.Addf("user: create %T %s", o, o.GetName())
	}
}

func (h *history) delete(o client.Object) {
	if err := h.store.Delete(h.t.Context(), o, nil); err == nil {
		h.log.Addf("user: delete %T %s", o, o.GetName())
	}
}

func (h *history) edit(who string, o client.Object, what string, change func()) {
	if h.store.EditObject(h.t.Context(), o, change) {
		h.log.Addf("%s: %T %s: %s", who, o, o.GetName(), what)
	}
}

func ago(t *metav1.Time, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return now.Sub(t.Time)
}
