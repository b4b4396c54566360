package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/usernamespace"
	"hotspare.io/hotspare/internal/infraid"
)

// localCluster is a cluster with machines in the data folder.
type localCluster struct {
	InfraID string `json:"infraID"`
	// Of is the object on the hub that has the infraID, as namespace/name; empty if there is none.
	Of       string `json:"of,omitempty"`
	Machines int    `json:"machines"`
	Running  int    `json:"running"`
}

func (a commands) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the clusters with machines in the data folder",
		Long: `List the clusters that have machines in the data folder, each with its object on the
hub. A cluster without an object is unknown to the hub, because a backup of the hub or
of the machines was restored without the other. hotspare up stops the machines of such
a cluster; remove them with "local remove".`,
		Args: cobra.NoArgs,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			all, err := a.listLocalClusters(ctx, h)
			if err != nil {
				return err
			}
			switch a.Flags.Output {
			case base.AsJSON, base.AsYAML:
				return a.PrintEncoded(all)
			case base.AsName:
				for _, c := range all {
					if _, err := fmt.Fprintln(a.Stdout, c.InfraID); err != nil {
						return err
					}
				}
				return nil
			}
			t := base.NewTable("INFRAID", "CLUSTER", "MACHINES", "RUNNING")
			for _, c := range all {
				of := c.Of
				if of == "" {
					of = "unknown to the hub"
				}
				t.AddRow(c.InfraID, of, strconv.Itoa(c.Machines), strconv.Itoa(c.Running))
			}
			return t.WriteTo(a.Stdout, a.PaletteFor(a.Stdout))
		}),
	}
}

func (a commands) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove INFRAID",
		Short: "Remove the machines of a cluster that the hub does not know",
		Long: `Remove the machines of a cluster that the hub does not know, with their disks.
"local list" shows these clusters. To destroy a cluster that the hub knows, delete its
object on the hub.`,
		Example: "  hotspare local remove dev-x7k2p-5hq2z",
		Args:    base.RequireOneName("infraID"),
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			all, err := a.listLocalClusters(ctx, h)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(c localCluster) bool { return c.InfraID == args[0] })
			if i < 0 {
				return base.WithRemedy(fmt.Errorf("no machines of %q found in %s", args[0], a.machinesDir()), "see: "+a.FormatCommand("local list"))
			}
			if err := a.removeUnknownCluster(ctx, all[i]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Stdout, "removed the machines of %s\n", all[i].InfraID)
			return err
		}),
	}
}

func (a commands) removeUnknownCluster(ctx context.Context, c localCluster) error {
	switch {
	case c.Of != "":
		return fmt.Errorf("%s is known to the hub as %s: delete that object instead", c.InfraID, c.Of)
	case c.Running > 0:
		return base.WithRemedy(fmt.Errorf("machines of %s are running (%d)", c.InfraID, c.Running), "hotspare up stops them within a minute: try again then")
	}
	// Move the folder away first: a machine exists as long as its folder does.
	trash, err := os.MkdirTemp(a.machinesDir(), ".removed-")
	if err == nil {
		err = os.Rename(filepath.Join(a.machinesDir(), c.InfraID), filepath.Join(trash, c.InfraID))
	}
	if err == nil {
		err = errors.Join(removeMachines(ctx, trash), os.RemoveAll(filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "installs", c.InfraID)))
	}
	if err != nil {
		return fmt.Errorf("removing the machines of %s: %w", c.InfraID, err)
	}
	return nil
}

func (a commands) machinesDir() string {
	return filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "machines")
}

// listLocalClusters returns the clusters in the data folder, by infraID.
func (a commands) listLocalClusters(ctx context.Context, h *base.Hub) ([]localCluster, error) {
	entries, err := os.ReadDir(a.machinesDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	known, err := infraid.ListReferenced(ctx, h)
	if err != nil {
		return nil, err
	}
	all := []localCluster{}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		dir := filepath.Join(a.machinesDir(), e.Name())
		machines, err := machine.LoadConfigs(dir)
		if err != nil {
			return nil, err
		}
		c := localCluster{InfraID: e.Name(), Of: known[e.Name()], Machines: len(machines)}
		for _, m := range machines {
			runs, err := isLockHeld(machine.LockPath(filepath.Join(dir, m.Name)))
			if err != nil {
				return nil, err
			}
			if runs {
				c.Running++
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// isLockHeld reports whether a process holds a lock. A machine holds its lock while it runs.
func isLockHeld(path string) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := flock.Acquire(path)
	var by *flock.LockedError
	if errors.As(err, &by) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Release()
}

// removeMachines removes a folder of machines, whose containers may have written files that belong to
// other users.
func removeMachines(ctx context.Context, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	return usernamespace.Remover{Command: []string{self}}.RemoveAll(ctx, dir)
}
