package provision

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"hotspare.io/hotspare/internal/provision"
)

// act decides and acts until nothing more can be done in this pass. It returns
// the last plan, whose steps are done. It ends because nothing is asked twice.
func (p *pass) act(ctx context.Context) (provision.Plan, error) {
	for {
		plan := provision.Decide(p.snapshot())
		ctrl.LoggerFrom(ctx).V(2).Info("decided", "plan", plan.String())
		if err := p.do(ctx, plan.Steps); err != nil || !plan.Asks() {
			return plan, err
		}
	}
}

func (p *pass) do(ctx context.Context, steps []provision.Step) error {
	for _, s := range steps {
		if err := doers[s.Do](p, ctx, s); err != nil {
			return fmt.Errorf("step %q: %w", s, err)
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", s.String())
	}
	return nil
}

// doers do the steps, each kind its own.
var doers = map[provision.Verb]func(*pass, context.Context, provision.Step) error{
	provision.Mark:     (*pass).mark,
	provision.Record:   (*pass).record,
	provision.Publish:  (*pass).publish,
	provision.Install:  (*pass).askInstall,
	provision.Deliver:  (*pass).deliver,
	provision.Finish:   (*pass).finish,
	provision.Complete: (*pass).complete,
	provision.Fail:     (*pass).fail,
	provision.Destroy:  (*pass).askDestroy,
	provision.Bury:     (*pass).bury,
	provision.Forget:   (*pass).forget,
	provision.Open:     (*pass).open,
	provision.Lament:   (*pass).lament,
	provision.Close:    (*pass).close,
	provision.Release:  (*pass).release,
}

// normal and warn tell users what has happened to the cluster, once it has.
func (p *pass) normal(reason, action, format string, args ...any) {
	p.Events.Eventf(p.cluster, nil, corev1.EventTypeNormal, reason, action, format, args...)
}

func (p *pass) warn(reason, action, format string, args ...any) {
	p.Events.Eventf(p.cluster, nil, corev1.EventTypeWarning, reason, action, format, args...)
}
