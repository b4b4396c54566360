package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
)

// Execute runs cmd, which New has returned, with the arguments of the process or those of
// cmd.SetArgs. It prints an error once and returns the exit code: 0 for success, 1 for failure,
// 2 for a usage error, 3 for a timeout, 130 for an interrupt (143 for SIGTERM, 129 for SIGHUP).
// claim run returns the code of its command.
//
// The first signal cancels the command's context. A second one terminates the process, except
// while claim run releases its claim.
func Execute(ctx context.Context, cmd *cobra.Command) int {
	ctx, stop := contextUntilSignal(ctx)
	defer stop()
	var begun bool
	ran, err := cmd.ExecuteContextC(context.WithValue(ctx, commandStartedKey{}, &begun))
	switch {
	case err != nil && !begun:
		err = base.UsageErrorFor(err, ran)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = context.Cause(ctx)
	}
	if err != nil && err.Error() != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "error: %v\n", err)
	}
	return exitCode(ctx, err)
}

// commandStartedKey is the context key of the variable that is set when the command starts.
type commandStartedKey struct{}

func markCommandStarted(ctx context.Context) {
	if begun, ok := ctx.Value(commandStartedKey{}).(*bool); ok {
		*begun = true
	}
}

func exitCode(ctx context.Context, err error) int {
	var own *base.ExitError
	var by base.InterruptError
	switch {
	case err == nil:
		return base.ExitOK
	case errors.As(err, &own):
		return own.Code
	case errors.As(context.Cause(ctx), &by):
		return base.ExitSignal + int(by.Signal)
	default:
		return base.ExitFailed
	}
}

// contextUntilSignal returns a context that the first signal cancels. A second signal has its
// default effect.
func contextUntilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, base.StopSignals...)
	go func() {
		select {
		case s := <-heard:
			cancel(base.InterruptError{Signal: s.(syscall.Signal)}) // base.StopSignals has no other type
			signal.Stop(heard)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		cancel(nil)
	}
}
