package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// fakeTree does what the kernel does in a folder of files.
type fakeTree struct {
	t        *testing.T
	root     string
	version2 bool
	// busy is a group whose processes keep it from delegating controllers.
	busy string
	// beforeMkdir, if not nil, is called before a group is created.
	beforeMkdir func(path string)
}

// newTree returns a tree with the root of a hierarchy, which has these files.
func newTree(t *testing.T, version2 bool, files map[string]string) (*fakeTree, machine.CgroupHierarchy) {
	t.Helper()
	root := t.TempDir()
	tree := &fakeTree{t: t, root: root, version2: version2}
	tree.put(root, files)
	return tree, machine.CgroupHierarchy{Path: root, Version2: version2}
}

func (f *fakeTree) put(group string, files map[string]string) {
	f.t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(group, name), []byte(content), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fakeTree) read(group, name string) string {
	f.t.Helper()
	raw, err := os.ReadFile(filepath.Join(group, name))
	if err != nil {
		f.t.Error(err)
	}
	return strings.TrimSpace(string(raw))
}

func (f *fakeTree) Mkdir(path string) error {
	if f.beforeMkdir != nil {
		f.beforeMkdir(path)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	if !f.version2 {
		if _, err := os.Stat(filepath.Join(parent, "cpuset.cpus")); err == nil {
			f.put(path, map[string]string{"cpuset.cpus": "\n", "cpuset.mems": "\n"})
		}
		return nil
	}
	controllers := f.read(parent, "cgroup.subtree_control")
	f.put(path, map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": ""})
	if slices.Contains(strings.Fields(controllers), "cpuset") {
		f.put(path, map[string]string{"cpuset.cpus": "\n", "cpuset.mems": "\n"})
	}
	return nil
}

func (f *fakeTree) Write(path, content string) error {
	group, name := filepath.Split(path)
	group = filepath.Clean(group)
	controller, delegates := strings.CutPrefix(content, "+")
	switch {
	case name == "cgroup.subtree_control" && delegates:
		if group == f.busy || controller == "used-by-version-1" {
			return syscall.EBUSY
		}
		given := strings.Fields(f.read(group, name))
		if !slices.Contains(given, controller) {
			given = append(given, controller)
		}
		content = strings.Join(given, " ")
		children, _ := filepath.Glob(filepath.Join(group, "*", "cgroup.controllers"))
		for _, child := range children {
			f.put(filepath.Dir(child), map[string]string{"cgroup.controllers": content})
		}
	case name == "cgroup.procs" && f.version2:
		// Only the root of the computer may have processes and pass controllers on: see "No Internal Process
		// Constraint" in the kernel's documentation.
		if given, err := os.ReadFile(filepath.Join(group, "cgroup.subtree_control")); group != f.root && err == nil && len(strings.TrimSpace(string(given))) > 0 {
			return syscall.EBUSY
		}
	case name == "cgroup.procs":
		if cpus, err := os.ReadFile(filepath.Join(group, "cpuset.cpus")); err == nil && strings.TrimSpace(string(cpus)) == "" {
			return syscall.ENOSPC
		}
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// rootOfVersion2 returns the files of the root of this computer: it has no cpuset.cpus.
func rootOfVersion2() map[string]string {
	return map[string]string{"cgroup.controllers": "cpuset cpu io memory pids used-by-version-1\n", "cgroup.subtree_control": ""}
}

func TestAProcessJoinsAGroupOfVersion2(t *testing.T) {
	tree, h := newTree(t, true, rootOfVersion2())
	for range 2 { // the second time, the groups exist
		if err := enterGroup(tree, h, "/hotspare/worker"); err != nil {
			t.Fatal(err)
		}
	}
	group := filepath.Join(h.Path, "hotspare", "worker")
	if got := tree.read(group, "cgroup.procs"); got != "0" {
		t.Errorf("the group has the processes %q", got)
	}
	if got := tree.read(group, "cgroup.controllers"); got != "cpuset cpu io memory pids" {
		t.Errorf("the group has the controllers %q", got)
	}
	if got := tree.read(group, "cpuset.cpus"); got != "" {
		t.Errorf("the group is limited to the processors %q", got)
	}
}

func TestAProcessJoinsAGroupOfVersion1(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"the processors":     {"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"},
		"another controller": {},
	} {
		t.Run(name, func(t *testing.T) {
			tree, h := newTree(t, false, files)
			for range 2 {
				if err := enterGroup(tree, h, "/hotspare/worker"); err != nil {
					t.Fatal(err)
				}
			}
			group := filepath.Join(h.Path, "hotspare", "worker")
			if got := tree.read(group, "cgroup.procs"); got != "0" {
				t.Errorf("the group has the processes %q", got)
			}
			for file, want := range files {
				if got := tree.read(group, file); got != strings.TrimSpace(want) {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
		})
	}
}

func TestAGroupWithoutTheControllersOfItsRootIsAnError(t *testing.T) {
	tree, h := newTree(t, true, rootOfVersion2())
	tree.busy = h.Path
	err := enterGroup(tree, h, "/hotspare/worker")
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{filepath.Join(h.Path, "hotspare", "worker"), "cpu, cpuset, memory, pids", "--cgroupns=host"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q does not contain %q", err, part)
		}
	}
	if _, err := os.Stat(filepath.Join(h.Path, "hotspare", "worker", "cgroup.procs")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the process joined the group: %v", err)
	}
}

func TestAHierarchyBesideVersion1NeedsNoControllers(t *testing.T) {
	tree, h := newTree(t, true, map[string]string{"cgroup.controllers": "hugetlb\n", "cgroup.subtree_control": ""})
	tree.busy = h.Path
	if err := enterGroup(tree, h, "/hotspare/worker"); err != nil {
		t.Error(err)
	}
}

func TestTheParentMayBeRemovedMeanwhile(t *testing.T) {
	for name, again := range map[string]func(tree *fakeTree, parent string){
		"by the removal of another machine": func(*fakeTree, string) {},
		"and created by a third machine, which has not configured it yet": func(tree *fakeTree, parent string) {
			if err := tree.Mkdir(parent); err != nil {
				t.Error(err)
			}
		},
	} {
		for version, files := range map[string]map[string]string{
			"version 1": {"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"},
			"version 2": rootOfVersion2(),
		} {
			t.Run(name+", "+version, func(t *testing.T) {
				tree, h := newTree(t, version == "version 2", files)
				parent := filepath.Join(h.Path, "hotspare")
				tree.beforeMkdir = func(path string) {
					if path == parent {
						return
					}
					tree.beforeMkdir = nil
					if err := os.RemoveAll(parent); err != nil {
						t.Error(err)
					}
					again(tree, parent)
				}
				if err := enterGroup(tree, h, "/hotspare/worker"); err != nil {
					t.Fatal(err)
				}
				if got := tree.read(filepath.Join(parent, "worker"), "cgroup.procs"); got != "0" {
					t.Errorf("the group has the processes %q", got)
				}
			})
		}
	}
}

func TestTheRootOfANamespaceIsLeft(t *testing.T) {
	tree, h := newTree(t, true, rootOfVersion2())
	if err := leaveRoot(tree, h.Path); err != nil {
		t.Fatal(err)
	}
	if got := tree.read(filepath.Join(h.Path, "machine"), "cgroup.procs"); got != "0" {
		t.Errorf("the leaf has the processes %q", got)
	}
	if got := tree.read(h.Path, "cgroup.subtree_control"); got != "cpuset cpu io memory pids" {
		t.Errorf("the root delegates %q", got)
	}
}

// The machine of a hub that was killed leaves groups that pass controllers on to pods. The store of machines removes them
// before it starts the machine again.
func TestAProcessCannotJoinTheGroupOfAnEarlierOne(t *testing.T) {
	tree, h := newTree(t, true, rootOfVersion2())
	if err := enterGroup(tree, h, "/hotspare/worker"); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(h.Path, "hotspare", "worker")
	if err := leaveRoot(tree, group); err != nil { // it is the root of the machine's namespace
		t.Fatal(err)
	}
	if err := enterGroup(tree, h, "/hotspare/worker"); !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("the error is %v", err)
	}
	if err := os.RemoveAll(group); err != nil {
		t.Fatal(err)
	}
	if err := enterGroup(tree, h, "/hotspare/worker"); err != nil {
		t.Error(err)
	}
}
