package base

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rejectUnknownCommand accepts no argument: whatever stands after a group is a command that
// does not exist.
func rejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0])
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		err = fmt.Errorf("%w; is it %s that you mean?", err, strings.Join(like, " or "))
	}
	return err
}

// RequireOneName accepts the name of one thing.
func RequireOneName(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("name the %s", what)
		case 1:
			return nil
		default:
			return fmt.Errorf("name one %s, not %d: %s", what, len(args), strings.Join(args, " "))
		}
	}
}

// RequireNames accepts the names of one thing or more.
func RequireNames(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("name one %s or more", what)
		}
		return nil
	}
}

// StripKindPrefix is the name in what -o name prints: clusterclaim.hive.openshift.io/dev-x7k2p.
func StripKindPrefix(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// ExplainFlagError says what is wrong with a flag's value in words of ours: the flag, the value,
// and what it should be.
func ExplainFlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	value := fmt.Sprintf("--%s %q", invalid.GetFlag().Name, invalid.GetValue())
	var should string
	switch typ := invalid.GetFlag().Value.Type(); {
	case errors.Is(err, strconv.ErrRange):
		should = "is too large, or too small"
	case strings.HasPrefix(typ, "int"), strings.HasPrefix(typ, "uint"):
		should = "is not a whole number: write it as in 3"
	case strings.HasPrefix(typ, "float"):
		should = "is not a number: write it as in 90 or 99.5"
	case typ == "duration":
		should = "is not a time: write it as in 90s, 10m or 8h"
	case typ == "bool":
		should = "is neither true nor false"
	default:
		return fmt.Errorf("%s: %w", value, invalid.Unwrap())
	}
	return fmt.Errorf("%s %s", value, should)
}
