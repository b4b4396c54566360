package local

import (
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
	ports     = 10000
)

// portOf returns the port of a cluster: the recorded one, or else one that no
// machine has recorded and nobody listens on. s.mu is held.
func (s *Store) portOf(infraID string) (int, error) {
	ids, err := s.Clusters()
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, id := range ids {
		ms, err := s.look(id)
		if err != nil {
			return 0, err
		}
		for _, m := range ms {
			if id == infraID && m.APIPort != 0 {
				return m.APIPort, nil
			}
			taken[m.APIPort] = true
		}
	}
	port := choosePort(infraID, func(port int) bool { return !taken[port] && portFree(port) })
	if port == 0 {
		return 0, fault.Denying("no port between %d and %d is free for cluster %s: delete clusters, or stop programs that listen there",
			firstPort, firstPort+ports-1, infraID)
	}
	return port, nil
}

// choosePort returns a port that is free, or 0. The search begins at a place
// that depends on the cluster, so that two stores on one computer seldom choose
// the same, and a port is not given to the next cluster when the last one goes.
func choosePort(infraID string, free func(int) bool) int {
	h := fnv.New32a()
	h.Write([]byte(infraID))
	offset := int(h.Sum32() % ports)
	for i := range ports {
		if port := firstPort + (offset+i)%ports; free(port) {
			return port
		}
	}
	return 0
}

// portFree reports whether nobody listens on a loopback port.
func portFree(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// checkPort returns an error if the machine serves the API and another program
// has its port.
func checkPort(c machine.Config) error {
	if c.Role != machine.ControlPlane || portFree(c.APIPort) {
		return nil
	}
	return fault.Denying("port %d of 127.0.0.1, on which %s serves the API, is taken by another program: "+
		"find it with `ss -ltnp` or `lsof -i :%d`, stop it, then start the cluster again", c.APIPort, c.InfraID, c.APIPort)
}
