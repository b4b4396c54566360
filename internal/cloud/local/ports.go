package local

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/machine"
)

// Ports of clusters come from this range. It lies below the ports that systems
// give to outgoing connections (from 32768 on Linux, 49152 on macOS): a cluster
// keeps its port while it hibernates, and some client would have it by the time
// the cluster resumes. It lies below the node ports of Kubernetes (30000), too.
const (
	firstPort = 20000
	portCount = 10000
)

// A PortError says why a cluster cannot have the port that it asks for.
type PortError struct {
	Port int
	// Owner is the infraID of the cluster whose port it is; empty if another program has it.
	Owner string
}

func (e *PortError) Error() string {
	if e.Owner != "" {
		return fmt.Sprintf("port %d of 127.0.0.1 belongs to cluster %s, even while that hibernates: "+
			"ask for another port, or delete that cluster", e.Port, e.Owner)
	}
	return fmt.Sprintf("port %d of 127.0.0.1 is taken by another program: "+
		"ask for another port, or find that program with `ss -ltnp` or `lsof -i :%d` and stop it", e.Port, e.Port)
}

// assignAPIPort returns the port of a cluster: the recorded one, or else the one that is
// asked for, or if that is 0 one that no machine has recorded and nobody listens
// on. s.mu is held.
func (s *Store) assignAPIPort(infraID string, asked int) (int, error) {
	owners, err := s.readAPIPortOwners()
	if err != nil {
		return 0, err
	}
	for port, owner := range owners {
		if owner == infraID {
			return port, nil
		}
	}
	if asked != 0 {
		if owner := owners[asked]; owner != "" || !isLoopbackPortFree(asked) {
			return 0, fault.New(fault.Denied, &PortError{Port: asked, Owner: owner})
		}
		return asked, nil
	}
	port := chooseFreePort(infraID, func(port int) bool { return owners[port] == "" && isLoopbackPortFree(port) })
	if port == 0 {
		return 0, fault.NewDenied("no port between %d and %d is free for cluster %s: delete clusters, or stop programs that listen there",
			firstPort, firstPort+portCount-1, infraID)
	}
	return port, nil
}

// readAPIPortOwners returns the infraIDs of the clusters that have a port. s.mu is held.
func (s *Store) readAPIPortOwners() (map[int]string, error) {
	ids, err := s.ListClusters()
	if err != nil {
		return nil, err
	}
	owners := map[int]string{}
	for _, id := range ids {
		ms, err := s.observeMachines(id)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			if m.APIPort != 0 {
				owners[m.APIPort] = id
			}
		}
	}
	return owners, nil
}

// chooseFreePort returns a port that is free, or 0. The search begins at a place
// that depends on the cluster, so that two stores on one computer seldom choose
// the same, and a port is not given to the next cluster when the last one goes.
func chooseFreePort(infraID string, free func(int) bool) int {
	h := fnv.New32a()
	h.Write([]byte(infraID))
	offset := int(h.Sum32() % portCount)
	for i := range portCount {
		if port := firstPort + (offset+i)%portCount; free(port) {
			return port
		}
	}
	return 0
}

// isLoopbackPortFree reports whether nobody listens on a loopback port.
func isLoopbackPortFree(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// checkAPIPortFree returns an error if the machine serves the API and another program
// has its port.
func checkAPIPortFree(c machine.Config) error {
	if c.Role != machine.ControlPlane || isLoopbackPortFree(c.APIPort) {
		return nil
	}
	return fault.NewDenied("port %d of 127.0.0.1, on which %s serves the API, is taken by another program: "+
		"find it with `ss -ltnp` or `lsof -i :%d`, stop it, then start the cluster again", c.APIPort, c.InfraID, c.APIPort)
}
