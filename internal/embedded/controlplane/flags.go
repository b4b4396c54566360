package controlplane

import (
	"fmt"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	cliflag "k8s.io/component-base/cli/flag"
)

// parseComponentFlags sets the options behind sets as a command line would. Flags are the only
// stable way to configure the components.
func parseComponentFlags(sets cliflag.NamedFlagSets, args []string) error {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(args); err != nil {
		return fmt.Errorf("parsing flags: %w", err)
	}
	return nil
}

// joinValidationErrors joins the errors of a validation.
func joinValidationErrors(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("validating options: %w", utilerrors.NewAggregate(errs))
}
