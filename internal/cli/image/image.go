// Package image implements the commands for the container images that local clusters can pull.
package image

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

const imageLong = `Load container images for local clusters, without Docker, from files or registries.

All local clusters on this computer whose workers run containers
(spec.platform.local.containers: Auto or Always) find the images at their next pull, also
with imagePullPolicy Always. This includes clusters that exist already. The images are in
the data folder, which every local cluster of the hub uses. Only --pool needs the hub.

Images that are not loaded are pulled from their registry, and the data folder keeps them
for the next cluster: see "hotspare image list --cached".`

// NewCommand returns the command "hotspare image" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("image", "Container images for local clusters", a.deleteCommand(), a.listCommand(), a.loadCommand(), a.pruneCommand())
	cmd.Aliases = []string{"images"}
	cmd.Long = imageLong
	return cmd
}

// openStore opens the images in the data folder.
func (a commands) openStore() *imagestore.Store {
	return imagestore.Open(machine.ImagesPath(filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "machines")))
}

// listReport is the output for programs.
type listReport struct {
	Images []imagestore.Image `json:"images"`
}

// printImages prints images in the format of --output; text prints the default format, for people.
func (a commands) printImages(images []imagestore.Image, text func() error) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(listReport{Images: base.EmptyIfNil(images)})
	case base.AsName:
		for _, i := range images {
			if _, err := fmt.Fprintln(a.Stdout, i.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return text()
}

// completeImages completes names of images that are not yet among the arguments.
func (a commands) completeImages(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	images, _ := a.openStore().List() // a shell cannot show errors during completion
	var names []string
	for _, i := range images {
		if !slices.Contains(args, i.Name) {
			names = append(names, i.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// formatSize formats a number of bytes for tables: 4.3 MB.
func formatSize(bytes int64) string {
	const unit = 1000
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, prefixes := float64(bytes), "kMGTPE"
	n := -1
	for value >= unit-0.05 && n < len(prefixes)-1 { // 999.95 would round to 1000.0
		value /= unit
		n++
	}
	return fmt.Sprintf("%.1f %cB", value, prefixes[n])
}

func formatPlatforms(i imagestore.Image) string {
	return base.ValueOrNone(strings.Join(i.Platforms, ", "))
}
