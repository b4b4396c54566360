package doctor

import "testing"

func TestFindingsAboutContainers(t *testing.T) {
	checkFindings(t, map[string]findingCase{
		"another user": {
			change: asUser,
			want:   []string{"Note User: user you: pods have no limits of memory, CPU and processes"},
		},
		"a user without a name": {
			change: both(asUser, func(f *Facts) { f.UserName = "" }),
			want:   []string{"Note User: user 1000: pods have no limits of memory, CPU and processes"},
		},
		"a user who cannot create namespaces": {
			change:   both(asUser, func(f *Facts) { f.UserNamespaceError = "operation not permitted" }),
			want:     []string{"Problem User: user you cannot create a user namespace: operation not permitted"},
			obstacle: "user you cannot create a user namespace: start hotspare as root, or let users create namespaces",
		},
		"a user whom AppArmor restricts": {
			change:   both(asUser, func(f *Facts) { f.AppArmorRestricted = true }),
			want:     []string{"Problem User: user you: AppArmor lets only root mount file systems in a user namespace"},
			obstacle: `AppArmor lets only root mount file systems in a user namespace: run "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"`,
		},
		"root where AppArmor restricts users": {change: func(f *Facts) { f.AppArmorRestricted = true }},
		"a user with few subordinate user IDs": {
			change:   both(asUser, func(f *Facts) { f.SubordinateUsers.Value = 65534 }),
			want:     []string{"Problem User: user you has fewer than 65535 subordinate user IDs"},
			obstacle: `user you has fewer than 65535 subordinate user IDs: run "sudo usermod --add-subuids 100000-165535 you"`,
		},
		"a user without subordinate group IDs": {
			change:   both(asUser, func(f *Facts) { f.SubordinateGroups = Quantity{Err: "open /etc/subgid: no such file or directory"} }),
			want:     []string{"Problem User: user you has fewer than 65535 subordinate group IDs"},
			obstacle: `user you has fewer than 65535 subordinate group IDs: run "sudo usermod --add-subgids 100000-165535 you"`,
		},
		"a user without newgidmap": {
			change:   both(asUser, without(NewGIDMap)),
			want:     []string{"Note User: user you: pods have no limits of memory, CPU and processes", "Problem ID maps: newgidmap is missing"},
			obstacle: `newgidmap is missing: run "sudo apt-get install uidmap"`,
		},
		"root without newuidmap": {change: without(NewUIDMap, NewGIDMap)},
		"a user with an old kernel": {
			change: both(asUser, func(f *Facts) { f.Kernel = "5.10.0-30-amd64" }),
			want: []string{
				"Note User: user you: pods have no limits of memory, CPU and processes",
				"Problem overlay: kernel 5.10.0-30-amd64 lets only root use the file system overlay",
			},
			obstacle: "kernel 5.10.0-30-amd64 lets only root use the file system overlay: use kernel 5.11 or newer, or start hotspare as root",
		},
		"a user who cannot open the TUN device": {
			change: both(asUser, func(f *Facts) { f.TUNError = "permission denied" }),
			want: []string{
				"Note User: user you: pods have no limits of memory, CPU and processes",
				"Problem TUN device: /dev/net/tun cannot be opened: permission denied",
			},
			obstacle: `/dev/net/tun cannot be opened: run "sudo chmod 666 /dev/net/tun"`,
		},
		"root of a user namespace": {
			change:   func(f *Facts) { f.UserNamespace = true },
			want:     []string{"Problem User: root of a user namespace: real pods need root of the machine, or an ordinary user"},
			obstacle: "hotspare runs as root of a user namespace only: start hotspare as root of the machine",
		},
		"root without CAP_SYS_ADMIN": {
			change:   func(f *Facts) { f.Capabilities.Effective &^= 1 << 21 },
			want:     []string{"Problem Capabilities: root lacks CAP_SYS_ADMIN"},
			obstacle: "root lacks CAP_SYS_ADMIN: start hotspare with CAP_SYS_ADMIN",
		},
		"root with the capabilities of a container": {
			change:   func(f *Facts) { f.Capabilities.Effective = 0xa80425fb },
			want:     []string{"Problem Capabilities: root lacks CAP_SYS_ADMIN and CAP_NET_ADMIN"},
			obstacle: "root lacks CAP_SYS_ADMIN and CAP_NET_ADMIN: start hotspare with CAP_SYS_ADMIN and CAP_NET_ADMIN",
		},
		"root without CAP_SYS_RESOURCE": {
			change: func(f *Facts) { f.Capabilities.Effective = 0x1fffeffffff },
			want:   []string{"Note Capabilities: root lacks CAP_SYS_RESOURCE: out-of-memory scores of pods are not set"},
		},
		"unknown capabilities": {
			change: func(f *Facts) { f.Capabilities = Capabilities{Err: "/proc/self/status has no CapEff"} },
			want:   []string{"Note Capabilities: they cannot be read: /proc/self/status has no CapEff"},
		},
		"cgroups of version 1": {
			change: func(f *Facts) {
				f.Cgroups = Cgroups{Version: 1, Controllers: []string{"cpu", "cpuacct", "cpuset", "devices", "memory", "pids"}}
			},
		},
		"cgroups of version 1 without two controllers": {
			change: func(f *Facts) {
				f.Cgroups = Cgroups{Version: 1, Controllers: []string{"cpu", "cpuset", "memory", "pids"}}
			},
			want:     []string{"Problem cgroups: version 1 without the controllers cpuacct and devices"},
			obstacle: "the cgroups lack the controllers cpuacct and devices: turn on the controllers cpuacct and devices with kernel parameters",
		},
		"cgroups of version 2 without memory": {
			change:   func(f *Facts) { f.Cgroups.Controllers = []string{"cpuset", "cpu", "io", "pids"} },
			want:     []string{"Problem cgroups: version 2 without the controller memory"},
			obstacle: "the cgroups lack the controller memory: turn on the controller memory with kernel parameters",
		},
		"cgroups without pids": {
			change: func(f *Facts) { f.Cgroups.Controllers = []string{"cpuset", "cpu", "memory"} },
			want:   []string{"Note cgroups: version 2 without the controller pids: the number of processes of a pod is not limited"},
		},
		"no cgroups": {
			change:   func(f *Facts) { f.Cgroups = Cgroups{} },
			want:     []string{"Problem cgroups: no cgroups are mounted in /sys/fs/cgroup"},
			obstacle: `no cgroups are mounted in /sys/fs/cgroup: run "mount -t cgroup2 cgroup2 /sys/fs/cgroup"`,
		},
		"cgroups are read-only": {
			change:   func(f *Facts) { f.Cgroups.ReadOnly = true },
			want:     []string{"Problem cgroups: version 2, mounted read-only, as in a container without privileges"},
			obstacle: "the cgroups are mounted read-only: mount them writable",
		},
		"cgroups of a container with processes in its group": {
			change:   func(f *Facts) { f.Cgroups.Withheld = []string{"cpuset", "cpu", "io", "memory", "pids"} },
			want:     []string{"Problem cgroups: version 2, but the group /sys/fs/cgroup contains processes and cannot pass its controllers on, as in a container"},
			obstacle: "the group /sys/fs/cgroup contains processes and cannot pass its controllers on: start the container with --cgroupns=host",
		},
		"cgroups of a container that withholds what pods do not need": {change: func(f *Facts) { f.Cgroups.Withheld = []string{"io"} }},
		"cgroups of a container, without root": {
			change: both(asUser, func(f *Facts) { f.Cgroups.Withheld = []string{"memory"} }),
			want:   []string{"Note User: user you: pods have no limits of memory, CPU and processes"},
		},
		"unknown cgroups": {
			change:   func(f *Facts) { f.Cgroups = Cgroups{Err: "open /proc/self/mountinfo: no such file or directory"} },
			want:     []string{"Problem cgroups: they cannot be read: open /proc/self/mountinfo: no such file or directory"},
			obstacle: "the cgroups cannot be read: mount /proc and /sys",
		},
		"a kernel without overlay": {
			change:   func(f *Facts) { f.Overlay = Unsupported },
			want:     []string{"Problem overlay: the kernel has no file system overlay"},
			obstacle: "the kernel has no file system overlay: use a kernel with overlay",
		},
		"a kernel that may have overlay": {
			change: func(f *Facts) { f.Overlay = "" },
			want:   []string{"Note overlay: the file system overlay is not loaded, and may be missing"},
		},
		"the data folder is on an overlay": {
			change:   func(f *Facts) { f.DataFolder.FileSystem = "overlay" },
			want:     []string{"Problem overlay: images cannot be stored on overlay, the file system of /root/.hotspare"},
			obstacle: "images cannot be stored on overlay, the file system of /root/.hotspare: choose another data folder with --data-dir",
		},
		"a read-only data folder on an overlay": {
			change: func(f *Facts) { f.DataFolder.FileSystem, f.DataFolder.Err = "overlay", "read-only file system" },
			want: []string{
				"Problem Data folder: /root/.hotspare cannot be used: read-only file system",
				"Problem overlay: images cannot be stored on overlay, the file system of /root/.hotspare",
			},
			obstacle: "/root/.hotspare cannot be used as the data folder (read-only file system), " +
				"and images cannot be stored on overlay, the file system of /root/.hotspare: choose another data folder with --data-dir",
		},
		"the data folder is on an unknown file system": {change: func(f *Facts) { f.DataFolder.FileSystem = "" }},
		"few instances of inotify": {
			change: func(f *Facts) { f.InotifyInstances.Value = 127 },
			want:   []string{`Note inotify: max_user_instances is 127: containers may report "too many open files"`},
		},
		"the usual instances of inotify": {
			change: both(asUser, func(f *Facts) { f.InotifyInstances.Value = 128 }),
			want: []string{
				"Note User: user you: pods have no limits of memory, CPU and processes",
				"Note inotify: max_user_instances is 128: a cluster with one worker takes about 15",
			},
		},
		"the usual instances of inotify with cgroups of version 2": {
			change: func(f *Facts) { f.Cgroups.Version, f.InotifyInstances.Value = 2, 128 },
			want: []string{
				"Note inotify: max_user_instances is 128: a cluster with one worker takes about 15, and with cgroups of version 2 each container takes one",
			},
		},
		"many instances of inotify with cgroups of version 2": {change: func(f *Facts) { f.Cgroups.Version, f.InotifyInstances.Value = 2, 1024 }},
		"few watches of inotify": {
			change: func(f *Facts) { f.InotifyWatches.Value = 8191 },
			want:   []string{`Note inotify: max_user_watches is 8191: containers may report "too many open files"`},
		},
		"an unknown limit of inotify": {
			change: func(f *Facts) { f.InotifyWatches = Quantity{Err: "no such file or directory"} },
			want:   []string{"Note inotify: max_user_watches cannot be read: no such file or directory"},
		},
		"no TUN device": {
			change:   func(f *Facts) { f.TUNError = "no such file or directory" },
			want:     []string{"Problem TUN device: /dev/net/tun cannot be opened: no such file or directory"},
			obstacle: `/dev/net/tun cannot be opened: run "modprobe tun"`,
		},
		"a kernel without veth": {
			change:   func(f *Facts) { f.Veth, f.VethError = Unsupported, "operation not supported" },
			want:     []string{"Problem veth: the kernel cannot create veth interfaces: operation not supported"},
			obstacle: `the kernel cannot create veth interfaces: run "modprobe veth"`,
		},
		"a kernel that may have veth": {
			change: func(f *Facts) { f.Veth = "" },
			want:   []string{"Note veth: hotspare could not try it: the kernel may not support it"},
		},
		"three causes": {
			change: func(f *Facts) {
				f.UserNamespace, f.Cgroups.ReadOnly, f.Overlay = true, true, Unsupported
			},
			want: []string{
				"Problem User: root of a user namespace: real pods need root of the machine, or an ordinary user",
				"Problem cgroups: version 2, mounted read-only, as in a container without privileges",
				"Problem overlay: the kernel has no file system overlay",
			},
			obstacle: "hotspare runs as root of a user namespace only, the cgroups are mounted read-only, and the kernel has no file system overlay: " +
				"start hotspare as root of the machine, mount them writable, and use a kernel with overlay",
		},
	})
}

func TestOnlyWhoCanConfigureANetworkIsolatesPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   bool
	}{
		"root":                                 {func(*Facts) {}, true},
		"root without CAP_NET_ADMIN":           {func(f *Facts) { f.Capabilities.Effective &^= 1 << 12 }, false},
		"root without CAP_SYS_ADMIN":           {func(f *Facts) { f.Capabilities.Effective &^= 1 << 21 }, false},
		"another user":                         {asUser, true},
		"a user who cannot create a namespace": {both(asUser, func(f *Facts) { f.UserNamespaceError = "operation not permitted" }), false},
		"a user whom AppArmor restricts":       {both(asUser, func(f *Facts) { f.AppArmorRestricted = true }), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := capable()
			c.change(&f)
			if got := f.CanIsolate(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
