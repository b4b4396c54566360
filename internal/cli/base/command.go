package base

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// ParseNow parses the value of --now; an empty value stands for the current time.
func (a *App) ParseNow(text string) (time.Time, error) {
	if text == "" {
		return a.Clock.Now().UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--now %q is not a time: use a value such as 2026-03-01T12:00:00Z", text)
	}
	return t.UTC(), nil
}

// MustSucceed panics on an error. Use it for calls that fail only because of a programming
// error, such as a completion for a flag that does not exist.
func MustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}

// NewCommandGroup returns a command that has only subcommands.
func (a *App) NewCommandGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  rejectUnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}
