package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitTimedOut = 3
	exitSteps    = 4   // of pool plan, when asked for
	exitNotFound = 127 // as a shell's, for a command that is not there
	exitSignal   = 128 // plus the signal's number, as a shell's
)

// stopSignals are the signals that end a command.
var stopSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

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
		err = usageErrorFor(err, ran)
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

// exitError is an error with an exit code of its own. Without an error there is
// nothing to print.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// NewUsageError marks err as a mistake in how the command was called: exit code 2.
func NewUsageError(err error) error { return &exitError{code: exitUsage, err: err} }

// usageErrorFor adds where to read on.
func usageErrorFor(err error, cmd *cobra.Command) error {
	return NewUsageError(withRemedy(err, "see: "+cmd.CommandPath()+" --help"))
}

// withRemedy adds a remedy, a line of its own, to an error.
func withRemedy(err error, remedy string) error { return fmt.Errorf("%w\n  %s", err, remedy) }

func exitCode(ctx context.Context, err error) int {
	var own *exitError
	var by interruptError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		return own.code
	case errors.As(context.Cause(ctx), &by):
		return exitSignal + int(by.signal)
	default:
		return exitFailed
	}
}

// interruptError is why a context ended.
type interruptError struct{ signal syscall.Signal }

func (i interruptError) Error() string { return "interrupted" }

// contextUntilSignal returns a context that the first signal cancels. The second one
// has its usual effect again.
func contextUntilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, stopSignals...)
	go func() {
		select {
		case s := <-heard:
			cancel(interruptError{s.(syscall.Signal)}) // stops holds nothing else
			signal.Stop(heard)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		cancel(nil)
	}
}
