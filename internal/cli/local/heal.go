package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/machine"
)

func (a commands) healCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "heal CLUSTER [FAULT]",
		Short: "Remove injected faults from a local cluster",
		Long: `Remove the faults that "local break" injected into a cluster: one fault, or all.
CLUSTER is the name of a claim in the namespace or, failing that, of a cluster.

Hung machines continue, and a lost disk is restored. hotspare restarts a stopped
machine.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return errors.New("specify the cluster and, to remove only one fault, the fault")
			}
			return nil
		},
		ValidArgsFunction: a.completeFaults,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			only := machine.InjectionNames()
			if len(args) == 2 {
				p, err := machine.Injection(args[1]).Profile()
				if err != nil {
					return base.NewUsageError(err)
				}
				only = []string{string(p.Fault)}
			}
			cd, err := a.FindCluster(ctx, h, args[0])
			if err != nil {
				return err
			}
			healed, err := a.healMachines(cd, only)
			if err != nil {
				return err
			}
			return a.printHealedFaults(cd, healed, only)
		}),
	}
}

// healedFault is a fault that was removed from a machine.
type healedFault struct {
	Machine string            `json:"machine"`
	Fault   machine.Injection `json:"fault"`
}

// healMachines removes faults from the machines of a cluster.
func (a commands) healMachines(cd *hivev1.ClusterDeployment, faults []string) ([]healedFault, error) {
	m, err := a.loadMachines(cd)
	if err != nil {
		return nil, err
	}
	healed := []healedFault{}
	for _, c := range m.All {
		for _, name := range faults {
			f := machine.Injection(name)
			if !machine.HasInjection(m.MachineFolder(c), f) {
				continue
			}
			if err := machine.RemoveInjection(m.MachineFolder(c), f); err != nil {
				return nil, err
			}
			healed = append(healed, healedFault{c.Name, f})
		}
	}
	return healed, nil
}

func (a commands) printHealedFaults(cd *hivev1.ClusterDeployment, healed []healedFault, asked []string) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(healed)
	case base.AsName:
		for _, c := range healed {
			if _, err := fmt.Fprintln(a.Stdout, c.Machine); err != nil {
				return err
			}
		}
		return nil
	default:
		return writeHealedFaults(a.Stdout, cd, healed, asked)
	}
}

func writeHealedFaults(w io.Writer, cd *hivev1.ClusterDeployment, healed []healedFault, asked []string) error {
	if len(healed) == 0 {
		what := "fault"
		if len(asked) == 1 {
			what += " " + strings.Join(asked, "")
		}
		_, err := fmt.Fprintf(w, "cluster %s has no %s\n", cd.Name, what)
		return err
	}
	for _, c := range healed {
		if _, err := fmt.Fprintf(w, "removed fault %[2]s from machine %[1]s\n", c.Machine, c.Fault); err != nil {
			return err
		}
	}
	return nil
}
