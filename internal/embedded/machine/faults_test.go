package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFaultComesAndGoes(t *testing.T) {
	for _, p := range InjectionProfiles() {
		t.Run(string(p.Fault), func(t *testing.T) {
			dir := newMachine(t, "m", Worker)
			for range 2 { // the second time changes nothing
				must(t, AddInjection(dir, p.Fault))
				if got := ListInjections(dir); !slices.Equal(got, []Injection{p.Fault}) {
					t.Fatalf("broken, it has %v", got)
				}
			}
			for range 2 {
				must(t, RemoveInjection(dir, p.Fault))
				if got := ListInjections(dir); got != nil {
					t.Fatalf("healed, it has %v", got)
				}
			}
			if raw, err := os.ReadFile(filepath.Join(DiskPath(dir), "data")); err != nil || string(raw) != "data" {
				t.Errorf("the disk holds %q: %v", raw, err)
			}
		})
	}
}

func TestALostDiskIsKept(t *testing.T) {
	dir := newMachine(t, "m", Worker)
	must(t, AddInjection(dir, DiskLost))
	if _, err := os.Stat(DiskPath(dir)); !os.IsNotExist(err) {
		t.Errorf("the disk is there: %v", err)
	}
	t.Run("though its mark is not", func(t *testing.T) {
		must(t, os.Remove(InjectionPath(dir, DiskLost)))
		if !HasInjection(dir, DiskLost) {
			t.Error("the machine has no such fault")
		}
	})
	t.Run("and is not put upon another", func(t *testing.T) {
		must(t, os.MkdirAll(filepath.Join(DiskPath(dir), "new"), 0o700))
		if err := RemoveInjection(dir, DiskLost); err == nil || !HasInjection(dir, DiskLost) {
			t.Errorf("healing: %v", err)
		}
	})
}

func TestWhomAFaultStrikes(t *testing.T) {
	master, first, second := Config{Name: "c-master-0", Role: ControlPlane}, Config{Name: "c-worker-0", Role: Worker}, Config{Name: "c-worker-1", Role: Worker}
	for name, c := range map[string]struct {
		fault Injection
		of    []Config
		want  string
	}{
		"the control plane":             {MachineCrash, []Config{second, first, master}, "c-master-0"},
		"the first worker":              {NodeNeverReady, []Config{second, first, master}, "c-worker-0"},
		"the control plane if alone":    {NodeNeverReady, []Config{master}, "c-master-0"},
		"every machine":                 {CertificatesExpired, []Config{second, master, first}, "c-master-0 c-worker-0 c-worker-1"},
		"nobody without control planes": {APISilent, []Config{first}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := c.fault.Profile()
			must(t, err)
			var got []string
			for _, m := range p.SelectMachines(c.of) {
				got = append(got, m.Name)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUnknownFaultListsAll(t *testing.T) {
	_, err := Injection("flood").Profile()
	if err == nil {
		t.Fatal("there is a fault flood")
	}
	for _, name := range InjectionNames() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %s is missing", err, name)
		}
	}
}

func TestAFaultStrikesOnlyWhomItFits(t *testing.T) {
	for _, p := range InjectionProfiles() {
		if p.Only == ControlPlane && (p.AppliesTo(Worker) || p.DefaultTarget != TargetControlPlane) {
			t.Errorf("%s is of control planes only, and strikes %s", p.Fault, p.DefaultTarget)
		}
		if p.Only == "" && !p.AppliesTo(Worker) {
			t.Errorf("%s fits no worker", p.Fault)
		}
	}
}

func TestLoadAllSkipsWhatIsNoMachine(t *testing.T) {
	dir := newMachine(t, "b", Worker)
	cluster := filepath.Dir(dir)
	addMachine(t, filepath.Join(cluster, "a"), ControlPlane)
	must(t, os.Mkdir(filepath.Join(cluster, "half"), 0o700))
	all, err := LoadConfigs(cluster)
	must(t, err)
	if len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		t.Errorf("%+v", all)
	}
}

func newMachine(t *testing.T, name string, role Role) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "c", name)
	addMachine(t, dir, role)
	return dir
}

func addMachine(t *testing.T, dir string, role Role) {
	t.Helper()
	must(t, os.MkdirAll(DiskPath(dir), 0o700))
	must(t, os.WriteFile(filepath.Join(DiskPath(dir), "data"), []byte("data"), 0o600))
	config := `{"name":"` + filepath.Base(dir) + `","role":"` + string(role) + `"}`
	must(t, os.WriteFile(ConfigPath(dir), []byte(config), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
