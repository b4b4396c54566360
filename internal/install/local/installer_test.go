package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	machines "hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/cloud/local/machinetest"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/fault"
)

const twoWorkers = valid + "platform: {local: {workers: 2, certificateDuration: 1h}}\n"

// lab is a running store and a folder for installations.
type lab struct {
	store    *machines.Store
	dir      string
	room     int64 // of memory
	ctx      context.Context
	shutdown func()
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return reopen(t, t.TempDir())
}

// reopen starts what hotspare up starts on dir.
func reopen(t *testing.T, dir string) *lab {
	t.Helper()
	l := &lab{dir: filepath.Join(dir, "installs"), room: machines.Unlimited}
	measure := func(string) (machines.Resources, error) {
		return machines.Resources{Memory: l.room, Disk: machines.Unlimited}, nil
	}
	store, err := machines.Open(filepath.Join(dir, "machines"), machinetest.Command(t), machines.WithResources(measure))
	if err != nil {
		t.Fatal(err)
	}
	l.store = store
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- store.Run(l.ctx) }()
	down := false
	l.shutdown = func() {
		if down {
			return
		}
		down = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the store: %v", err)
		}
	}
	t.Cleanup(l.shutdown)
	return l
}

// folder creates an installation's folder with an install-config.
func (l *lab) folder(t *testing.T, installConfig string) folder {
	t.Helper()
	f := folder(filepath.Join(l.dir, "one"))
	if err := pki.WriteFile(f.configPath(), []byte(installConfig)); err != nil {
		t.Fatal(err)
	}
	return f
}

func (l *lab) clusters(t *testing.T) []string {
	t.Helper()
	ids, err := l.store.ListClusters()
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestCreateAndDestroyCluster(t *testing.T) {
	l := newLab(t)
	f := l.folder(t, twoWorkers)
	i := NewInstaller(l.store, 0)
	if err := i.CreateCluster(t.Context(), string(f)); err != nil {
		t.Fatal(err)
	}
	md, err := f.readMetadata()
	if err != nil {
		t.Fatal(err)
	}
	ms, err := l.store.ListMachines(md.InfraID)
	if err != nil || len(ms) != 3 {
		t.Fatalf("machines: %v, %v", ms, err)
	}
	want := machine.Config{
		Name: md.InfraID + "-master-0", InfraID: md.InfraID, Role: machine.ControlPlane, APIPort: ms[0].APIPort,
		ClusterName: "c", BaseDomain: "example.com", Workers: 2, CertificateDuration: ms[0].CertificateDuration,
		ContainersObstacle: noContainers,
	}
	if diff := cmp.Diff(want, ms[0]); diff != "" || ms[0].CertificateDuration.Duration != time.Hour {
		t.Errorf("control plane: %s", diff)
	}
	if _, err := os.Stat(machine.InstalledPath(l.store.MachineDir(md.InfraID, ms[0].Name))); err != nil {
		t.Errorf("not marked as installed: %v", err)
	}
	result, done, err := f.readResult()
	if err != nil || !done || result.APIURL != apiServerURL(ms[0]) || result.Version != "1.36.3" || len(result.Password) != 23 {
		t.Errorf("result: %+v, %t, %v", result, done, err)
	}
	onlyOwnersRead(t, string(f))

	if err := l.store.StopCluster(md.InfraID); err != nil {
		t.Fatal(err)
	}
	if err := i.CreateCluster(t.Context(), string(f)); err != nil {
		t.Errorf("again: %v", err)
	}
	if seen, err := l.store.ObserveCluster(md.InfraID); err != nil || strings.Contains(seen.String(), "Starting") {
		t.Errorf("what was installed is started again: %v, %v", seen, err)
	}

	for range 2 {
		if err := i.DestroyCluster(t.Context(), string(f)); err != nil {
			t.Fatal(err)
		}
	}
	if left := l.clusters(t); len(left) > 0 || f.existsOnDisk() {
		t.Errorf("left: %v, folder: %t", left, f.existsOnDisk())
	}
}

// onlyOwnersRead fails the test if other users can read a file below dir.
func onlyOwnersRead(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Wherever an installation was killed, it continues with the same machines and keys.
func TestInterruptedInstallation(t *testing.T) {
	steps := []struct {
		name string
		do   func(*Installer, folder, []machine.Config) error
	}{
		{"named", func(*Installer, folder, []machine.Config) error { return nil }},
		{"with half of the machines", func(i *Installer, _ folder, ms []machine.Config) error {
			_, err := i.createMachines(ms[:2])
			return err
		}},
		{"with all machines", func(i *Installer, _ folder, ms []machine.Config) error {
			_, err := i.createMachines(ms)
			return err
		}},
		{"with half of the control plane's disk", func(i *Installer, _ folder, ms []machine.Config) error {
			return pki.EnsureServiceAccountKey(machine.PKIPath(i.store.MachineDir(ms[0].InfraID, ms[0].Name)))
		}},
		{"with full disks", func(i *Installer, f folder, ms []machine.Config) error {
			ms, err := i.createMachines(ms)
			return errors.Join(err, i.writeMachineFiles(f, ms))
		}},
		{"started", func(i *Installer, _ folder, ms []machine.Config) error { return i.store.StartCluster(ms[0].InfraID) }},
		{"all but finished", func(i *Installer, _ folder, ms []machine.Config) error {
			return pki.WriteFile(machine.InstalledPath(i.store.MachineDir(ms[0].InfraID, ms[0].Name)), nil)
		}},
	}
	for n, last := range steps {
		t.Run(last.name, func(t *testing.T) {
			dir := t.TempDir()
			l := reopen(t, dir)
			f := l.folder(t, twoWorkers)
			c, err := f.readConfig()
			if err != nil {
				t.Fatal(err)
			}
			md, err := f.ensureMetadata(c)
			if err != nil {
				t.Fatal(err)
			}
			i := NewInstaller(l.store, 0)
			for _, step := range steps[:n+1] {
				if err := step.do(i, f, machineConfigs(c, md, simulation{simulated: true})); err != nil {
					t.Fatal(err)
				}
			}
			tokens := pki.TokenFilePath(machine.PKIPath(l.store.MachineDir(md.InfraID, md.InfraID+"-master-0")))
			before, _ := os.ReadFile(tokens) // not there yet in the first steps
			l.shutdown()

			l = reopen(t, dir)
			if err := NewInstaller(l.store, 0).CreateCluster(t.Context(), string(f)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{md.InfraID}, l.clusters(t)); diff != "" {
				t.Errorf("clusters: %s", diff)
			}
			after, err := os.ReadFile(tokens)
			if err != nil || len(before) > 0 && string(after) != string(before) {
				t.Errorf("the token has changed under the machines: %v", err)
			}
		})
	}
}

// prepared runs an installation up to its machines, and injects a fault into one of them.
func (l *lab) prepared(t *testing.T, i *Installer, f folder, bad int, with machinetest.Injection) metadata {
	t.Helper()
	c, err := f.readConfig()
	if err != nil {
		t.Fatal(err)
	}
	md, err := f.ensureMetadata(c)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := i.createMachines(machineConfigs(c, md, simulation{simulated: true}))
	if err != nil {
		t.Fatal(err)
	}
	machinetest.Inject(t, l.store.MachineDir(md.InfraID, ms[bad].Name), with)
	return md
}

func TestFailedInstallation(t *testing.T) {
	for name, c := range map[string]struct {
		bad     int
		fault   machinetest.Injection
		timeout time.Duration
		reason  string
		says    string
		quotes  []string // the machines whose logs are quoted
	}{
		"a control plane that does not start": {0, machinetest.ExitAtOnce, 0, "MachineFailed", string(machinetest.ExitAtOnce), []string{"master-0"}},
		"a worker that does not start":        {2, machinetest.ExitAtOnce, 0, "MachineFailed", "-worker-1", []string{"master-0", "worker-1"}},
		"a worker that does not join": {
			1, unready, 10 * time.Second, "InstallTimeout", "-worker-0: not finished within 10s: context deadline exceeded (" + unreadyProblem + ")",
			[]string{"master-0", "worker-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			f := l.folder(t, twoWorkers)
			i := NewInstaller(l.store, c.timeout)
			md := l.prepared(t, i, f, c.bad, c.fault)
			err := i.CreateCluster(t.Context(), string(f))
			if err == nil || failureReason(err) != c.reason || !strings.Contains(err.Error(), c.says) {
				t.Errorf("reason %s: %v", failureReason(err), err)
			}
			log, err := os.ReadFile(f.logPath())
			if err != nil || !strings.Contains(string(log), c.says) {
				t.Errorf("log: %s, %v", log, err)
			}
			var quoted []string
			for line := range strings.Lines(string(log)) {
				if name, found := strings.CutPrefix(strings.TrimSpace(line), "--- end of the log of "+md.InfraID+"-"); found {
					quoted = append(quoted, name)
				}
			}
			if diff := cmp.Diff(c.quotes, quoted); diff != "" {
				t.Errorf("the logs of other machines are quoted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidInstallationMakesNothing(t *testing.T) {
	l := newLab(t)
	f := l.folder(t, "metadata: {name: UPPER}")
	err := NewInstaller(l.store, 0).CreateCluster(t.Context(), string(f))
	if fault.KindOf(err) != fault.Denied || len(l.clusters(t)) > 0 {
		t.Errorf("%v, clusters %v", err, l.clusters(t))
	}
}

func TestRunningMachinesNeedNoMoreRoom(t *testing.T) {
	l := newLab(t)
	f := l.folder(t, valid)
	c, err := f.readConfig()
	if err != nil {
		t.Fatal(err)
	}
	md, err := f.ensureMetadata(c)
	if err != nil {
		t.Fatal(err)
	}
	i := NewInstaller(l.store, 0)
	ms, err := i.createMachines(machineConfigs(c, md, simulation{simulated: true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(i.writeMachineFiles(f, ms), l.store.StartCluster(md.InfraID)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) { //nolint:forbidigo // processes have no other clock
		seen, err := l.store.ObserveCluster(md.InfraID)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%v, %v", seen, err)
		}
		if seen.AllIn(cloud.Running) {
			break
		}
	}
	l.room = 0
	if err := i.CreateCluster(t.Context(), string(f)); err != nil {
		t.Error(err)
	}
}
