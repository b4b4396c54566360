// Package local implements the commands for local clusters, whose machines are processes on this
// computer.
package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

// NewCommand returns the command "hotspare local" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	return a.NewCommandGroup("local", "Clusters whose machines are processes on this computer", a.breakCommand(), a.healCommand(), a.listCommand(), a.removeCommand())
}

// loadMachines reads the machines of a cluster from the data folder.
func (a commands) loadMachines(cd *hivev1.ClusterDeployment) (base.Machines, error) {
	switch {
	case cd.Spec.Platform.Local == nil:
		return base.Machines{}, fmt.Errorf("cluster %s is on platform %s: only local clusters support break and heal", cd.Name, base.ValueOrNone(cd.Spec.Platform.Name()))
	case !cd.Spec.Installed || cd.Spec.ClusterMetadata == nil:
		return base.Machines{}, base.WithRemedy(fmt.Errorf("cluster %s is not installed yet: its state is %s", cd.Name, base.ValueOrNone(clusterstate.OfCluster(cd))),
			"see: "+a.FormatCommand("cluster describe %s", cd.Name))
	}
	m := base.Machines{Dir: filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "machines", cd.Spec.ClusterMetadata.InfraID)}
	var err error
	if m.All, err = machine.LoadConfigs(m.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return base.Machines{}, fmt.Errorf("finding the machines of cluster %s: %w", cd.Name, err)
	}
	if len(m.All) == 0 {
		return base.Machines{}, base.WithRemedy(fmt.Errorf("cluster %s has no machines in %s", cd.Name, m.Dir),
			"run the command on the hub's machine, and specify the hub's data folder with --data-dir")
	}
	return m, nil
}

// completeFaults completes a cluster, and then a fault.
func (a commands) completeFaults(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.CompleteClusters(cmd, args, typed)
	case 1:
		return machine.InjectionNames(), cobra.ShellCompDirectiveNoFileComp
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// buildFaultTable lists the faults that local break can inject.
func buildFaultTable() *base.Table {
	t := base.NewTable("FAULT", "STRIKES", "BEGINS", "ENDS", "DOES")
	for _, p := range machine.InjectionProfiles() {
		begins, ends := "immediately", "automatically"
		if p.AtStart {
			begins = "at next start"
		}
		if p.Persistent {
			ends = "when healed"
		}
		t.AddRow(string(p.Fault), string(p.DefaultTarget), begins, ends, p.Description)
	}
	return t
}

// sortedMachineNames returns the names of machines, sorted.
func sortedMachineNames(all []machine.Config) []string {
	names := []string{}
	for _, c := range all {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
