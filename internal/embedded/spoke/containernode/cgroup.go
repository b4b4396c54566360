//go:build linux

package containernode

import (
	"errors"
	"fmt"
	"os"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/containernode/cgroup"
)

// enterCgroups moves this process into the machine's group of each hierarchy and returns the
// hierarchies. It creates the groups.
func enterCgroups(name string) ([]machine.CgroupHierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("reading mounts: %w", err)
	}
	all := machine.CgroupHierarchies(string(mounts))
	if len(all) == 0 {
		return nil, errors.New("no control groups are mounted: mount them at /sys/fs/cgroup")
	}
	for _, h := range all {
		if err := cgroup.Enter(h, machine.Cgroup(name)); err != nil {
			return nil, fmt.Errorf("creating a control group in %s: %w", h.Path, err)
		}
	}
	return all, nil
}
