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

func (a commands) breakCommand() *cobra.Command {
	var name string
	var list bool
	cmd := &cobra.Command{
		Use:   "break CLUSTER FAULT",
		Short: "Inject a fault into a local cluster, or a claim's cluster",
		Long: `Inject a fault into machines of a local cluster, to see how hotspare reacts. CLUSTER
is the name of a claim in the namespace or, failing that, of a cluster.

` + faultHelp() + `
A fault that begins "at next start" does not affect a running machine until it restarts.
A fault that begins "immediately" affects a stopped machine at its next start.`,
		Example: `  hotspare local break mine machine-crash
  hotspare local break mine disk-lost --machine mine-x7k2p-worker-0
  hotspare local break --list`,
		Args: func(_ *cobra.Command, args []string) error {
			if list && len(args) > 0 {
				return errors.New("--list takes no arguments")
			}
			if list {
				return nil
			}
			return requireClusterAndFault(args)
		},
		ValidArgsFunction: a.completeFaults,
	}
	cmd.Flags().StringVar(&name, "machine", "", "machine to break (default: see STRIKES)")
	cmd.Flags().BoolVar(&list, "list", false, "list all faults")
	breakIt := a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
		p, err := machine.Injection(args[1]).Profile()
		if err != nil {
			return base.NewUsageError(err)
		}
		cd, err := a.FindCluster(ctx, h, args[0])
		if err != nil {
			return err
		}
		d, err := a.breakCluster(cd, p, name)
		if err != nil {
			return err
		}
		return a.printBreakResult(d, func(w io.Writer) error { return a.writeBreakResult(w, args[0], d) })
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if list {
			return a.printFaults()
		}
		return breakIt(cmd, args)
	}
	return cmd
}

func faultHelp() string {
	var b strings.Builder
	base.MustSucceed(buildFaultTable().WriteTo(&b, nil)) // writing to a strings.Builder cannot fail
	return b.String()
}

// requireClusterAndFault accepts two arguments: a cluster and a fault.
func requireClusterAndFault(args []string) error {
	switch len(args) {
	case 2:
		return nil
	case 0, 1:
		return errors.New("specify the cluster and the fault; --list lists the faults")
	default:
		return fmt.Errorf("specify one cluster and one fault, not %d arguments: %s", len(args), strings.Join(args, " "))
	}
}

func (a commands) printFaults() error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(machine.InjectionProfiles())
	case base.AsName:
		_, err := fmt.Fprintln(a.Stdout, strings.Join(machine.InjectionNames(), "\n"))
		return err
	default:
		return buildFaultTable().WriteTo(a.Stdout, a.PaletteFor(a.Stdout))
	}
}

// breakResult describes the injected fault.
type breakResult struct {
	Cluster  string   `json:"cluster"`
	InfraID  string   `json:"infraID"`
	Machines []string `json:"machines"`
	machine.Profile
}

// breakCluster injects a fault into the named machine, or into the machines that the fault strikes.
func (a commands) breakCluster(cd *hivev1.ClusterDeployment, p machine.Profile, name string) (breakResult, error) {
	m, err := a.loadMachines(cd)
	if err != nil {
		return breakResult{}, err
	}
	struck := p.SelectMachines(m.All)
	if name != "" {
		c, err := m.FindMachine(name)
		if err != nil {
			return breakResult{}, base.NewUsageError(err)
		}
		if !p.AppliesTo(c.Role) {
			return breakResult{}, base.NewUsageError(fmt.Errorf("machine %s is a %s, but fault %s applies only to a %s", c.Name, c.Role, p.Fault, p.Only))
		}
		struck = []machine.Config{c}
	}
	for _, c := range struck {
		if err := machine.AddInjection(m.MachineFolder(c), p.Fault); err != nil {
			return breakResult{}, err
		}
	}
	return breakResult{Cluster: cd.Name, InfraID: cd.Spec.ClusterMetadata.InfraID, Machines: sortedMachineNames(struck), Profile: p}, nil
}

// printBreakResult prints the injected fault in the format of --output.
func (a commands) printBreakResult(d breakResult, text func(io.Writer) error) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(d)
	case base.AsName:
		_, err := fmt.Fprintln(a.Stdout, strings.Join(d.Machines, "\n"))
		return err
	default:
		return text(a.Stdout)
	}
}

func (a commands) writeBreakResult(w io.Writer, name string, d breakResult) error {
	when, heal := "now, or at its next start if it is stopped", "Remove the fault"
	if d.AtStart {
		when = "at its next start"
	}
	if !d.Persistent {
		heal = "The fault occurs once. To remove it before it occurs"
	}
	t := base.NewTable("MACHINE", "FAULT", "WHEN")
	for _, m := range d.Machines {
		t.AddRow(m, d.Description, when)
	}
	if _, err := fmt.Fprintf(w, "cluster %s has fault %s\n\n", d.Cluster, d.Fault); err != nil {
		return err
	}
	if err := t.WriteTo(w, a.PaletteFor(w)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s:\n  %s\n", heal, a.FormatCommand("local heal %s %s", name, d.Fault))
	return err
}
