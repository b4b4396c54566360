package podnetwork

import (
	"math/rand/v2"
	"testing"
	"time"
)

// frameFrom returns a frame of the smallest size.
func frameFrom(destination, source hardwareAddress) []byte {
	frame := make([]byte, headerSize)
	copy(frame[0:6], destination[:])
	copy(frame[6:12], source[:])
	return frame
}

var broadcast = hardwareAddress{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func address(n int) hardwareAddress {
	return hardwareAddress{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)}
}

func TestASwitchLearnsWhereAddressesAre(t *testing.T) {
	s := newEthernetSwitch()
	a, b, c := s.connect(), s.connect(), s.connect()
	a.send(frameFrom(address(2), address(1))) // nobody knows 2: everybody else gets it
	if len(a.queue) != 0 || len(b.queue) != 1 || len(c.queue) != 1 {
		t.Fatalf("frames: %d, %d, %d", len(a.queue), len(b.queue), len(c.queue))
	}
	b.send(frameFrom(address(1), address(2)))
	if len(a.queue) != 1 || len(c.queue) != 1 {
		t.Fatalf("frames after an answer: %d, %d", len(a.queue), len(c.queue))
	}
	a.send(frameFrom(address(2), address(1)))
	if len(b.queue) != 2 || len(c.queue) != 1 {
		t.Fatalf("frames after learning: %d, %d", len(b.queue), len(c.queue))
	}
	a.send(frameFrom(address(1), address(1))) // to itself
	if len(a.queue) != 1 {
		t.Errorf("a port got its own frame")
	}
}

func TestASwitchDropsWhatDoesNotFit(t *testing.T) {
	s := newEthernetSwitch()
	a, b := s.connect(), s.connect()
	a.send(make([]byte, headerSize-1))
	a.send(make([]byte, maxFrame+1))
	if len(b.queue) != 0 {
		t.Errorf("%d frames of a wrong size were forwarded", len(b.queue))
	}
	for range 2 * queueLength {
		a.send(frameFrom(broadcast, address(1)))
	}
	if len(b.queue) != queueLength {
		t.Errorf("%d frames wait", len(b.queue))
	}
}

// TestASwitchForwardsAsItsPortsMove compares the switch with a model: the last port that sent from an
// address has it, unless it has too many.
func TestASwitchForwardsAsItsPortsMove(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	s := newEthernetSwitch()
	var ports []*port
	model := map[hardwareAddress]*port{}
	for range 5000 {
		switch n := r.IntN(20); {
		case n == 0 && len(ports) < 8 || len(ports) < 2:
			ports = append(ports, s.connect())
		case n == 1 && len(ports) > 2:
			i := r.IntN(len(ports))
			gone := ports[i]
			ports = append(ports[:i:i], ports[i+1:]...)
			gone.disconnect()
			gone.send(frameFrom(broadcast, address(7))) // has no effect
			for k, v := range model {
				if v == gone {
					delete(model, k)
				}
			}
		default:
			from, source, destination := ports[r.IntN(len(ports))], address(r.IntN(10)), address(r.IntN(10))
			from.send(frameFrom(destination, source))
			model[source] = from
			to := model[destination]
			for _, p := range ports {
				want := 0
				if p != from && (to == nil || to == p) {
					want = 1
				}
				if len(p.queue) != want {
					t.Fatalf("a port got %d frames, want %d", len(p.queue), want)
				}
				for len(p.queue) > 0 {
					<-p.queue
				}
			}
		}
	}
}

func TestAPortHasALimitedNumberOfAddresses(t *testing.T) {
	s := newEthernetSwitch()
	a, b := s.connect(), s.connect()
	for i := range 10 * maxAddresses {
		a.send(frameFrom(broadcast, address(i)))
	}
	if len(s.known) != maxAddresses {
		t.Errorf("the switch knows %d addresses", len(s.known))
	}
	b.send(frameFrom(broadcast, address(0))) // the address has moved
	a.send(frameFrom(broadcast, address(10*maxAddresses)))
	if s.known[address(0)] != b || s.known[address(10*maxAddresses)] != a {
		t.Error("an address that moved still counts")
	}
}
