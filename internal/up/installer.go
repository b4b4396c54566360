package up

import (
	"context"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/hub"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job"
	"hotspare.io/hotspare/internal/install/job/runner"
)

// Jobs run as processes here, so these name no images; the API wants names all the same.
const (
	ownImage       = "hotspare.io/this/program"
	installerImage = "hotspare.io/this/installer"
)

// addInstallers adds an executor to each platform that openshift-install makes clusters
// on, if there is an openshift-install.
func addInstallers(to install.Registry, cfg *rest.Config, o Options) error {
	if o.Installer == "" {
		return nil
	}
	c, err := client.New(cfg, client.Options{Scheme: jobScheme()})
	if err != nil {
		return fmt.Errorf("making a client for Jobs: %w", err)
	}
	executor := job.New(c, job.Options{Image: ownImage, InstallerImage: installerImage})
	for _, platform := range job.Platforms() {
		to[platform] = executor
	}
	return nil
}

// runInstallers runs the Jobs of installers as processes, in place of the nodes that
// the hub has not got.
func runInstallers(ctx context.Context, o Options, h *hub.Hub) error {
	if o.Installer == "" {
		<-ctx.Done()
		return nil
	}
	c, err := client.New(h.AdminConfig(), client.Options{Scheme: jobScheme()})
	if err != nil {
		return fmt.Errorf("making a client for Jobs: %w", err)
	}
	programs := runner.Programs{Hotspare: o.Machine[0], Installer: o.Installer, Hub: h.URL()}
	r := runner.Runner{Hub: c, Dir: filepath.Join(o.Dir, "pods"), Launch: programs.Launch}
	return r.Run(ctx)
}

func jobScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, batchv1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in this program
		}
	}
	return s
}
