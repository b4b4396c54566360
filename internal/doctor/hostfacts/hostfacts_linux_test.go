package hostfacts

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/doctor"
)

// file is a file of a machine; program is one that may be executed.
type (
	file    string
	program string
)

// newHost returns a machine with these files. A nil file is a folder.
func newHost(t *testing.T, files map[string]any) host {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		switch c := content.(type) {
		case file:
			err = os.WriteFile(path, []byte(c), 0o600)
		case program:
			err = os.WriteFile(path, []byte(c), 0o700) //nolint:gosec // a program
		case nil:
			err = os.Mkdir(path, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return host{
		root: root, searchPath: "/usr/local/bin:/usr/bin:/home/you/bin", timeout: time.Minute,
		isolate: func(*syscall.SysProcAttr) {}, createVeth: func() error { return nil },
	}
}

// prints is a program that prints a text.
func prints(text string) program { return program("#!/bin/sh\ncat <<'EOT'\n" + text + "\nEOT\n") }

func TestFactsOfAMachine(t *testing.T) {
	h := newHost(t, map[string]any{
		"etc/os-release":                         file("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nID=debian\nID_LIKE='a b'\n"),
		"proc/sys/kernel/osrelease":              file("6.1.0-18-amd64\n"),
		"proc/self/status":                       file("Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001ffffffffff\n"),
		"proc/self/uid_map":                      file("         0          0 4294967295\n"),
		"proc/self/mountinfo":                    file(mountsOfVersion2),
		"sys/fs/cgroup/cgroup.controllers":       file("cpuset cpu io memory pids\n"),
		"proc/filesystems":                       file("nodev\tsysfs\nnodev\toverlay\n\text4\n"),
		"proc/sys/fs/inotify/max_user_instances": file("128\n"),
		"proc/sys/fs/inotify/max_user_watches":   file("65536\n"),
		"proc/meminfo":                           file("MemTotal:       24683556 kB\nMemFree: 1 kB\nMemAvailable:       2048 kB\n"),
		"dev/net/tun":                            file(""),
		"usr/bin/containerd":                     prints("containerd github.com/containerd/containerd 1.6.20~ds1"),
		"usr/local/bin/containerd":               file("not a program"),
		"usr/bin/containerd-shim-runc-v2":        program("#!/bin/sh\nexit 1\n"),
		"usr/sbin/containerd-ctr":                program("#!/bin/sh\nexit 1\n"),
		"home/you/bin/iptables":                  prints("iptables v1.8.9"), // nodes do not find it
		"home/you/bin/newuidmap":                 program(""),
		"usr/sbin/runc":                          prints("\n  runc version 1.1.5+ds1  \ncommit: x"),
		"sbin/nft":                               prints("nftables v1.0.6"),
		"usr/bin/iptables/a-folder":              file(""),
		"usr/lib/cni/ptp":                        program(""),
		"usr/lib/cni/loopback":                   file("not a program"),
		"usr/lib/cni/macvlan":                    program(""),
		"opt/cni/bin/ptp":                        program(""),
		"opt/cni/bin/host-local":                 program(""),
		"opt/cni/bin/loopback":                   program(""),
		"opt/cni/bin/portmap":                    program(""),
		"usr/libexec/cni/dhcp":                   program(""),
	})
	var f doctor.Facts
	h.addSystemFacts(t.Context(), &f)
	want := doctor.Facts{
		Distribution: doctor.Distribution{ID: "debian", Like: []string{"a", "b"}, Name: "Debian GNU/Linux 12 (bookworm)"},
		Kernel:       "6.1.0-18-amd64",
		Capabilities: doctor.Capabilities{Effective: 0x1ffffffffff},
		Programs: map[string]doctor.Program{
			doctor.Containerd:     {Path: "/usr/bin/containerd", Version: "containerd github.com/containerd/containerd 1.6.20~ds1"},
			doctor.ContainerdShim: {Path: "/usr/bin/containerd-shim-runc-v2"},
			doctor.CTR:            {Path: "/usr/sbin/containerd-ctr"},
			doctor.NewUIDMap:      {Path: "/home/you/bin/newuidmap"},
			doctor.Runc:           {Path: "/usr/sbin/runc", Version: "runc version 1.1.5+ds1"},
			doctor.NFT:            {Path: "/sbin/nft", Version: "nftables v1.0.6"},
		},
		CNIFolders: []doctor.CNIFolder{
			{Path: "/opt/cni/bin", Plugins: []string{"host-local", "loopback", "portmap", "ptp"}},
			{Path: "/usr/lib/cni", Plugins: []string{"ptp"}},
		},
		Cgroups:          doctor.Cgroups{Version: 2, Controllers: []string{"cpuset", "cpu", "io", "memory", "pids"}},
		Overlay:          doctor.Supported,
		Veth:             doctor.Supported,
		InotifyInstances: doctor.Quantity{Value: 128},
		InotifyWatches:   doctor.Quantity{Value: 65536},
		Memory:           doctor.Quantity{Value: 2 << 20},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("the facts differ (-want +got):\n%s", diff)
	}
}

// A machine without files is one on which nothing can be read: no fact looks as if it were known.
func TestFactsOfAnEmptyMachine(t *testing.T) {
	var f doctor.Facts
	newHost(t, nil).addSystemFacts(t.Context(), &f)
	for what, text := range map[string]string{
		"capabilities": f.Capabilities.Err, "cgroups": f.Cgroups.Err, "inotify instances": f.InotifyInstances.Err,
		"inotify watches": f.InotifyWatches.Err, "memory": f.Memory.Err, "TUN": f.TUNError,
	} {
		if !strings.Contains(text, "no such file or directory") {
			t.Errorf("%s: the reason is %q", what, text)
		}
	}
	if f.Overlay != "" || f.UserNamespace || f.Kernel != "" || len(f.Programs)+len(f.CNIFolders) > 0 {
		t.Errorf("the facts are %+v", f)
	}
}

func TestBrokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]any
		read  func(h host) any
		want  any
	}{
		"os-release elsewhere": {
			map[string]any{"usr/lib/os-release": file("ID=alpine\n")},
			func(h host) any { return h.readDistribution() },
			doctor.Distribution{ID: "alpine", Like: []string{}},
		},
		"os-release with comments, quotes and garbage": {
			map[string]any{"etc/os-release": file("# ID=no\n\n=\nID=\"x\nPRETTY_NAME=\"a \\\"b\\\" \\\\ \\$c\"\nID_LIKE=\n\x00")},
			func(h host) any { return h.readDistribution() },
			doctor.Distribution{ID: "\"x", Like: []string{}, Name: `a "b" \ $c`},
		},
		"a number with garbage": {
			map[string]any{"proc/sys/fs/inotify/max_user_watches": file("many\x1b\n")},
			func(h host) any { return newQuantity(h.readNumber("/proc/sys/fs/inotify/max_user_watches")) },
			doctor.Quantity{Err: `/proc/sys/fs/inotify/max_user_watches contains no number: "many\x1b\n"`},
		},
		"an empty number": {
			map[string]any{"proc/n": file("")},
			func(h host) any { return newQuantity(h.readNumber("/proc/n")) },
			doctor.Quantity{Err: `/proc/n contains no number: ""`},
		},
		"meminfo without what is available": {
			map[string]any{"proc/meminfo": file("MemTotal: 1 kB\nMemAvailable: all of it\n")},
			func(h host) any { return newQuantity(h.readMemory()) },
			doctor.Quantity{Err: "/proc/meminfo has no MemAvailable"},
		},
		"status without capabilities": {
			map[string]any{"proc/self/status": file("Name:\tx\n")},
			func(h host) any { return h.readCapabilities() },
			doctor.Capabilities{Err: "/proc/self/status has no CapEff"},
		},
		"capabilities with garbage": {
			map[string]any{"proc/self/status": file("CapEff:\tall\n")},
			func(h host) any { return h.readCapabilities() },
			doctor.Capabilities{Err: `CapEff of /proc/self/status is "all"`},
		},
		"a user namespace": {
			map[string]any{"proc/self/uid_map": file("0 1000 1\n1 100000 65536\n")},
			func(h host) any { return h.isUserNamespace() }, true,
		},
		"a user namespace with all IDs but shifted": {
			map[string]any{"proc/self/uid_map": file("0 100000 4294967295\n")},
			func(h host) any { return h.isUserNamespace() }, true,
		},
		"a user whom AppArmor restricts": {
			map[string]any{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": file("1\n"), "proc/self/attr/current": file("unconfined\n")},
			func(h host) any { return h.isRestrictedByAppArmor() }, true,
		},
		"a program with a profile of AppArmor": {
			map[string]any{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": file("1\n"), "proc/self/attr/current": file("hotspare (unconfined)\n")},
			func(h host) any { return h.isRestrictedByAppArmor() }, false,
		},
		"AppArmor restricts nobody": {
			map[string]any{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": file("0\n"), "proc/self/attr/current": file("unconfined\n")},
			func(h host) any { return h.isRestrictedByAppArmor() }, false,
		},
		"a kernel without the restriction": {
			map[string]any{"proc/self/attr/current": file("unconfined\n")},
			func(h host) any { return h.isRestrictedByAppArmor() }, false,
		},
		"the TUN device is a folder": {
			map[string]any{"dev/net/tun": nil},
			func(h host) any { return formatError(h.openTUN()) }, "is a directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.read(newHost(t, c.files))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlay(t *testing.T) {
	const kernel = "6.1.0"
	for name, c := range map[string]struct {
		files map[string]any
		want  doctor.Support
	}{
		"loaded":                    {map[string]any{"proc/filesystems": file("nodev\toverlay\n")}, doctor.Supported},
		"another one is loaded":     {map[string]any{"proc/filesystems": file("nodev\toverlayfs\n\n")}, ""},
		"a module":                  {map[string]any{"lib/modules/6.1.0/modules.dep": file("kernel/fs/overlayfs/overlay.ko.xz:\n")}, doctor.Supported},
		"a part of the kernel":      {map[string]any{"lib/modules/6.1.0/modules.builtin": file("kernel/fs/overlayfs/overlay.ko\n"), "lib/modules/6.1.0/modules.dep": file("")}, doctor.Supported},
		"no such module":            {map[string]any{"lib/modules/6.1.0/modules.dep": file("kernel/fs/ext4/ext4.ko:\n"), "proc/filesystems": file("\text4\n")}, doctor.Unsupported},
		"modules of another kernel": {map[string]any{"lib/modules/6.0.0/modules.dep": file("kernel/fs/ext4/ext4.ko:\n")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newHost(t, c.files).readOverlay(kernel); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestNamesOfFileSystems(t *testing.T) {
	for magic, want := range map[int64]string{0xef53: "ext4", 0x794c7630: "overlay", 0x6969: "nfs", 0x1234: ""} {
		if got := nameFileSystem(&unix.Statfs_t{Type: magic}); got != want {
			t.Errorf("%x: %q, want %q", magic, got, want)
		}
	}
}
