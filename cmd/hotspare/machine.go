package main

import (
	"errors"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/spoke"
	"hotspare.io/hotspare/internal/embedded/usernamespace"
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
	cmd.AddCommand(run, removeCommand())
	return cmd
}

// removeCommand removes files in the user namespace in which hotspare starts it.
func removeCommand() *cobra.Command {
	var root, path string
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Remove a file or a folder below another one",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if root == "" || path == "" {
				return base.NewUsageError(errors.New("--root and --path are required"))
			}
			return usernamespace.RemoveBelow(root, path)
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "the folder that no link leaves")
	cmd.Flags().StringVar(&path, "path", "", "what to remove, below --root")
	return cmd
}
