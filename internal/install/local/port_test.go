package local

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/install"
)

// asking returns an install-config that requests a port.
func asking(name string, port int) string {
	return fmt.Sprintf("metadata: {name: %s}\nbaseDomain: example.com\nplatform: {local: {apiPort: %d}}\n", name, port)
}

// squat listens on a loopback port below the range of outgoing connections.
func squat(t *testing.T) (net.Listener, int) {
	t.Helper()
	for port := 10000 + os.Getpid()%5000; port < 20000; port++ {
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			t.Cleanup(func() { _ = l.Close() }) // most have been closed
			return l, port
		}
	}
	t.Fatal("no port is free")
	return nil, 0
}

func TestTheAPIIsOnThePortAskedFor(t *testing.T) {
	dir := t.TempDir()
	l := reopen(t, dir)
	o := l.office(t, Options{})
	holder, port := squat(t)
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	req := request("a", asking("foo", port))
	md := o.prepare(t, req)
	got := o.install(t, req, md)
	if want := fmt.Sprintf("https://127.0.0.1:%d", port); got.Phase != install.Succeeded || got.APIURL != want {
		t.Fatalf("%s at %q, want %q: %s", got.Phase, got.APIURL, want, got.Log)
	}
	if !strings.HasPrefix(md.InfraID, "foo-") {
		t.Errorf("infraID %s", md.InfraID)
	}
	if err := l.store.StopCluster(md.InfraID); err != nil {
		t.Fatal(err)
	}
	l.shutdown()
	o.Wait()

	l = reopen(t, dir)
	ms, err := l.store.ListMachines(md.InfraID)
	if err != nil || len(ms) != 2 {
		t.Fatalf("%v, %v", ms, err)
	}
	for _, m := range ms {
		if m.APIPort != port || m.ClusterName != "foo" {
			t.Errorf("after a restart %s of %s has port %d", m.Name, m.ClusterName, m.APIPort)
		}
	}

	o = l.office(t, Options{})
	second := request("b", asking("bar", port))
	if got := o.install(t, second, o.prepare(t, second)); got.Reason != "APIPortTaken" || !strings.Contains(got.Log, "belongs to cluster "+md.InfraID) {
		t.Errorf("the port of a cluster that sleeps: %+v", got)
	}
}

func TestATakenPortFailsTheAttempt(t *testing.T) {
	l := newLab(t)
	o := l.office(t, Options{})
	holder, port := squat(t)
	req := request("a", asking("foo", port))
	md := o.prepare(t, req)
	got := o.install(t, req, md)
	if got.Phase != install.Failed || got.Reason != "APIPortTaken" {
		t.Errorf("got %+v", got)
	}
	for _, part := range []string{"platform.local.apiPort", fmt.Sprint("port ", port), "use another port"} {
		if !strings.Contains(got.Log, part) {
			t.Errorf("%q is not in: %s", part, got.Log)
		}
	}
	if left := l.clusters(t); len(left) > 0 {
		t.Errorf("made %v", left)
	}
	if got := o.destroy(t, md); got.Phase != install.Succeeded {
		t.Errorf("destroying: %+v", got)
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	again := o.prepare(t, req)
	if got := o.install(t, req, again); got.Phase != install.Succeeded {
		t.Errorf("the next attempt, with the port free: %+v", got)
	}
}
