package doctor

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// capable returns the facts about a machine on which all checks are OK.
func capable() Facts {
	return Facts{
		OS:           "linux",
		Distribution: Distribution{ID: "debian", Name: "Debian GNU/Linux 12 (bookworm)"},
		Kernel:       "6.1.0-18-amd64",
		Capabilities: Capabilities{Effective: 0x1ffffffffff},
		Programs: map[string]Program{
			Containerd:     {Path: "/usr/bin/containerd", Version: "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1"},
			ContainerdShim: {Path: "/usr/bin/containerd-shim-runc-v2"},
			CTR:            {Path: "/usr/bin/ctr"},
			Runc:           {Path: "/usr/sbin/runc", Version: "runc version 1.1.5+ds1"},
			IPTables:       {Path: "/usr/sbin/iptables", Version: "iptables v1.8.9 (nf_tables)"},
			NFT:            {Path: "/usr/sbin/nft", Version: "nftables v1.0.6 (Lester Gooch #5)"},
			NewUIDMap:      {Path: "/usr/bin/newuidmap"},
			NewGIDMap:      {Path: "/usr/bin/newgidmap"},
		},
		CNIFolders:       []CNIFolder{{Path: "/usr/lib/cni", Plugins: slices.Clone(CNIPlugins)}},
		Cgroups:          Cgroups{Version: 2, Controllers: []string{"cpuset", "cpu", "io", "memory", "pids"}},
		Overlay:          Supported,
		Veth:             Supported,
		InotifyInstances: Quantity{Value: 1024},
		InotifyWatches:   Quantity{Value: 8192},
		DataFolder:       DataFolder{Path: "/root/.hotspare", Exists: true, FileSystem: "ext4", Free: Quantity{Value: 40 * gigabyte}},
		Memory:           Quantity{Value: 8 * gigabyte},
		OpenFiles:        Quantity{Value: 20000},
	}
}

// without removes programs.
func without(names ...string) func(*Facts) {
	return func(f *Facts) {
		for _, name := range names {
			delete(f.Programs, name)
		}
	}
}

// prints sets what a program prints with --version.
func prints(name, line string) func(*Facts) {
	return func(f *Facts) { f.Programs[name] = Program{Path: f.Programs[name].Path, Version: line} }
}

// fails sets why a program does not print its version.
func fails(name, why string) func(*Facts) {
	return func(f *Facts) { f.Programs[name] = Program{Path: f.Programs[name].Path, Err: why} }
}

// lacksNAT sets why a program cannot use the table nat.
func lacksNAT(name, why string) func(*Facts) { return lacks(name, "the table nat", why) }

// lacks sets why a program cannot use a feature of the kernel.
func lacks(name, feature, why string) func(*Facts) {
	return func(f *Facts) {
		p := f.Programs[name]
		p.Lacks, p.LacksErr = feature, why
		f.Programs[name] = p
	}
}

func both(changes ...func(*Facts)) func(*Facts) {
	return func(f *Facts) {
		for _, change := range changes {
			change(f)
		}
	}
}

func onlyPlugins(names ...string) func(*Facts) {
	return func(f *Facts) { f.CNIFolders = []CNIFolder{{Path: "/opt/cni/bin", Plugins: names}} }
}

func asUser(f *Facts) {
	f.UserID, f.UserName, f.Capabilities = 1000, "you", Capabilities{}
	f.SubordinateUsers, f.SubordinateGroups = Quantity{Value: 65536}, Quantity{Value: 65536}
}

func allMissing(f *Facts) { f.Programs, f.CNIFolders = nil, nil }

func TestAMachineWithEverythingHasNoObstacle(t *testing.T) {
	f := capable()
	var checks []string
	for _, one := range Findings(f) {
		checks = append(checks, string(one.Needed)+" "+one.Check)
		if one.Level != OK || one.Remedy != nil {
			t.Errorf("%s is %s, with the remedy %v: %s", one.Check, one.Level, one.Remedy, one.Message)
		}
	}
	want := []string{
		"Hub System", "Hub Data folder", "Hub Memory", "Hub Open files", "Hub Loopback",
		"Containers User", "Containers Capabilities", "Containers containerd", "Containers runc", "Containers CNI plugins",
		"Containers Packet filter", "Containers cgroups", "Containers overlay", "Containers inotify", "Containers TUN device", "Containers veth",
	}
	if diff := cmp.Diff(want, checks); diff != "" {
		t.Errorf("the checks differ (-want +got):\n%s", diff)
	}
	if got := ContainersObstacle(f); got != "" {
		t.Errorf("obstacle %q", got)
	}
}

// findingCase has the findings that are not OK, as LEVEL CHECK: MESSAGE, and the sentence about real pods.
type findingCase struct {
	change   func(*Facts)
	want     []string
	obstacle string
}

func checkFindings(t *testing.T, cases map[string]findingCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := capable()
			c.change(&f)
			var got []string
			for _, one := range Findings(f) {
				if one.Level != OK {
					got = append(got, string(one.Level)+" "+one.Check+": "+one.Message)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the findings differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.obstacle, ContainersObstacle(f)); diff != "" {
				t.Errorf("the obstacle differs (-want +got):\n%s", diff)
			}
		})
	}
}

func onMac() Facts {
	return Facts{
		OS: "darwin", UserID: 501, DataFolder: DataFolder{Path: "/Users/you/.hotspare", Free: Quantity{Value: 40 * gigabyte}},
		Memory: Quantity{Err: "this system does not report it"}, OpenFiles: Quantity{Value: 1<<63 - 1},
	}
}

func TestMessagesOfMetNeeds(t *testing.T) {
	change := func(c func(*Facts)) Facts {
		f := capable()
		c(&f)
		return f
	}
	for want, f := range map[string]Facts{
		"System: Debian GNU/Linux 12 (bookworm), kernel 6.1.0-18-amd64": capable(),
		"System: Linux": change(func(f *Facts) { f.Distribution, f.Kernel = Distribution{}, "" }),
		"System: macOS": onMac(),
		"Data folder: /root/.hotspare, 40 GB free":                                            capable(),
		"Data folder: /Users/you/.hotspare does not exist yet and can be created; 40 GB free": onMac(),
		"Memory: 8 GB available":                                                              capable(),
		"Open files: a process can open 20000 files":                                          capable(),
		"Open files: no limit":                                                                onMac(),
		"containerd: 1.6.20~ds1 (/usr/bin/containerd)":                                        capable(),
		"runc: 1.1.5+ds1 (/usr/sbin/runc)":                                                    capable(),
		"runc: /usr/sbin/runc":                                                                change(prints(Runc, "?")),
		"CNI plugins: /usr/lib/cni":                                                           capable(),
		"Packet filter: iptables 1.8.9 (/usr/sbin/iptables)":                                  capable(),
		"Packet filter: nft 1.0.6 (/usr/sbin/nft)":                                            change(without(IPTables)),
		"cgroups: version 2":                                                                  capable(),
		"inotify: 1024 instances, 8192 watches":                                               capable(),
		"TUN device: /dev/net/tun can be opened":                                              capable(),
		"veth: the kernel supports it":                                                        capable(),
		"ID maps: newuidmap and newgidmap":                                                    change(asUser),
		"Capabilities: CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_SYS_RESOURCE":                     capable(),
	} {
		if !slices.ContainsFunc(Findings(f), func(one Finding) bool { return one.Level == OK && one.Check+": "+one.Message == want }) {
			t.Errorf("no finding is %q: %v", want, Findings(f))
		}
	}
}
