package controlplane

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// runControllers runs the named controllers until ctx ends. It may be called again afterwards: it
// removes what it has registered in the process.
func runControllers(ctx context.Context, f files, names, further []string) error {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("creating options: %w", err)
	}
	all, off, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	sets := o.Flags(all, off, aliases)
	if err := parseComponentFlags(sets, append(controllerFlags(f, names), further...)); err != nil {
		return err
	}
	o.ParsedFlags = &sets
	config, err := o.Config(ctx, all, off, aliases)
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	defer configz.Delete(app.ConfigzName)
	return app.Run(ctx, config.Complete())
}

func controllerFlags(f files, names []string) []string {
	return []string{
		"--kubeconfig=" + f.kubeconfigPath(controllerManagerFile),
		"--controllers=" + strings.Join(names, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + pki.ServiceAccountKeyPath(f.pki),
		"--root-ca-file=" + f.clusterCAPath(),
	}
}
