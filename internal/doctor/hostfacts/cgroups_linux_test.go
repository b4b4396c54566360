package hostfacts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/doctor"
)

const mountsOfVersion2 = `22 27 0:21 / /proc rw,relatime - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
`

const mountsOfVersion1 = `31 23 0:28 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime master:1 propagate_from:2 - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`

func TestCgroups(t *testing.T) {
	ofVersion1 := doctor.Cgroups{Version: 1, Controllers: []string{"cpu", "cpuacct", "cpuset", "memory", "devices"}}
	readOnly1 := ofVersion1
	readOnly1.ReadOnly = true
	for name, c := range map[string]struct {
		mounts, controllers string
		want                doctor.Cgroups
	}{
		"version 1, beside it version 2 without controllers": {mountsOfVersion1, "hugetlb", ofVersion1},
		"version 1, one hierarchy read-only":                 {strings.Replace(mountsOfVersion1, "/memory rw", "/memory ro", 1), "", readOnly1},
		"version 2":                                          {mountsOfVersion2, "cpu memory\n", doctor.Cgroups{Version: 2, Controllers: []string{"cpu", "memory"}}},
		"version 2, mounted read-only":                       {strings.Replace(mountsOfVersion2, "cgroup rw,", "cgroup ro,", 1), "cpu\n", doctor.Cgroups{Version: 2, Controllers: []string{"cpu"}, ReadOnly: true}},
		"version 2, a read-only file system":                 {strings.Replace(mountsOfVersion2, "cgroup2 rw,", "cgroup2 ro,", 1), "cpu\n", doctor.Cgroups{Version: 2, Controllers: []string{"cpu"}, ReadOnly: true}},
		"version 2 without controllers":                      {mountsOfVersion2, "\n", doctor.Cgroups{Version: 2, Controllers: []string{}}},
		"version 2 covers version 1":                         {mountsOfVersion1 + mountsOfVersion2, "cpu\n", doctor.Cgroups{Version: 2, Controllers: []string{"cpu"}}},
		"version 1 covers version 2":                         {mountsOfVersion2 + mountsOfVersion1, "cpu\n", ofVersion1},
		"a folder covers version 1":                          {mountsOfVersion1 + "50 23 0:50 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "cpu\n", doctor.Cgroups{}},
		"a line without the options of the mount":            {"31 23 0:28 / /sys/fs/cgroup - cgroup2 cgroup2 rw\n", "cpu", doctor.Cgroups{}},
		"no hierarchy":                                       {"22 27 0:21 / /proc rw - proc proc rw\n", "", doctor.Cgroups{}},
		"only a hierarchy without controllers":               {"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n", "", doctor.Cgroups{}},
		"version 2 elsewhere":                                {"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "cpu", doctor.Cgroups{}},
		"an empty file":                                      {"", "", doctor.Cgroups{}},
		"garbage, and lines that are cut off":                {"\x00\x1b\n31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2\n31 23 0:28 - / x cgroup2 y z\n-\n- - - - - - - - - -\n", "cpu", doctor.Cgroups{}},
		"a folder whose name begins like another":            {"31 23 0:28 / /sys/fs/cgroup-old rw - cgroup2 cgroup2 rw\n", "cpu", doctor.Cgroups{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, map[string]any{"proc/self/mountinfo": file(c.mounts), "sys/fs/cgroup/cgroup.controllers": file(c.controllers)})
			if diff := cmp.Diff(c.want, h.readCgroups()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	h := newHost(t, map[string]any{"proc/self/mountinfo": file(mountsOfVersion2)})
	if got := h.readCgroups(); !strings.Contains(got.Err, "cgroup.controllers") || got.Version != 0 {
		t.Errorf("without a list of controllers: %+v", got)
	}
}

func TestControllersThatAGroupWithholds(t *testing.T) {
	for name, c := range map[string]struct {
		groupType, processes, passed string
		want                         string
	}{
		"a container with processes":          {"domain\n", "1\n42\n", "\n", "cpu memory"},
		"a container that passes one on":      {"domain\n", "1\n", "cpu\n", "memory"},
		"a container that passes all on":      {"domain\n", "1\n", "memory cpu\n", ""},
		"a container without processes in it": {"domain\n", "", "", ""},
		"the root of the computer":            {"", "1\n2\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			const group = "sys/fs/cgroup/"
			files := map[string]any{
				"proc/self/mountinfo": file(mountsOfVersion2), group + "cgroup.controllers": file("cpu memory\n"),
				group + "cgroup.procs": file(c.processes), group + "cgroup.subtree_control": file(c.passed),
			}
			if c.groupType != "" {
				files[group+"cgroup.type"] = file(c.groupType)
			}
			if got := strings.Join(newHost(t, files).readCgroups().Withheld, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
