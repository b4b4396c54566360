package controlplane

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// A PortTakenError says that another program listens on a port we need.
type PortTakenError struct {
	Port int
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d of 127.0.0.1 is taken by another program: stop that program (ss -ltnp 'sport = :%d' shows it)",
		e.Port, e.Port)
}

// Listen listens on a loopback port; 0 stands for any that is free. The error is
// a *PortTakenError if somebody else has the port.
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
