package hub

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/internal/embedded/controlplane"
)

func listenOnce(t *testing.T, dir string, port int) int {
	t.Helper()
	l, err := listenOnLastPort(dir, port)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Users' kubeconfigs contain the port.
func TestAHubKeepsItsPort(t *testing.T) {
	dir := t.TempDir()
	first := listenOnce(t, dir, 0)
	if first < firstPort || first >= firstPort+portCount {
		t.Errorf("the first start listens on %d: an outgoing connection may use it when the hub starts again", first)
	}
	if again := listenOnce(t, dir, 0); again != first {
		t.Errorf("the second start listens on %d, the first on %d", again, first)
	}
	other := listenOnce(t, t.TempDir(), 0)
	if chosen := listenOnce(t, dir, other); chosen != other {
		t.Errorf("it listens on %d, not on %d, which was chosen", chosen, other)
	}
	if again := listenOnce(t, dir, 0); again != other {
		t.Errorf("after another port was chosen, it listens on %d, not on %d", again, other)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	_, err = listenOnLastPort(dir, taken.Addr().(*net.TCPAddr).Port)
	var inUse *controlplane.PortTakenError
	if !errors.As(err, &inUse) || !strings.Contains(err.Error(), "use another port for the hub") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "port")); err == nil {
		t.Error("the port of a hub that did not start is stored")
	}
}

func TestAStoredPortThatIsNoNumberIsReported(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "port")
	if err := os.WriteFile(path, []byte("eighty\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenOnLastPort(dir, 0); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), `"eighty"`) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyClustersOfPoolsAreNotTracked(t *testing.T) {
	object := func(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	}
	ofPool := map[string]any{"clusterPoolRef": map[string]any{"poolName": "p"}}
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"a cluster of a pool":        {object("hive.openshift.io/v1", "ClusterDeployment", ofPool), true},
		"a cluster without a pool":   {object("hive.openshift.io/v1", "ClusterDeployment", map[string]any{}), false},
		"a pool's name that is none": {object("hive.openshift.io/v1", "ClusterDeployment", map[string]any{"clusterPoolRef": map[string]any{"poolName": ""}}), false},
		"a name of another type":     {object("hive.openshift.io/v1", "ClusterDeployment", map[string]any{"clusterPoolRef": map[string]any{"poolName": int64(1)}}), false},
		"another kind":               {object("hive.openshift.io/v1", "ClusterClaim", ofPool), false},
		"another group":              {object("example.com/v1", "ClusterDeployment", ofPool), false},
	} {
		if got := isPoolCluster(c.object); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestExtraHeap(t *testing.T) {
	for available, want := range map[int64]uint64{0: 750 << 20, 4 << 30: 750 << 20, 12 << 30: 1 << 30, 64 << 30: 2 << 30} {
		if got := extraHeap(available); got != want {
			t.Errorf("with %d bytes of memory available: %d, want %d", available, got, want)
		}
	}
}
