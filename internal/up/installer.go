package up

import (
	"context"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/hub"
	"hotspare.io/hotspare/internal/install/job"
	"hotspare.io/hotspare/internal/install/job/runner"
	"hotspare.io/hotspare/internal/platform"
)

// Jobs run as processes here, so these name no images; the API wants names all the same.
const (
	ownImage       = "hotspare.io/this/program"
	installerImage = "hotspare.io/this/installer"
)

// installJobOptions says how clusters of other platforms are made; nil: they are not, for there is
// no openshift-install.
func (o Options) installJobOptions() *job.Options {
	if o.Installer == "" {
		return nil
	}
	return &job.Options{Image: ownImage, InstallerImage: installerImage}
}

// runInstallers runs the Jobs of installers as processes, in place of the nodes that
// the hub has not got.
func runInstallers(ctx context.Context, o Options, h *hub.Hub) error {
	if o.Installer == "" {
		<-ctx.Done()
		return nil
	}
	c, err := client.New(h.AdminConfig(), client.Options{Scheme: platform.JobScheme()})
	if err != nil {
		return fmt.Errorf("making a client for Jobs: %w", err)
	}
	programs := runner.Programs{Hotspare: o.Machine[0], Installer: o.Installer, Hub: h.URL()}
	r := runner.Runner{Hub: c, Dir: filepath.Join(o.Dir, "pods"), Launch: programs.LaunchPod}
	return r.Run(ctx)
}
