package hostfacts

import (
	"errors"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/doctor"
)

// cgroupFolder is where programs look for cgroups: with version 2 if it is mounted there itself.
const cgroupFolder = "/sys/fs/cgroup"

// controllersOfVersion1 are the options of a mount of cgroups that are controllers.
var controllersOfVersion1 = []string{
	"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory", "net_cls", "net_prio", "perf_event", "pids", "rdma",
}

func (h host) readCgroups() doctor.Cgroups {
	text, err := h.readFile("/proc/self/mountinfo")
	if err != nil {
		return doctor.Cgroups{Err: err.Error()}
	}
	var one, two doctor.Cgroups
	for line := range strings.Lines(text) {
		m, ok := parseMount(line)
		switch {
		case !ok:
		case m.point == cgroupFolder:
			// A later mount covers those at the same place and below it.
			one, two = doctor.Cgroups{}, doctor.Cgroups{}
			if m.fileSystem == "cgroup2" {
				two = doctor.Cgroups{Version: 2, ReadOnly: m.readOnly}
			}
		case m.fileSystem == "cgroup":
			one = addHierarchy(one, m)
		}
	}
	if two.Version == 0 {
		return one
	}
	controllers, err := h.readFile(cgroupFolder + "/cgroup.controllers")
	if err != nil {
		return doctor.Cgroups{Err: err.Error()}
	}
	two.Controllers = strings.Fields(controllers)
	two.Withheld = h.readWithheld(two.Controllers)
	return two
}

// readWithheld returns the controllers that the group in cgroupFolder cannot pass on: those that it has not passed on
// yet while it contains processes. The root of the computer has no file cgroup.type and can always pass them on.
func (h host) readWithheld(controllers []string) []string {
	_, err := h.readFile(cgroupFolder + "/cgroup.type")
	processes, processesErr := h.readFile(cgroupFolder + "/cgroup.procs")
	passed, passedErr := h.readFile(cgroupFolder + "/cgroup.subtree_control")
	if errors.Join(err, processesErr, passedErr) != nil || strings.TrimSpace(processes) == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(controllers), func(c string) bool { return slices.Contains(strings.Fields(passed), c) })
}

// addHierarchy adds the controllers of a mounted hierarchy of version 1. A hierarchy without
// controllers, such as that of systemd, changes nothing.
func addHierarchy(c doctor.Cgroups, m mount) doctor.Cgroups {
	for _, option := range m.superOptions {
		if slices.Contains(controllersOfVersion1, option) {
			c.Version, c.ReadOnly = 1, c.ReadOnly || m.readOnly
			c.Controllers = append(c.Controllers, option)
		}
	}
	return c
}

// mount is a line of mountinfo: see proc_pid_mountinfo(5).
type mount struct {
	point, fileSystem string
	superOptions      []string
	readOnly          bool
}

// parseMount reports whether the line is complete.
func parseMount(line string) (mount, bool) {
	fields := strings.Fields(line)
	// Six fields come first, then optional ones, then a hyphen and three more.
	hyphen := slices.Index(fields, "-")
	if hyphen < 6 || len(fields) < hyphen+4 {
		return mount{}, false
	}
	super := strings.Split(fields[hyphen+3], ",")
	return mount{
		point:        fields[4],
		fileSystem:   fields[hyphen+1],
		superOptions: super,
		readOnly:     slices.Contains(strings.Split(fields[5], ","), "ro") || slices.Contains(super, "ro"),
	}, true
}
