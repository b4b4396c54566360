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
	ExitSteps    = 4   // with --detailed-exitcode: the plan has steps
	ExitNotFound = 127 // as in a shell, for a command that does not exist
	ExitSignal   = 128 // plus the signal's number, as in a shell
)

// StopSignals are the signals that end a command.
var StopSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// ExitError is an error with its own exit code. If Err is nil, nothing is printed.
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

// NewUsageError marks err as a usage error: exit code 2.
func NewUsageError(err error) error { return &ExitError{Code: exitUsage, Err: err} }

// UsageErrorFor returns a usage error that refers to the help of cmd.
func UsageErrorFor(err error, cmd *cobra.Command) error {
	return NewUsageError(WithRemedy(err, "see: "+cmd.CommandPath()+" --help"))
}

// WithRemedy adds a hint to an error, on its own line.
func WithRemedy(err error, remedy string) error { return fmt.Errorf("%w\n  %s", err, remedy) }

// InterruptError is the cause of a context that a signal canceled.
type InterruptError struct{ Signal syscall.Signal }

func (i InterruptError) Error() string { return "interrupted" }
