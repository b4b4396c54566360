package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/agent/plan"
)

const (
	// passTimeout bounds a pass: a hub or a data plane that accepts a request and never answers
	// must not block the agent forever.
	passTimeout = 30 * time.Second
	// conflictRetry is the delay before the next pass after another client wrote first.
	conflictRetry = 200 * time.Millisecond
	// firstRetry and lastRetry are the shortest and the longest delay before the agent retries a
	// refused step; the delay doubles after each failed pass.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// reportEvery is the report interval if the hub does not set one.
	reportEvery = 30 * time.Second
)

// Agent runs passes one after the other. It must not be used by two goroutines at the same time.
type Agent struct {
	// Hub reads the DataPlaneAgent and writes its status.
	Hub client.Client
	// Plane reads the agent's objects from a cache, and writes them. Live reads from the API
	// server.
	Plane client.Client
	Live  client.Reader
	// Key is the key of the DataPlaneAgent.
	Key types.NamespacedName
	// UID is the UID of the data plane, if it is known: the agent then does nothing for any other.
	UID string
	// StandIn is set when the agent also acts as the operator.
	StandIn bool
	// Pause is the image of placeholders; Version is the version of the agent.
	Pause, Version string
	Clock          clock.PassiveClock

	failedPasses int       // passes in a row that had an error
	unsentSince  time.Time // since when reports fail to arrive; zero while they arrive
	hasReported  bool      // whether this process has reported
}

// Reconcile runs one pass: it observes, decides, acts and reports. It returns an error if the
// report did not arrive; the next pass sends a newer one.
func (a *Agent) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	log := logr.FromContextOrDiscard(ctx)
	var to v1alpha1.DataPlaneAgent
	if err := a.Hub.Get(ctx, a.Key, &to); err != nil {
		if apierrors.IsNotFound(err) {
			log.Info("the DataPlaneAgent does not exist on the hub: nothing is changed until it does", "name", a.Key)
			return reconcile.Result{}, nil // its watch starts the next pass
		}
		return reconcile.Result{}, fmt.Errorf("reading DataPlaneAgent %s: %w", a.Key, err)
	}
	if a.UID != "" && to.Spec.DataPlaneUID != a.UID {
		log.Info("the DataPlaneAgent is for another data plane: nothing is changed", "its", to.Spec.DataPlaneUID, "mine", a.UID)
		return reconcile.Result{}, nil
	}
	report, err := a.runPass(ctx, &to)
	if err != nil {
		log.Error(err, "some steps failed")
		a.failedPasses++
	} else {
		a.failedPasses = 0
	}
	return a.patchReport(ctx, &to, report)
}

// runPass brings the data plane closer to the listed instances, and returns the report. The error
// has the steps that were refused; the report has them, too.
func (a *Agent) runPass(ctx context.Context, to *v1alpha1.DataPlaneAgent) (v1alpha1.DataPlaneReport, error) {
	if err := to.Whole(); err != nil {
		why := "The DataPlaneAgent cannot be read: " + err.Error()
		return unreachableReport(to, v1alpha1.ReasonSpecUnreadable, why), nil //nolint:nilerr // it is reported, and trying again is of no use
	}
	world, err := a.listObjects(ctx)
	if err == nil {
		err = a.probeDataPlane(ctx)
	}
	if err != nil {
		err = redactError(err)
		return unreachableReport(to, v1alpha1.ReasonPlaneSilent, "The agent cannot reach the data plane's API: "+err.Error()), err
	}
	p := plan.Decide(plan.Snapshot{
		Spec: to.Spec, World: world, StandIn: a.StandIn, Pause: a.Pause, Now: metav1.NewTime(a.Clock.Now()),
	})
	refused := a.applySteps(ctx, p.Steps)
	var all []error
	for i := range p.Report.Instances {
		r := &p.Report.Instances[i]
		if err := refused[r.UID]; err != nil {
			setInstanceError(r, err)
			all = append(all, err)
			delete(refused, r.UID)
		}
	}
	for _, err := range refused {
		all = append(all, err)
	}
	all = append(all, a.confirmDeleted(ctx, p.Report.Instances, to.Status.Report))
	return p.Report, errors.Join(all...)
}

// unreachableReport returns the last report, with the reason why there is no newer one.
func unreachableReport(to *v1alpha1.DataPlaneAgent, reason, message string) v1alpha1.DataPlaneReport {
	r := v1alpha1.DataPlaneReport{}
	if last := to.Status.Report; last != nil {
		r = *last.DeepCopy()
	}
	r.Ready, r.Reason, r.Message = false, reason, message
	return r
}

// setInstanceError sets in an instance's report why it is not as it should be.
func setInstanceError(r *v1alpha1.InstanceReport, err error) {
	reason := v1alpha1.ReasonNotApplied
	var taken *namespaceTakenError
	if errors.As(err, &taken) {
		reason = v1alpha1.ReasonNamespaceTaken
	}
	r.Reason, r.Message = reason, err.Error()
	if r.Phase == v1alpha1.AgentProvisioning && isPermanent(err) {
		r.Phase = v1alpha1.AgentFailed
	}
}

// confirmDeleted asks the API whether the instances that are about to be reported as deleted are
// deleted: the hub forgets them after that report, and the cache may be stale.
func (a *Agent) confirmDeleted(ctx context.Context, list []v1alpha1.InstanceReport, last *v1alpha1.DataPlaneReport) error {
	said := map[string]bool{}
	if last != nil {
		for _, r := range last.Instances {
			said[r.UID+"/"+r.PlacementID] = r.Phase == v1alpha1.AgentDeleted
		}
	}
	var all []error
	for i := range list {
		r := &list[i]
		if r.Phase != v1alpha1.AgentDeleted || said[r.UID+"/"+r.PlacementID] {
			continue
		}
		name := plan.NamespaceOf(v1alpha1.AgentInstance{UID: r.UID, Reserved: r.Reserved})
		there, err := a.ownsNamespace(ctx, name)
		if err != nil || there {
			r.Phase = v1alpha1.AgentDeleting
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// retryBackoff returns the delay before the agent retries a refused step; 0 if no step was refused.
func (a *Agent) retryBackoff() time.Duration {
	if a.failedPasses == 0 {
		return 0
	}
	return min(firstRetry<<min(a.failedPasses-1, 10), lastRetry)
}
