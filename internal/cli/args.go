package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// known accepts no argument: whatever stands after a group is a command that
// does not exist.
func known(cmd *cobra.Command, args []string) error {
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

// one accepts the name of one thing.
func one(what string) cobra.PositionalArgs {
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

// some accepts the names of one thing or more.
func some(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("name one %s or more", what)
		}
		return nil
	}
}

// poolAndCommand accepts POOL -- COMMAND...
func poolAndCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 1 && len(args) > 1:
		return nil
	case dash < 0 || len(args) == dash:
		return errors.New("give the command to run after --, as in: hotspare claim run POOL -- make test")
	default:
		return errors.New("name one pool before --")
	}
}

// bare is the name in what -o name prints: clusterclaim.hive.openshift.io/dev-x7k2p.
func bare(name string) string { return name[strings.LastIndex(name, "/")+1:] }
