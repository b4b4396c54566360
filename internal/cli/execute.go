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

// Execute runs cmd, which New has made, on the process's arguments or those
// given to cmd.SetArgs. It prints an error once and returns the exit code: 0 for
// success, 1 for failure, 2 for wrong usage, 3 when waiting timed out, 130 when
// interrupted (143 by SIGTERM, 129 by SIGHUP). claim run has the code of its
// command.
//
// The first of these signals cancels the command's context; a second one ends
// the process at once, except while claim run gives its cluster back.
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

// commandStartedKey finds, in a command's context, the mark that it has begun.
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

// contextUntilSignal returns a context that the first signal cancels. The second one
// has its usual effect again.
func contextUntilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, base.StopSignals...)
	go func() {
		select {
		case s := <-heard:
			cancel(base.InterruptError{Signal: s.(syscall.Signal)}) // stops holds nothing else
			signal.Stop(heard)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		cancel(nil)
	}
}
