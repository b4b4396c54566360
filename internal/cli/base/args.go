package base

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rejectUnknownCommand accepts no arguments: an argument of a command group is a subcommand that
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
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	}
	return err
}

// RequireOneName accepts one argument: the name of an object of the given kind.
func RequireOneName(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("specify the name of the %s", what)
		case 1:
			return nil
		default:
			return fmt.Errorf("specify one %s, not %d: %s", what, len(args), strings.Join(args, " "))
		}
	}
}

// RequireNames accepts one or more arguments: names of objects of the given kind.
func RequireNames(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("specify at least one %s", what)
		}
		return nil
	}
}

// StripKindPrefix returns the name in an argument of the form that -o name prints, such as
// clusterclaim.hive.openshift.io/dev-x7k2p.
func StripKindPrefix(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// ExplainFlagError rewrites pflag's error about an invalid value: it names the flag, the value
// and the expected form.
func ExplainFlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	value := fmt.Sprintf("--%s %q", invalid.GetFlag().Name, invalid.GetValue())
	var should string
	switch typ := invalid.GetFlag().Value.Type(); {
	case errors.Is(err, strconv.ErrRange):
		should = "is out of range"
	case strings.HasPrefix(typ, "int"), strings.HasPrefix(typ, "uint"):
		should = "is not an integer: use a value such as 3"
	case strings.HasPrefix(typ, "float"):
		should = "is not a number: use a value such as 90 or 99.5"
	case typ == "duration":
		should = "is not a duration: use a value such as 90s, 10m or 8h"
	case typ == "bool":
		should = "is not a Boolean: use true or false"
	default:
		return fmt.Errorf("%s: %w", value, invalid.Unwrap())
	}
	return fmt.Errorf("%s %s", value, should)
}
