package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cgroupParent is the control group that contains the groups of all machines on this computer.
const cgroupParent = "hotspare"

// Cgroup returns the path, in each hierarchy of control groups, of the group of the machine called
// name. Groups are this computer's only record of a machine that outlives its process.
func Cgroup(name string) string { return filepath.Join("/", cgroupParent, name) }

// A CgroupHierarchy is a mounted hierarchy of control groups.
type CgroupHierarchy struct {
	Path string
	// Controllers are the controllers of a version 1 hierarchy as its mount option names them;
	// empty for version 2.
	Controllers string
	Version2    bool
}

// CgroupHierarchies returns the hierarchies in a table of mounts such as /proc/self/mounts.
func CgroupHierarchies(mounts string) []CgroupHierarchy {
	var found []CgroupHierarchy
	lines := bufio.NewScanner(strings.NewReader(mounts))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			continue
		}
		switch fields[2] {
		case "cgroup2":
			found = append(found, CgroupHierarchy{Path: fields[1], Version2: true})
		case "cgroup":
			found = append(found, CgroupHierarchy{Path: fields[1], Controllers: controllersOf(fields[3])})
		}
	}
	return found
}

// mountOptions are options of all mounts; the others of a version 1 hierarchy name its controllers.
var mountOptions = []string{"rw", "ro", "nosuid", "nodev", "noexec", "relatime", "noatime", "xattr", "clone_children"}

func controllersOf(options string) string {
	all := strings.Split(options, ",")
	return strings.Join(slices.DeleteFunc(all, func(o string) bool {
		return slices.Contains(mountOptions, o) || strings.HasPrefix(o, "release_agent=")
	}), ",")
}

// RemoveCgroups removes the groups of the machine called name, whose processes have ended. A
// machine without groups is success.
func RemoveCgroups(name string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not Linux
	}
	if err != nil {
		return fmt.Errorf("removing the control groups of %s: %w", name, err)
	}
	for _, h := range CgroupHierarchies(string(mounts)) {
		if err := removeTree(filepath.Join(h.Path, Cgroup(name))); err != nil {
			return fmt.Errorf("removing the control groups of %s: %w", name, err)
		}
		// It stays if it has groups of other machines. A machine that is about to create its group creates it again.
		_ = os.Remove(filepath.Join(h.Path, cgroupParent))
	}
	return nil
}

// removeTree removes a folder of folders. The files in it are the kernel's, and vanish with it.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}
