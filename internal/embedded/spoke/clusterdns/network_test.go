package clusterdns

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/internal/embedded/spoke/clusterdns/zone"
)

var (
	serverUDP = &net.UDPAddr{IP: net.IPv4(10, 96, 0, 10), Port: 53}
	serverTCP = &net.TCPAddr{IP: net.IPv4(10, 96, 0, 10), Port: 53}
	clientUDP = &net.UDPAddr{IP: net.IPv4(10, 244, 0, 5), Port: 4242}
)

// A packetPipe is a net.PacketConn with one client, which is at the other end of a pipe.
type packetPipe struct{ net.Conn }

func (p packetPipe) LocalAddr() net.Addr { return serverUDP }

func (p packetPipe) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := p.Read(b)
	return n, clientUDP, err
}

func (p packetPipe) WriteTo(b []byte, _ net.Addr) (int, error) { return p.Write(b) }

// A pipeListener accepts pipes.
type pipeListener struct {
	dialed chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{dialed: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return serverTCP }

func (l *pipeListener) connect(t *testing.T) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	select {
	case l.dialed <- server:
		return client
	case <-l.closed:
		t.Fatal("the server has stopped listening")
		return nil
	}
}

// A served is a server that runs, and its client.
type served struct {
	t       *testing.T
	packets net.Conn
	streams *pipeListener
	stop    context.CancelFunc
	ended   chan error
}

// serve runs a server inside of a bubble of package synctest. The bubble fails if a goroutine of the server
// is left.
func serve(t *testing.T, o Options) *served {
	t.Helper()
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	client, socket := net.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	s := &served{t: t, packets: client, streams: newPipeListener(), stop: stop, ended: make(chan error, 1)}
	go func() { s.ended <- server.Serve(ctx, packetPipe{socket}, s.streams) }()
	t.Cleanup(func() {
		stop()
		if err := <-s.ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

func query(qtype uint16, name string) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
}

// sendPacket sends the message over UDP, and returns the answer and its length.
func (s *served) sendPacket(raw []byte) (*dns.Msg, int) {
	s.t.Helper()
	if _, err := s.packets.Write(raw); err != nil {
		s.t.Fatal(err)
	}
	return s.receivePacket()
}

func (s *served) receivePacket() (*dns.Msg, int) {
	s.t.Helper()
	buffer := make([]byte, dns.MaxMsgSize)
	n, err := s.packets.Read(buffer)
	if err != nil {
		s.t.Fatal(err)
	}
	m := new(dns.Msg)
	if err := m.Unpack(buffer[:n]); err != nil {
		s.t.Fatal(err)
	}
	return m, n
}

// ask asks over UDP.
func (s *served) ask(m *dns.Msg) *dns.Msg {
	s.t.Helper()
	reply, _ := s.sendPacket(pack(s.t, m))
	if reply.Id != m.Id || !reply.Response {
		s.t.Fatalf("not the answer to %v: %v", m, reply)
	}
	return reply
}

// askStream asks over TCP.
func (s *served) askStream(m *dns.Msg) *dns.Msg {
	s.t.Helper()
	conn := s.streams.connect(s.t)
	defer conn.Close()
	if err := writeStream(conn, m); err != nil {
		s.t.Fatal(err)
	}
	reply, err := readStream(conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

func pack(t *testing.T, m *dns.Msg) []byte {
	t.Helper()
	raw, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func writeStream(w io.Writer, m *dns.Msg) error {
	raw, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...))
	return err
}

func readStream(r io.Reader) (*dns.Msg, error) {
	var length uint16
	if err := binary.Read(r, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, err
	}
	m := new(dns.Msg)
	return m, m.Unpack(raw)
}

// resolvers are upstreams, by address. Each returns the messages with which it answers a query; one that is
// nil cannot be reached.
type resolvers struct {
	of    map[string]func(network string, q *dns.Msg) []*dns.Msg
	mu    sync.Mutex
	asked []string
	open  atomic.Int64
}

// Dial is for Options.Dial.
func (r *resolvers) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if ctx.Err() != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, "too late")
		return nil, ctx.Err()
	}
	answer := r.of[address]
	if answer == nil {
		return nil, fmt.Errorf("connecting to %s: refused", address)
	}
	client, server := net.Pipe()
	r.open.Add(1)
	go func() {
		defer r.open.Add(-1)
		defer server.Close()
		r.serve(server, network, address)
	}()
	return client, nil
}

func (r *resolvers) serve(conn net.Conn, network, address string) {
	q, err := readQuery(conn, network)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.asked = append(r.asked, fmt.Sprintf("%s %s %s", network, address, q.Question[0].Name))
	r.mu.Unlock()
	for _, m := range r.of[address](network, q) {
		if err := writeMessage(conn, network, m); err != nil {
			return
		}
	}
	_, _ = conn.Read(make([]byte, 1)) // until the client closes
}

func readQuery(conn net.Conn, network string) (*dns.Msg, error) {
	if network == "tcp" {
		return readStream(conn)
	}
	buffer := make([]byte, dns.MaxMsgSize)
	n, err := conn.Read(buffer)
	if err != nil {
		return nil, err
	}
	m := new(dns.Msg)
	return m, m.Unpack(buffer[:n])
}

func writeMessage(conn net.Conn, network string, m *dns.Msg) error {
	if network == "tcp" {
		return writeStream(conn, m)
	}
	raw, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = conn.Write(raw)
	return err
}

func (r *resolvers) takeAsked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.asked
	r.asked = nil
	return out
}

// records returns a resolver that answers with these records, in the notation of zone files.
func records(rcode int, lines ...string) func(string, *dns.Msg) []*dns.Msg {
	return func(_ string, q *dns.Msg) []*dns.Msg {
		m := new(dns.Msg).SetRcode(q, rcode)
		m.RecursionAvailable = true
		for _, line := range lines {
			r, err := dns.NewRR(line)
			if err != nil {
				panic(err)
			}
			if r.Header().Rrtype == dns.TypeSOA {
				m.Ns = append(m.Ns, r)
				continue
			}
			m.Answer = append(m.Answer, r)
		}
		return []*dns.Msg{m}
	}
}

func silent(string, *dns.Msg) []*dns.Msg { return nil }

// A memorySource is a Source that tests change.
type memorySource struct {
	mu         sync.Mutex
	generation uint64
	synced     bool
	snapshot   zone.Snapshot
	reads      int
}

func (s *memorySource) Generation() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation, s.synced
}

func (s *memorySource) Objects() zone.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.snapshot
}

func (s *memorySource) set(services ...*corev1.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot.Services = services
	s.synced = true
	s.generation++
}

func clusterIP(namespace, name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}},
	}
}

func externalName(namespace, name, target string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: target},
	}
}

func newSource(services ...*corev1.Service) *memorySource {
	s := &memorySource{}
	s.set(services...)
	return s
}

// clock returns a clock that starts at a fixed time, and a function that moves it.
func clock() (now func() time.Time, advance func(time.Duration)) {
	var passed atomic.Int64
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { return start.Add(time.Duration(passed.Load())) },
		func(d time.Duration) { passed.Add(int64(d)) }
}
