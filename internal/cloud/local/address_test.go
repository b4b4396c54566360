package local

import (
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// hello is the header of a TLS record with a handshake.
var hello = []byte{22, 3, 1, 0, 100}

// dialAPI connects to the API of the cluster.
func (s *Store) dialAPI(t *testing.T) (net.Conn, error) {
	t.Helper()
	ms, err := s.ListMachines(infraID)
	if err != nil || len(ms) == 0 {
		t.Fatalf("%v, %v", ms, err)
	}
	conn, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(ms[0].APIPort)))
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// begin connects and begins a TLS handshake.
func (s *Store) begin(t *testing.T) net.Conn {
	t.Helper()
	conn, err := s.dialAPI(t)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(hello); err != nil {
		t.Fatal(err)
	}
	return conn
}

func (s *Store) refuses(t *testing.T) {
	t.Helper()
	if _, err := s.dialAPI(t); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it does not refuse a connection: %v", err)
	}
}

func (s *Store) awaitWaiting(t *testing.T, want int) {
	t.Helper()
	eventually(t, func() bool { return s.CountWaiting(infraID) == want }, func() { t.Fatalf("%d wait, want %d", s.CountWaiting(infraID), want) })
}

func TestTheAddressOfASleepingClusterIsHeld(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	run(t, s)
	s.refuses(t)
	for range 2 {
		if err := s.HoldAddress(t.Context(), infraID); err != nil {
			t.Fatal(err)
		}
	}
	for len(s.changes) > 0 {
		<-s.changes
	}
	conn := s.begin(t)
	s.awaitWaiting(t, 1)
	if got := <-s.changes; got != infraID {
		t.Errorf("a connection is reported to %s", got)
	}
	s.mustStart(t, infraID)
	s.await(t, infraID, "c-12345-master-0 Running")
	s.awaitWaiting(t, 0)

	// It sleeps again, without a moment in which it refuses connections, and is released by its user.
	if err := s.StopCluster(infraID); err != nil {
		t.Fatal(err)
	}
	second := s.begin(t)
	s.await(t, infraID, "c-12345-master-0 Stopped")
	s.awaitWaiting(t, 1)
	s.DropAddress(t.Context(), infraID)
	if err := second.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(second); err != nil || len(got) == 0 || got[0] != 21 {
		t.Errorf("the connection ends with %x, %v: no TLS alert", got, err)
	}
	s.refuses(t)
	_ = conn.Close()
}

func TestADestroyedClusterIsNotHeld(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	run(t, s)
	if err := s.HoldAddress(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
	s.mustStart(t, infraID)
	s.await(t, infraID, "c-12345-master-0 Running")
	if err := s.DestroyCluster(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
	if len(s.addresses) != 0 {
		t.Errorf("addresses are left: %v", s.addresses)
	}
	if err := s.HoldAddress(t.Context(), infraID); err == nil {
		t.Error("the address of a cluster that does not exist is held")
	}
}

func TestATakenAddressIsNotHeld(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	run(t, s)
	ms, err := s.ListMachines(infraID)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(ms[0].APIPort)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.HoldAddress(t.Context(), infraID); err == nil {
		t.Error("the port of another program is held")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.HoldAddress(t.Context(), infraID); err != nil {
		t.Errorf("the port is free: %v", err)
	}
	s.begin(t)
	s.awaitWaiting(t, 1)
}

func TestOnlyTheOwnerHoldsAnAddress(t *testing.T) {
	s := open(t, t.TempDir())
	c := machine.Config{Name: infraID + "-master-0", InfraID: infraID, Role: machine.ControlPlane, Owner: "a/a"}
	if _, err := s.CreateMachine(c); err != nil {
		t.Fatal(err)
	}
	stranger := cloud.Ref{InfraID: infraID, Cluster: types.NamespacedName{Namespace: "b", Name: "b"}}
	owner := cloud.Ref{InfraID: infraID, Cluster: types.NamespacedName{Namespace: "a", Name: "a"}}
	p := Actuator{Store: s}
	if p.HoldAddress(t.Context(), stranger) == nil || s.IsAddressHeld(infraID) {
		t.Error("a stranger holds the address")
	}
	if err := p.HoldAddress(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	if p.DropAddress(t.Context(), stranger) == nil || !s.IsAddressHeld(infraID) {
		t.Error("a stranger drops the address")
	}
	if err := p.DropAddress(t.Context(), owner); err != nil || s.IsAddressHeld(infraID) {
		t.Errorf("the owner does not drop the address: %v", err)
	}
}
