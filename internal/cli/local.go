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
	"hotspare.io/hotspare/internal/machine"
	"hotspare.io/hotspare/internal/standing"
)

func (a *app) localCommand() *cobra.Command {
	return a.group("local", "Clusters made of processes on this machine", a.localBreakCommand(), a.localHealCommand(), a.localListCommand(), a.localRemoveCommand())
}

// machines are those of one local cluster.
type machines struct {
	dir string
	all []machine.Config
}

// machinesOf finds the machines of a cluster in the data folder.
func (a *app) machinesOf(cd *hivev1.ClusterDeployment) (machines, error) {
	switch {
	case cd.Spec.Platform.Local == nil:
		return machines{}, fmt.Errorf("cluster %s is of platform %s: only local clusters can be broken and healed", cd.Name, orNone(cd.Spec.Platform.Name()))
	case !cd.Spec.Installed || cd.Spec.ClusterMetadata == nil:
		return machines{}, advise(fmt.Errorf("cluster %s is not installed yet: it is %s", cd.Name, orNone(standing.Cluster(cd))),
			"see: "+a.next("cluster describe %s", cd.Name))
	}
	m := machines{dir: filepath.Join(dataDir(a.flags.dataDir), "machines", cd.Spec.ClusterMetadata.InfraID)}
	var err error
	if m.all, err = machine.LoadConfigs(m.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return machines{}, fmt.Errorf("looking for the machines of cluster %s: %w", cd.Name, err)
	}
	if len(m.all) == 0 {
		return machines{}, advise(fmt.Errorf("cluster %s has no machines in %s", cd.Name, m.dir),
			"name the data folder of the hub, on its own machine, with --data-dir")
	}
	return m, nil
}

// named returns the machine of that name.
func (m machines) named(name string) (machine.Config, error) {
	var names []string
	for _, c := range m.all {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return machine.Config{}, fmt.Errorf("there is no machine %q: choose one of %s", name, strings.Join(names, ", "))
}

// folder is that of a machine.
func (m machines) folder(c machine.Config) string { return filepath.Join(m.dir, c.Name) }

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

// faultTable lists all faults.
func faultTable() *table {
	t := newTable("FAULT", "STRIKES", "BEGINS", "ENDS", "DOES")
	for _, p := range machine.InjectionProfiles() {
		begins, ends := "at once", "by itself"
		if p.AtStart {
			begins = "at a start"
		}
		if p.Lasts {
			ends = "when healed"
		}
		t.add(string(p.Fault), string(p.Strikes), begins, ends, p.Does)
	}
	return t
}

// names of machines, sorted.
func namesOf(all []machine.Config) []string {
	names := []string{}
	for _, c := range all {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
