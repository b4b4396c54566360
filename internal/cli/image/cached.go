package image

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore/pullthrough"
	"hotspare.io/hotspare/internal/embedded/machine"
)

const pruneLong = `Delete all images that local clusters have pulled from other registries and that the data
folder keeps for the next cluster. Loaded images stay. Clusters that have pulled an image
keep it, and their pods continue to run; the next cluster pulls it again.`

// pruneReport is the output of image prune for programs.
type pruneReport struct {
	// FreedBytes is the size of what the command deleted.
	FreedBytes int64 `json:"freedBytes"`
}

// cachePath returns the folder of the cached images in the data folder.
func (a commands) cachePath() string {
	return machine.ImageCachePath(filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "machines"))
}

func (a commands) pruneCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "prune",
		Short:             "Delete the cached images of other registries",
		Long:              pruneLong,
		Example:           `  hotspare image prune`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.pruneImages(cmd.Context()) },
	}
}

func (a commands) pruneImages(ctx context.Context) error {
	freed, err := pullthrough.Prune(ctx, a.cachePath())
	if err != nil {
		return fmt.Errorf("deleting the cached images: %w", err)
	}
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(pruneReport{FreedBytes: freed})
	case base.AsName:
		return nil
	}
	_, err = fmt.Fprintf(a.Stdout, "deleted the cached images (%s)\n", formatSize(freed))
	return err
}

// cachedReport is the output of image list --cached for programs.
type cachedReport struct {
	Images []pullthrough.Image `json:"images"`
	// Size is the number of bytes of all cached content, which images share, and Limit the maximum.
	Size  int64 `json:"size"`
	Limit int64 `json:"limit"`
}

func (a commands) listCached() error {
	var report cachedReport
	settings, err := pullthrough.ReadSettings(a.cachePath())
	if err != nil {
		return err
	}
	report.Limit = settings.Limit
	if report.Images, report.Size, err = pullthrough.List(a.cachePath()); err != nil {
		return err
	}
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(report)
	case base.AsName:
		for _, i := range report.Images {
			if _, err := fmt.Fprintln(a.Stdout, i.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return a.printCached(report)
}

func (a commands) printCached(report cachedReport) error {
	if len(report.Images) == 0 {
		_, err := fmt.Fprintln(a.Stderr, "No cached images in the data folder: no local cluster has pulled an image from another registry.")
		return err
	}
	t := base.NewTable("NAME", "DIGEST", "SIZE", "USED")
	for _, i := range report.Images {
		t.AddRow(i.Name, i.Digest[:digestLength], formatSize(i.Size), a.FormatAge(i.Used))
	}
	t.FitWidth(a.Width(a.Stdout), "DIGEST")
	if err := t.WriteTo(a.Stdout, a.PaletteFor(a.Stdout)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "\n%s of at most %s are used. Images share layers.\n", formatSize(report.Size), formatSize(report.Limit))
	return err
}
