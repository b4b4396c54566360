package provision

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"hotspare.io/hotspare/internal/provision"
)

// decideAndApply decides and acts until nothing more can be done in this pass. It returns the
// last plan, whose steps have been carried out. It terminates because nothing is asked twice.
func (p *pass) decideAndApply(ctx context.Context) (provision.Plan, error) {
	for {
		plan := provision.Decide(p.buildSnapshot())
		ctrl.LoggerFrom(ctx).V(2).Info("decided", "plan", plan.String())
		if err := p.applySteps(ctx, plan.Steps); err != nil || !plan.NeedsAnswers() {
			return plan, err
		}
	}
}

func (p *pass) applySteps(ctx context.Context, steps []provision.Step) error {
	for _, s := range steps {
		if err := stepFuncs[s.Do](p, ctx, s); err != nil {
			return fmt.Errorf("step %q: %w", s, err)
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", s.String())
	}
	return nil
}

// stepFuncs maps each kind of step to the function that carries it out.
var stepFuncs = map[provision.Verb]func(*pass, context.Context, provision.Step) error{
	provision.EnsureFinalizer:      (*pass).ensureFinalizerAndLabels,
	provision.RecordAttempt:        (*pass).createAttempt,
	provision.PublishMetadata:      (*pass).publishMetadata,
	provision.Install:              (*pass).requestInstall,
	provision.StoreCredentials:     (*pass).storeCredentials,
	provision.MarkInstalled:        (*pass).markInstalled,
	provision.CompleteAttempt:      (*pass).completeAttempt,
	provision.FailAttempt:          (*pass).failAttempt,
	provision.Destroy:              (*pass).requestDestroy,
	provision.RecordCleanup:        (*pass).recordCleanup,
	provision.DeleteAttempt:        (*pass).deleteAttempt,
	provision.ReportNoBundle:       (*pass).reportNoBundle,
	provision.CreateDeprovision:    (*pass).createDeprovision,
	provision.ReportDestroyFailure: (*pass).reportDestroyFailure,
	provision.CompleteDeprovision:  (*pass).completeDeprovision,
	provision.RemoveFinalizer:      (*pass).removeFinalizer,
}

// recordEvent and warn record events for what has happened to the cluster, after it has happened.
func (p *pass) recordEvent(reason, action, format string, args ...any) {
	p.Events.Eventf(p.cluster, nil, corev1.EventTypeNormal, reason, action, format, args...)
}

func (p *pass) recordWarning(reason, action, format string, args ...any) {
	p.Events.Eventf(p.cluster, nil, corev1.EventTypeWarning, reason, action, format, args...)
}
