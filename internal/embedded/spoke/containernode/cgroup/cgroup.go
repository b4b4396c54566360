// Package cgroup moves the process of a machine into control groups of its own.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// podControllers are the controllers of version 2 with which the kubelet and runc limit pods. In a mixed setup, version
// 1 has them, and the hierarchy of version 2 has none of them.
var podControllers = []string{"cpu", "cpuset", "memory", "pids"}

// A tree creates and configures groups.
type tree interface {
	Mkdir(path string) error
	Write(path, content string) error
}

// kernelTree is the tree of the kernel, which creates the files of a new group.
type kernelTree struct{}

// Mkdir creates a group.
func (kernelTree) Mkdir(path string) error { return os.Mkdir(path, 0o755) }

// Write writes into a file of a group.
func (kernelTree) Write(path, content string) error {
	return os.WriteFile(path, []byte(content), 0o600)
}

// Enter moves this process into the group at path of a hierarchy. It creates the group.
func Enter(h machine.CgroupHierarchy, path string) error { return enterGroup(kernelTree{}, h, path) }

// LeaveRoot moves this process out of the root of its namespace in a version 2 hierarchy: a group with processes cannot
// have children with controllers.
func LeaveRoot(root string) error { return leaveRoot(kernelTree{}, root) }

// enterAttempts limits the attempts to enter a group. The removal of another machine removes the parent of all groups if
// it is empty, which it also is between its creation and that of its first child: see machine.RemoveCgroups.
const enterAttempts = 10

func enterGroup(t tree, h machine.CgroupHierarchy, path string) error {
	var err error
	for range enterAttempts {
		if err = enterOnce(t, h, path); err == nil {
			return nil
		}
	}
	return err
}

func enterOnce(t tree, h machine.CgroupHierarchy, path string) error {
	at := h.Path
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		parent := at
		at = filepath.Join(at, part)
		if err := createGroup(t, h, parent, at); err != nil {
			return err
		}
	}
	if h.Version2 {
		if err := checkControllers(h.Path, at); err != nil {
			return err
		}
	}
	return joinGroup(t, at)
}

// createGroup creates a group whose children can have the controllers of its parent.
func createGroup(t tree, h machine.CgroupHierarchy, parent, group string) error {
	if h.Version2 {
		if err := delegateControllers(t, parent); err != nil {
			return err
		}
	}
	if err := t.Mkdir(group); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if h.Version2 {
		return nil // without processors of its own, a group has those of its parent
	}
	return inheritCPUSet(t, parent, group)
}

// joinGroup moves this process into the group at path.
func joinGroup(t tree, path string) error { return t.Write(filepath.Join(path, "cgroup.procs"), "0") }

// inheritCPUSet gives a new group of the version 1 controller cpuset the processors and memory of
// its parent: it has none, and no process can join it before it has some.
func inheritCPUSet(t tree, parent, group string) error {
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
		if err := t.Write(filepath.Join(group, file), string(values)); err != nil {
			return err
		}
	}
	return nil
}

// delegateControllers lets the children of a version 2 group use its controllers. A controller that
// cannot be delegated, such as one that a version 1 hierarchy uses, is left out.
func delegateControllers(t tree, group string) error {
	controllers, err := readControllers(group)
	if err != nil {
		return err
	}
	for _, controller := range controllers {
		_ = t.Write(filepath.Join(group, "cgroup.subtree_control"), "+"+controller) // checkControllers finds those that pods need
	}
	return nil
}

// checkControllers returns an error if a version 2 group lacks controllers of its root with which pods are limited. The
// kernel refuses to delegate them while the root has processes, unless it is the root of the computer: the root of a
// container's namespace contains the processes of the container.
func checkControllers(root, group string) error {
	available, err := readControllers(root)
	if err != nil {
		return err
	}
	has, err := readControllers(group)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(podControllers), func(c string) bool { return !slices.Contains(available, c) || slices.Contains(has, c) })
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the group %s lacks the controllers %s, which the group %s does not pass on: if hotspare runs in a container, "+
		"start the container with --cgroupns=host, or move all processes in %s to a child group before you start hotspare",
		group, strings.Join(missing, ", "), root, filepath.Join(root, "cgroup.procs"))
}

func readControllers(group string) ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	return strings.Fields(string(raw)), err
}

func leaveRoot(t tree, root string) error {
	leaf := filepath.Join(root, "machine")
	if err := t.Mkdir(leaf); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := joinGroup(t, leaf); err != nil {
		return err
	}
	return delegateControllers(t, root)
}
