// Package apiaddress keeps the address of the API of a local cluster.
//
// A Socket is the listening socket of the API. This process opens it and passes it to the control plane, which accepts
// the connections. While the control plane sleeps or has ended, the socket still exists here: no other program gets
// the port, and connections wait in the kernel until somebody accepts them. A WakeProxy accepts them while the cluster
// sleeps, and passes their bytes to the API when it is up. TLS stays between the client and the API.
package apiaddress

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Socket is the socket on which the API of a cluster is served. It is for one goroutine at a time.
type Socket struct {
	port int
	file *os.File
	// suspended is set while the socket refuses connections.
	suspended bool
}

// Open listens on a loopback port. The error is EADDRINUSE if another program uses the port.
func Open(port int) (*Socket, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // the duplicate stays open
	file, err := duplicate(l.(*net.TCPListener))
	if err != nil {
		return nil, fmt.Errorf("duplicating the socket of port %d: %w", port, err)
	}
	return &Socket{port: port, file: file}, nil
}

// duplicate returns a file of the listener's socket that stays in non-blocking mode when it is passed to a process:
// that of net.TCPListener.File does not, and the mode is one of all duplicates.
func duplicate(l *net.TCPListener) (*os.File, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	copied := -1
	controlErr := raw.Control(func(fd uintptr) {
		copied, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(copied), "the API's socket"), nil
}

// File returns the socket, to be passed to a process. It stays the Socket's.
func (s *Socket) File() *os.File { return s.file }

// Listen returns a listener that accepts the connections of the socket. To close it does not close the socket.
func (s *Socket) Listen() (net.Listener, error) {
	l, err := net.FileListener(s.file)
	if err != nil {
		return nil, fmt.Errorf("listening on the socket of port %d: %w", s.port, err)
	}
	return l, nil
}

// Suspend refuses connections, and keeps the port, until Resume. Only Linux can do it.
func (s *Socket) Suspend() error {
	if s.suspended {
		return nil
	}
	err := s.control(func(fd int) error { return syscall.Shutdown(fd, syscall.SHUT_RD) })
	if err != nil {
		return fmt.Errorf("refusing connections on port %d: %w", s.port, err)
	}
	s.suspended = true
	return nil
}

// Resume accepts connections again.
func (s *Socket) Resume() error {
	if !s.suspended {
		return nil
	}
	err := s.control(func(fd int) error { return syscall.Listen(fd, syscall.SOMAXCONN) })
	if err != nil {
		return fmt.Errorf("accepting connections on port %d again: %w", s.port, err)
	}
	s.suspended = false
	return nil
}

func (s *Socket) control(call func(fd int) error) error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	if err := raw.Control(func(fd uintptr) { callErr = call(int(fd)) }); err != nil {
		return err
	}
	return callErr
}

// Close closes the socket in this process.
func (s *Socket) Close() error { return s.file.Close() }
