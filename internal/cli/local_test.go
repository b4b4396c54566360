package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// localWorld is world, of which cluster dev-1aaaa has machines in ./data, and pet is
// of a cloud.
func localWorld(t *testing.T) []client.Object {
	t.Helper()
	t.Chdir(t.TempDir())
	objects := world()
	for _, o := range objects {
		cd, is := o.(*hivev1.ClusterDeployment)
		switch {
		case !is:
		case cd.Name == "pet":
			cd.Spec.Platform.None = &runtime.RawExtension{Raw: []byte("{}")}
		case cd.Name == "dev-4dddd":
			cd.Spec.Platform.Local = &hivev1.LocalPlatform{}
		default:
			cd.Spec.ClusterMetadata.InfraID = cd.Name + "-i"
		}
	}
	for name, role := range map[string]machine.Role{"master-0": machine.ControlPlane, "worker-0": machine.Worker, "worker-1": machine.Worker} {
		dir := folder(name)
		if err := os.MkdirAll(machine.DiskPath(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(machine.Config{Name: filepath.Base(dir), InfraID: "dev-1aaaa-i", Role: role})
		if err != nil {
			t.Fatal(err)
		}
		write(t, machine.ConfigPath(dir), string(raw))
	}
	t.Setenv("HOTSPARE_DATA_DIR", "")
	return objects
}

func folder(name string) string {
	return filepath.Join("data", "machines", "dev-1aaaa-i", "dev-1aaaa-i-"+name)
}

func TestLocalTranscripts(t *testing.T) {
	for name, lines := range map[string][]string{
		"local-break": {
			"local break --list", "local break --list -o name",
			"local break alice machine-crash", "local break alice certificates-expired", "local break dev-1aaaa node-never-ready --machine dev-1aaaa-i-worker-1",
			"local break alice disk-lost -o json", "local break alice hang-on-start -o name",
		},
		"local-heal": {
			"local break alice disk-lost -o name", "local break alice node-never-ready -o name", "local break alice hang-on-stop -o name",
			"local heal alice disk-lost", "local heal alice disk-lost", "local heal alice -o json", "local heal alice", "local heal alice -o name",
		},
		"local-refused": {
			"local break alice flood", "local break alice", "local break", "local break alice disk-lost now", "local break --list alice",
			"local break nope disk-lost", "local break pet disk-lost", "local break dev-4dddd disk-lost", "local break dev-2bbbb disk-lost",
			"local break alice disk-lost --machine nope", "local break alice api-silent --machine dev-1aaaa-i-worker-0",
			"local heal", "local heal alice flood", "local heal dev-2bbbb",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, interceptor.Funcs{}, localWorld(t)...)
			t.Setenv("HOTSPARE_DATA_DIR", "data")
			compare(t, name, transcript(r, lines))
		})
	}
}

// Only the files that the machine's program looks at count.
func TestBreakAndHealReachTheMachine(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, localWorld(t)...)
	t.Setenv("HOTSPARE_DATA_DIR", "data")
	has := func() string {
		var out []string
		for _, name := range []string{"master-0", "worker-0", "worker-1"} {
			for _, f := range machine.ListInjections(folder(name)) {
				out = append(out, name+":"+string(f))
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for _, step := range []struct{ line, want string }{
		{"local break alice node-never-ready", "worker-0:node-never-ready"},
		{"local break alice api-silent", "master-0:api-silent worker-0:node-never-ready"},
		{"local break alice disk-lost --machine dev-1aaaa-i-worker-1", "master-0:api-silent worker-0:node-never-ready worker-1:disk-lost"},
		{"local heal alice api-silent", "worker-0:node-never-ready worker-1:disk-lost"},
		{"local heal alice", ""},
		{"local break alice certificates-expired", "master-0:certificates-expired worker-0:certificates-expired worker-1:certificates-expired"},
	} {
		if code := r.run(strings.Fields(step.line)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", step.line, code, r.stderr.String())
		}
		if got := has(); got != step.want {
			t.Errorf("%s: the machines have %q, want %q", step.line, got, step.want)
		}
	}
}
