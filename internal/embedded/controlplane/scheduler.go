package controlplane

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// runScheduler runs kube-scheduler until ctx ends.
func runScheduler(ctx context.Context, f files) error {
	o := options.NewOptions()
	if err := parseComponentFlags(*o.Flags, []string{
		"--kubeconfig=" + f.kubeconfigPath(schedulerFile),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
	}); err != nil {
		return err
	}
	config, scheduler, err := app.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	return app.Run(ctx, config, scheduler)
}
