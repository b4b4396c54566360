package main

import (
	"errors"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/spoke"
)

// machineCommand runs a local machine. hotspare up starts it; users do not.
func machineCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "machine", Short: "Run a machine of a local cluster", Hidden: true}
	var dir string
	run := &cobra.Command{
		Use:   "run",
		Short: "Run the machine in a folder until it is stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return base.NewUsageError(errors.New("--dir is required: specify the machine's folder"))
			}
			return spoke.Run(cmd.Context(), dir)
		},
	}
	run.Flags().StringVar(&dir, "dir", "", "the machine's folder")
	cmd.AddCommand(run)
	return cmd
}
