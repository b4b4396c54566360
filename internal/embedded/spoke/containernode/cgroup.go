//go:build linux

package containernode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hotspare.io/hotspare/internal/embedded/machine"
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
		if err := enterCgroup(h, machine.Cgroup(name)); err != nil {
			return nil, fmt.Errorf("creating a control group in %s: %w", h.Path, err)
		}
	}
	return all, nil
}

func enterCgroup(h machine.CgroupHierarchy, path string) error {
	at := h.Path
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if h.Version2 {
			if err := delegateControllers(at); err != nil {
				return err
			}
		}
		parent := at
		at = filepath.Join(at, part)
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := inheritCPUSet(parent, at); err != nil {
			return err
		}
	}
	return joinCgroup(at)
}

// joinCgroup moves this process into the group at path.
func joinCgroup(path string) error {
	return os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte("0"), 0o600)
}

// inheritCPUSet gives a new group of the version 1 controller cpuset the processors and memory of
// its parent: it has none, and no process can join it before it has some.
func inheritCPUSet(parent, group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(group, file))
		if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(own)) != "" {
			continue
		}
		if err != nil {
			return err
		}
		values, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, file), values, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// delegateControllers lets the children of a version 2 group use its controllers. A controller that
// cannot be delegated, such as one that a version 1 hierarchy uses, is left out.
func delegateControllers(group string) error {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		_ = os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
	}
	return nil
}

// leaveRootCgroup moves this process out of the root of its namespace in a version 2 hierarchy: a
// group with processes cannot have children with controllers.
func leaveRootCgroup(root string) error {
	leaf := filepath.Join(root, "machine")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := joinCgroup(leaf); err != nil {
		return err
	}
	return delegateControllers(root)
}
