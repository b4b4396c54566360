package controlplane

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// A PortTakenError reports that another program listens on a required port.
type PortTakenError struct {
	Port int
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d of 127.0.0.1 is taken by another program: stop that program (ss -ltnp 'sport = :%d' shows it)",
		e.Port, e.Port)
}

// Listen listens on a loopback port; 0 means any free port. The error is a *PortTakenError if
// another program uses the port.
func Listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &PortTakenError{Port: port}
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}
