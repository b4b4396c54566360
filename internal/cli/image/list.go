package image

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore"
)

const listLong = `List the images in the data folder, which all local clusters on this computer can pull if
their workers run containers (spec.platform.local.containers: Auto or Always).

With --cached, list the images that clusters have pulled from other registries, and that
the data folder keeps. A cluster gets them if the registry accepts its pull secret.`

// digestLength is the length of a digest in a table, as that of a Git commit.
const digestLength = len("sha256:") + 12

func (a commands) listCommand() *cobra.Command {
	var cached bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the images that local clusters can pull",
		Long:    listLong,
		Example: `  hotspare image list
  hotspare image list -o json
  hotspare image list --cached`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if cached {
				return a.listCached()
			}
			return a.listImages()
		},
	}
	cmd.Flags().BoolVar(&cached, "cached", false, "list the images that clusters have pulled from other registries")
	return cmd
}

// listImages prints the readable images, and returns the errors of the others.
func (a commands) listImages() error {
	images, err := a.openStore().List()
	return errors.Join(a.printImages(images, func() error { return a.printTable(images, err == nil) }), err)
}

// printTable prints images. complete is false if others cannot be read.
func (a commands) printTable(images []imagestore.Image, complete bool) error {
	if len(images) == 0 && !complete {
		return nil
	}
	if len(images) == 0 {
		_, err := fmt.Fprintf(a.Stderr, "No images in the data folder. To load one:\n  %s\n", a.FormatCommand("image load FILE"))
		return err
	}
	t := base.NewTable("NAME", "DIGEST", "SIZE", "PLATFORMS")
	for _, i := range images {
		t.AddRow(i.Name, i.Digest[:digestLength], formatSize(i.Size), formatPlatforms(i))
	}
	t.FitWidth(a.Width(a.Stdout), "DIGEST")
	return t.WriteTo(a.Stdout, a.PaletteFor(a.Stdout))
}
