// Command hotspare-manager runs hotspare's controllers on an existing hub.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/helmchart/renderprocess"
	"hotspare.io/hotspare/internal/install/job/pod"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobpod"
	"hotspare.io/hotspare/internal/version"
)

const long = `Run hotspare's controllers on an existing hub.

The manager reads the address of the hub from --kubeconfig, else from $KUBECONFIG; by
default, the hub is the cluster in which it runs. The hub needs hotspare's
CustomResourceDefinitions: without them the manager is not ready, and /readyz lists
the missing ones.

You can run several replicas: one is the leader, the others wait for its Lease and
serve probes and the metrics of their own process. See docs/operate/install.md.

Exit codes: 0 stopped by a signal, 1 failure (for example a lost Lease), 2 usage error.`

func main() { os.Exit(runCommand()) }

func runCommand() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var wrong *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		return 2
	default:
		return 1
	}
}

// usageError is an error in the flags or arguments.
type usageError struct{ error }

func (e *usageError) Error() string { return e.error.Error() + "\n  see: hotspare-manager --help" }
func (e *usageError) Unwrap() error { return e.error }

func newCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:           "hotspare-manager",
		Short:         "Run hotspare's controllers on a hub",
		Long:          long,
		Version:       version.Get(),
		Args:          rejectArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return &usageError{err}
			}
			return f.runManager(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	cmd.SetVersionTemplate("hotspare-manager {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	cmd.CompletionOptions.DisableDefaultCmd = true
	f.addFlags(cmd)
	cmd.AddCommand(pod.NewCommand(pod.CurrentHost()), jobpod.NewCommand(pod.CurrentHost()), renderprocess.NewCommand())
	return cmd
}

func rejectArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("there is no command %q", args[0])}
	}
	return nil
}
