package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/embedded/spoke/loadbalancer/plan"
)

// reconcile executes plans until there is nothing left to do now. It returns when to reconcile again,
// if nothing changes before; zero for never. ctx is that of the listeners.
func (c *controller) reconcile(ctx context.Context) (time.Time, error) {
	p := plan.Decide(c.observe())
	for p.HasListen() {
		c.listen(ctx, p)
		p = plan.Decide(c.observe()) // a Listen step succeeds, or is a failure whose retry is later
	}
	c.listen(ctx, p)
	return p.RetryAt, c.report(ctx, p)
}

// listen executes the steps that change what is listened on.
func (c *controller) listen(ctx context.Context, p plan.Plan) {
	for _, s := range p.Steps {
		switch s.Verb {
		case plan.StopListening:
			c.listeners.stop(s.Service, s.Ports)
			klog.FromContext(ctx).Info("stopped listening", "step", s.String())
		case plan.Listen:
			c.recordResult(ctx, s, c.listeners.listen(ctx, s))
		case plan.Report: // see report
		}
	}
}

// recordResult keeps the failure of a Listen step, if it is one, for the next snapshot.
func (c *controller) recordResult(ctx context.Context, s plan.Step, f *plan.Failure) {
	if f == nil {
		delete(c.failures, s.Service)
		klog.FromContext(ctx).Info("listening", "service", s.Service.String(), "address", c.listeners.services[s.Service].address.String())
		return
	}
	f.Count, f.Time = 1, c.clock.Now()
	if before, ok := c.failures[s.Service]; ok && before.Want == s.Want {
		f.Count = before.Count + 1
	}
	c.failures[s.Service] = *f
	klog.FromContext(ctx).Info("could not listen", "step", s.String(), "port", f.Port.String(), "reason", f.Detail)
}

// report executes the steps that write statuses.
func (c *controller) report(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, s := range p.Steps {
		if s.Verb == plan.Report {
			errs = append(errs, c.reportService(ctx, s))
		}
	}
	return errors.Join(errs...)
}

// reportService writes the status of a Service, and then records the event. If the Service has changed
// since, it does neither: the watch delivers the change.
func (c *controller) reportService(ctx context.Context, s plan.Step) error {
	object, exists, err := c.services.GetStore().GetByKey(s.Service.String())
	if err != nil || !exists {
		return err // it does not exist any more
	}
	before := object.(*corev1.Service)
	patch, err := newStatusPatch(before, c.newStatus(before, s))
	if err != nil {
		return fmt.Errorf("updating the status of service %s: %w", s.Service, err)
	}
	_, err = c.client.CoreV1().Services(before.Namespace).Patch(ctx, before.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("updating the status of service %s: %w", s.Service, err)
	}
	klog.FromContext(ctx).Info("reported", "step", s.String())
	if e := s.Event; e != (plan.Event{}) {
		c.events.Eventf(before, nil, e.Type, e.Reason, "Listen", "%s", e.Note)
	}
	return nil
}

// newStatus returns the Service with the status of the step. Addresses of a Service that another
// controller manages stay.
func (c *controller) newStatus(before *corev1.Service, s plan.Step) *corev1.Service {
	after := before.DeepCopy()
	if isManaged(before) {
		after.Status.LoadBalancer.Ingress = newIngress(s.Address)
	}
	if s.Condition == (condition.Value{}) {
		apimeta.RemoveStatusCondition(&after.Status.Conditions, ConditionType)
		return after
	}
	apimeta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
		Type: ConditionType, Status: metav1.ConditionStatus(s.Condition.Status), Reason: s.Condition.Reason, Message: s.Condition.Message,
		LastTransitionTime: metav1.NewTime(c.clock.Now()),
	})
	return after
}

// newStatusPatch returns a patch from before to after that the API refuses if the Service has changed
// since.
func newStatusPatch(before, after *corev1.Service) ([]byte, error) {
	before = before.DeepCopy()
	before.ResourceVersion = "" // so that the patch contains it
	old, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	modified, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, modified, &corev1.Service{})
}
