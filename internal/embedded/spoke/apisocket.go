package spoke

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// takeAPISocket returns the socket that the parent has passed to this process; nil if there is none. No other program
// inherits it.
func takeAPISocket() *os.File {
	if os.Getenv(machine.APISocketVariable) != "1" {
		return nil
	}
	unix.CloseOnExec(machine.APISocketFile)
	return os.NewFile(machine.APISocketFile, "the API's socket")
}

// listenAPI listens on the port of the API: by the socket of the parent, which keeps it while this process sleeps or
// has ended, or else by one of its own.
func (m *runningMachine) listenAPI() (net.Listener, error) {
	if m.socket == nil {
		return controlplane.Listen(m.APIPort)
	}
	l, err := net.FileListener(m.socket)
	if err != nil {
		return nil, fmt.Errorf("listening on the socket of port %d: %w", m.APIPort, err)
	}
	return l, nil
}
