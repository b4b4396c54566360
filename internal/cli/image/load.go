package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore"
)

const loadLong = `Load container images into the data folder, from which all local clusters on this
computer pull them. The clusters must run containers on their workers
(spec.platform.local.containers: Auto or Always). They find the images at the next pull,
also with imagePullPolicy Always; their pods need no change.

FILE is an archive of docker save or podman save, or an OCI archive; it may be compressed
with gzip. FOLDER contains an OCI image layout. FILE can also be a program that is linked
statically: its image contains only the program, and starts it. Each image must support
the architecture of this computer. An image replaces the one that has the same name.

The names of the images are those in the archive. If it contains none, specify the name
with --name.`

func (a commands) loadCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "load FILE|FOLDER...",
		Short: "Load images from archives, folders or programs",
		Long:  loadLong,
		Example: `  docker save busybox:1.36 -o busybox.tar
  hotspare image load busybox.tar
  hotspare image load ./layout --name registry.example.com/team/app:v1
  hotspare image load ./server --name example.com/server:dev`,
		Args: base.RequireNames("archive or folder"),
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` of the image, instead of the names in the archive")
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("name", cobra.NoFileCompletions))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("name") {
			if name == "" {
				return base.UsageErrorFor(errors.New("--name is empty: specify a name such as busybox:1.36"), cmd)
			}
			if len(args) > 1 {
				return base.UsageErrorFor(fmt.Errorf("--name names one image: specify one archive or folder, not %d", len(args)), cmd)
			}
		}
		return a.loadImages(cmd.Context(), args, imagestore.LoadOptions{Name: name})
	}
	return cmd
}

// loadImages loads all valid archives, and returns the errors of the others.
func (a commands) loadImages(ctx context.Context, paths []string, o imagestore.LoadOptions) error {
	store := a.openStore()
	var all []imagestore.Image
	var errs []error
	for _, path := range paths {
		images, err := store.Load(ctx, path, o)
		all = append(all, images...)
		errs = append(errs, err)
	}
	err := a.printImages(all, func() error {
		for _, i := range all {
			if _, err := fmt.Fprintf(a.Stdout, "loaded %s (%s, %s)\n", i.Name, formatSize(i.Size), formatPlatforms(i)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(append([]error{err}, errs...)...)
}
