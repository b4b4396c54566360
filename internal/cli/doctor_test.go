package cli

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/doctor"
)

// freshMachine is a Debian on which nothing was installed.
func freshMachine() doctor.Facts {
	return doctor.Facts{
		OS:               "linux",
		Distribution:     doctor.Distribution{ID: "debian", Name: "Debian GNU/Linux 12 (bookworm)"},
		Kernel:           "6.1.0-18-amd64",
		Capabilities:     doctor.Capabilities{Effective: 1<<41 - 1},
		Cgroups:          doctor.Cgroups{Version: 2, Controllers: []string{"cpu", "cpuset", "memory", "pids"}},
		Overlay:          doctor.Supported,
		Veth:             doctor.Supported,
		InotifyInstances: doctor.Quantity{Value: 64},
		InotifyWatches:   doctor.Quantity{Value: 65536},
		DataFolder:       doctor.DataFolder{FileSystem: "ext4", Free: doctor.Quantity{Value: 40 << 30}},
		Memory:           doctor.Quantity{Value: 8 << 30},
		OpenFiles:        doctor.Quantity{Value: 1048576},
	}
}

// completeMachine has all that real pods need, too.
func completeMachine() doctor.Facts {
	f := freshMachine()
	f.InotifyInstances.Value = 1024
	f.CNIFolders = []doctor.CNIFolder{{Path: "/usr/lib/cni", Plugins: doctor.CNIPlugins}}
	f.Programs = map[string]doctor.Program{
		doctor.Containerd:     {Path: "/usr/bin/containerd", Version: "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1"},
		doctor.ContainerdShim: {Path: "/usr/bin/containerd-shim-runc-v2"},
		doctor.CTR:            {Path: "/usr/bin/ctr"},
		doctor.Runc:           {Path: "/usr/sbin/runc", Version: "runc version 1.1.5+ds1"},
		doctor.IPTables:       {Path: "/usr/sbin/iptables", Version: "iptables v1.8.9 (nf_tables)"},
	}
	return f
}

// brokenMachine lacks something that the hub needs.
func brokenMachine() doctor.Facts {
	f := completeMachine()
	f.UserID, f.DataFolder.Err = 1000, "/home/you: permission denied"
	f.Memory.Value = 500 << 20
	return f
}

func TestDoctorTranscripts(t *testing.T) {
	for name, c := range map[string]struct {
		facts doctor.Facts
		lines []string
	}{
		"doctor":          {freshMachine(), []string{"doctor", "doctor --containers", "doctor -o json", "doctor -o name", "doctor now"}},
		"doctor-complete": {completeMachine(), []string{"doctor --data-dir /srv/hub", "doctor --containers", "doctor --containers -o yaml"}},
		"doctor-broken":   {brokenMachine(), []string{"doctor", "doctor --containers", "doctor -o json"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, interceptor.Funcs{})
			t.Setenv("KUBECONFIG", "") // no hub is needed
			t.Setenv("HOME", "/home/you")
			t.Chdir(t.TempDir())
			r.facts = c.facts
			compare(t, name, transcript(r, c.lines))
		})
	}
}

func TestDoctorFitsIntoATerminal(t *testing.T) {
	r := newRig(t, interceptor.Funcs{})
	t.Setenv("HOME", "/home/you")
	t.Chdir(t.TempDir())
	r.facts, r.terminal, r.width = freshMachine(), true, 60
	if code := r.run("doctor"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	out := r.stdout.String()
	for _, want := range []string{"\x1b[32mOK\x1b[0m", "\x1b[33mNote\x1b[0m", "\x1b[31mProblem\x1b[0m"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	table, _, _ := strings.Cut(out, "\n\n")
	for line := range strings.Lines(table) {
		for _, code := range []string{"\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"} {
			line = strings.ReplaceAll(line, code, "")
		}
		if len(strings.TrimSuffix(line, "\n")) > r.width {
			t.Errorf("the line is wider than the terminal: %q", line)
		}
	}
}

func TestDoctorPrintsNothingWhenInterrupted(t *testing.T) {
	r := newRig(t, interceptor.Funcs{})
	r.facts = freshMachine()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := r.runIn(ctx, "doctor"); code != base.ExitFailed || r.stdout.String() != "" {
		t.Errorf("exit code %d, output %q", code, r.stdout.String())
	}
}
