package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

func (a *app) localCommand() *cobra.Command {
	return a.newCommandGroup("local", "Clusters made of processes on this machine", a.localBreakCommand(), a.localHealCommand(), a.localListCommand(), a.localRemoveCommand())
}

// machines are those of one local cluster.
type machines struct {
	dir string
	all []machine.Config
}

// loadMachines finds the machines of a cluster in the data folder.
func (a *app) loadMachines(cd *hivev1.ClusterDeployment) (machines, error) {
	switch {
	case cd.Spec.Platform.Local == nil:
		return machines{}, fmt.Errorf("cluster %s is of platform %s: only local clusters can be broken and healed", cd.Name, valueOrNone(cd.Spec.Platform.Name()))
	case !cd.Spec.Installed || cd.Spec.ClusterMetadata == nil:
		return machines{}, withRemedy(fmt.Errorf("cluster %s is not installed yet: it is %s", cd.Name, valueOrNone(clusterstate.OfCluster(cd))),
			"see: "+a.formatCommand("cluster describe %s", cd.Name))
	}
	m := machines{dir: filepath.Join(resolveDataDir(a.flags.dataDir), "machines", cd.Spec.ClusterMetadata.InfraID)}
	var err error
	if m.all, err = machine.LoadConfigs(m.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return machines{}, fmt.Errorf("looking for the machines of cluster %s: %w", cd.Name, err)
	}
	if len(m.all) == 0 {
		return machines{}, withRemedy(fmt.Errorf("cluster %s has no machines in %s", cd.Name, m.dir),
			"name the data folder of the hub, on its own machine, with --data-dir")
	}
	return m, nil
}

// findMachine returns the machine of that name.
func (m machines) findMachine(name string) (machine.Config, error) {
	var names []string
	for _, c := range m.all {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return machine.Config{}, fmt.Errorf("there is no machine %q: choose one of %s", name, strings.Join(names, ", "))
}

// machineFolder is that of a machine.
func (m machines) machineFolder(c machine.Config) string { return filepath.Join(m.dir, c.Name) }

// completeFaults offers clusters, and then faults.
func (a *app) completeFaults(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeClusters(cmd, args, typed)
	case 1:
		return machine.InjectionNames(), cobra.ShellCompDirectiveNoFileComp
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// buildFaultTable lists all faults.
func buildFaultTable() *table {
	t := newTable("FAULT", "STRIKES", "BEGINS", "ENDS", "DOES")
	for _, p := range machine.InjectionProfiles() {
		begins, ends := "at once", "by itself"
		if p.AtStart {
			begins = "at a start"
		}
		if p.Lasts {
			ends = "when healed"
		}
		t.addRow(string(p.Fault), string(p.Strikes), begins, ends, p.Does)
	}
	return t
}

// names of machines, sorted.
func sortedMachineNames(all []machine.Config) []string {
	names := []string{}
	for _, c := range all {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
