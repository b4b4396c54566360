package up

import (
	"context"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/embedded/hub"
	"hotspare.io/hotspare/internal/install/job"
	"hotspare.io/hotspare/internal/install/job/runner"
	"hotspare.io/hotspare/internal/platform"
)

// Placeholder images: Jobs run as processes here, but the API requires image names.
const (
	ownImage       = "hotspare.io/this/program"
	installerImage = "hotspare.io/this/installer"
)

// installJobOptions returns the options for installing clusters of other platforms; nil if there is
// no openshift-install, so that such clusters cannot be installed.
func (o Options) installJobOptions() *job.Options {
	if o.Installer == "" {
		return nil
	}
	return &job.Options{Image: ownImage, InstallerImage: installerImage}
}

// runInstallers runs the Jobs of installers as processes, because the hub has no nodes.
func runInstallers(ctx context.Context, o Options, h *hub.Hub) error {
	if o.Installer == "" {
		<-ctx.Done()
		return nil
	}
	c, err := client.New(h.AdminConfig(), client.Options{Scheme: platform.JobScheme()})
	if err != nil {
		return fmt.Errorf("creating a client for Jobs: %w", err)
	}
	programs := runner.Programs{Hotspare: o.Machine[0], Installer: o.Installer, Hub: h.URL()}
	r := runner.Runner{Hub: c, Dir: filepath.Join(o.Dir, "pods"), Launch: programs.LaunchPod}
	return r.Run(ctx)
}
