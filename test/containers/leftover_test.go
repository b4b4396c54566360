//go:build containers

package containers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// leftovers returns what the machines of the hub on the folder dir, or the machine in that folder, have left on this computer:
// processes, mounts and control groups. There are no interfaces and rules to look for: they are in
// namespaces, which exist only as long as their processes.
func leftovers(dir string) []string {
	found := processesOf(dir)
	machines, _ := filepath.Glob(filepath.Join(dir, "machines", "*", "*"))
	if filepath.Base(filepath.Dir(filepath.Dir(dir))) == "machines" {
		machines = []string{dir} // the folder of one machine
	}
	for _, m := range machines {
		groups, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", "hotspare", filepath.Base(m)))
		unified, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", "hotspare", filepath.Base(m)))
		for _, g := range append(groups, unified...) {
			found = append(found, "control group "+g)
		}
	}
	return found
}

// processesOf returns the processes that name the folder dir, or have mounts of it.
func processesOf(dir string) []string {
	var found []string
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		line, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err == nil && strings.Contains(string(line), dir) {
			found = append(found, "process "+filepath.Base(p)+": "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			continue
		}
		mounts, err := os.ReadFile(filepath.Join(p, "mountinfo"))
		if err == nil && strings.Contains(string(mounts), dir) {
			name, _ := os.ReadFile(filepath.Join(p, "comm"))
			found = append(found, "a process in the mounts of a machine: "+filepath.Base(p)+" "+strings.TrimSpace(string(name)))
		}
	}
	return found
}
