package base

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitOK       = 0
	ExitFailed   = 1
	exitUsage    = 2
	ExitTimedOut = 3
	ExitSteps    = 4   // of pool plan, when asked for
	ExitNotFound = 127 // as a shell's, for a command that is not there
	ExitSignal   = 128 // plus the signal's number, as a shell's
)

// StopSignals are the signals that end a command.
var StopSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// ExitError is an error with an exit code of its own. Without an error there is
// nothing to print.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// NewUsageError marks err as a mistake in how the command was called: exit code 2.
func NewUsageError(err error) error { return &ExitError{Code: exitUsage, Err: err} }

// UsageErrorFor adds where to read on.
func UsageErrorFor(err error, cmd *cobra.Command) error {
	return NewUsageError(WithRemedy(err, "see: "+cmd.CommandPath()+" --help"))
}

// WithRemedy adds a remedy, a line of its own, to an error.
func WithRemedy(err error, remedy string) error { return fmt.Errorf("%w\n  %s", err, remedy) }

// InterruptError is why a context ended.
type InterruptError struct{ Signal syscall.Signal }

func (i InterruptError) Error() string { return "interrupted" }
