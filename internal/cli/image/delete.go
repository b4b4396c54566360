package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore"
)

const deleteLong = `Delete images from the data folder, with the layers that no other image needs. Clusters
that have pulled an image keep it, and their pods continue to run. New clusters of a pool
that lists an image in spec.platform.local.images need it from its registry then: remove it
from the pool, too, if there is none.`

// deleteReport is the output of image delete for programs.
type deleteReport struct {
	// Deleted are the names of the images that the command deleted.
	Deleted []string `json:"deleted"`
}

func (a commands) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete images",
		Long:  deleteLong,
		Example: `  hotspare image delete busybox:1.36
  hotspare image list -o name | xargs hotspare image delete`,
		Args:              base.RequireNames("image"),
		ValidArgsFunction: a.completeImages,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.deleteImages(cmd.Context(), args) },
	}
}

// deleteImages deletes all images that it can, and returns the errors of the others.
func (a commands) deleteImages(ctx context.Context, names []string) error {
	store := a.openStore()
	report := deleteReport{Deleted: []string{}}
	var errs []error
	for _, name := range names {
		err := store.Delete(ctx, name)
		switch {
		case err == nil:
			report.Deleted = append(report.Deleted, name)
		case errors.Is(err, imagestore.ErrNotFound):
			err = base.WithRemedy(err, "see: "+a.FormatCommand("image list"))
		}
		errs = append(errs, err)
	}
	return errors.Join(append([]error{a.printDeleted(report)}, errs...)...)
}

func (a commands) printDeleted(report deleteReport) error {
	format := "deleted %s\n"
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(report)
	case base.AsName:
		format = "%s\n"
	}
	for _, name := range report.Deleted {
		if _, err := fmt.Fprintf(a.Stdout, format, name); err != nil {
			return err
		}
	}
	return nil
}
