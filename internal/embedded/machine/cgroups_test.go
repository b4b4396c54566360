package machine

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestCgroupHierarchiesOfATableOfMounts(t *testing.T) {
	const mounts = `tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,nodev,noexec,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,release_agent=/lib/x,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime,nsdelegate 0 0
broken line
/dev/vda / ext4 rw 0 0
`
	want := []CgroupHierarchy{
		{Path: "/sys/fs/cgroup/cpu,cpuacct", Controllers: "cpu,cpuacct"},
		{Path: "/sys/fs/cgroup/systemd", Controllers: "name=systemd"},
		{Path: "/sys/fs/cgroup/unified", Version2: true},
	}
	if got := CgroupHierarchies(mounts); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestATreeOfGroupsIsRemoved(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "worker", "kubepods", "burstable"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing left
		if err := removeTree(filepath.Join(root, "worker")); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(root)
	if err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAGroupWithProcessesIsAnError(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "worker")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// A folder that is not empty is what rmdir refuses, as a group with processes.
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(dir); err == nil {
		t.Error("no error")
	}
}
