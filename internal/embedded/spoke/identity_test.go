package spoke

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// disk writes the files that the installer writes to the disk of a machine.
func disk(t *testing.T, role machine.Role) *runningMachine {
	t.Helper()
	m := &runningMachine{dir: t.TempDir()}
	m.Name, m.Role = "x-master-0", role
	keys := machine.PKIPath(m.dir)
	if err := pki.EnsureCluster(keys, "x", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := pki.WriteBootstrapToken(keys, "s3cret"); err != nil {
		t.Fatal(err)
	}
	ca, err := pki.LoadCA(keys, pki.ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := pki.BootstrapKubeconfig(pki.Cluster{Name: "x", Server: "https://127.0.0.1:6443", CA: ca.CertPEM()}, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.WriteFile(machine.BootstrapPath(m.dir), raw); err != nil {
		t.Fatal(err)
	}
	return m
}

// damages are the kinds of damage that a power failure or a full disk may cause.
var damages = map[string]func(path string, size int64) error{
	"empty":       func(path string, _ int64) error { return os.Truncate(path, 0) },
	"cut in half": func(path string, size int64) error { return os.Truncate(path, size/2) },
	"garbage": func(path string, size int64) error {
		return os.WriteFile(path, []byte(strings.Repeat("\x00\xff", int(size))), 0o600)
	},
	"gone": func(path string, _ int64) error { return os.Remove(path) },
}

func TestAMachineWithADamagedIdentityEnds(t *testing.T) {
	for file, role := range map[string]machine.Role{
		"disk/pki/ca.crt":             machine.ControlPlane,
		"disk/pki/ca.key":             machine.ControlPlane,
		"disk/pki/front-proxy-ca.crt": machine.ControlPlane,
		"disk/pki/front-proxy-ca.key": machine.ControlPlane,
		"disk/pki/sa.key":             machine.ControlPlane,
		"disk/pki/tokens.csv":         machine.ControlPlane,
		"disk/bootstrap.kubeconfig":   machine.Worker,
	} {
		for name, damage := range damages {
			t.Run(file+" is "+name, func(t *testing.T) {
				m := disk(t, role)
				if err := m.checkIdentity(); err != nil {
					t.Fatalf("whole: %v", err)
				}
				path := filepath.Join(m.dir, file)
				info, err := os.Stat(path)
				if err == nil {
					err = damage(path, info.Size())
				}
				if err != nil {
					t.Fatal(err)
				}
				err = m.checkIdentity()
				stem := strings.TrimSuffix(path, filepath.Ext(path)) // a pair is named after its certificate
				if err == nil || !strings.Contains(err.Error(), stem) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, want an error that names %s", err, path)
				}
			})
		}
	}
}
