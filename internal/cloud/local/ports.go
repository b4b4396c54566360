package local

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"strings"

	"hotspare.io/hotspare/internal/fault"
)

// API ports of clusters come from this range. It is below the ephemeral ports that systems use for
// outgoing connections (from 32768 on Linux, 49152 on macOS): a cluster keeps its port while it
// hibernates, and otherwise a client could be using that port when the cluster resumes. The range
// is also below the node ports of Kubernetes (30000).
const (
	firstPort = 20000
	portCount = 10000
)

// A PortError reports why a cluster cannot have the port that it asks for.
type PortError struct {
	Port int
	// Owner is the infraID of the cluster that owns the port; empty if another program uses it.
	Owner string
}

func (e *PortError) Error() string {
	if e.Owner != "" {
		return fmt.Sprintf("port %d of 127.0.0.1 belongs to cluster %s, even while it hibernates: "+
			"use another port, or delete that cluster", e.Port, e.Owner)
	}
	return fmt.Sprintf("port %d of 127.0.0.1 is taken by another program: "+
		"use another port, or find that program with `ss -ltnp` or `lsof -i :%d` and stop it", e.Port, e.Port)
}

// assignAPIPort returns the port of a cluster: the recorded port, or else the requested port, or,
// if asked is 0, a port that no machine has recorded and no program listens on. The caller must
// hold s.mu.
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
		return 0, fault.NewDenied("no port between %d and %d is free for cluster %s: delete clusters, or stop programs that listen on these ports",
			firstPort, firstPort+portCount-1, infraID)
	}
	return port, nil
}

// readAPIPortOwners returns the infraIDs of the clusters that have a port, by port. The caller must
// hold s.mu.
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

// chooseFreePort returns a free port, or 0 if there is none. The search starts at an offset derived
// from the infraID, so that two stores on one computer rarely choose the same port, and the port of
// a deleted cluster is not immediately given to the next one.
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

// isLoopbackPortFree reports whether no program listens on a loopback port.
func isLoopbackPortFree(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// FindClusterByServer returns the infraID of the cluster whose API has a URL, as in https://127.0.0.1:20000; "" if there
// is none. It is an error if there is none and a cluster cannot be read.
func (s *Store) FindClusterByServer(url string) (string, error) {
	port, found := strings.CutPrefix(url, "https://127.0.0.1:")
	number, err := strconv.Atoi(port)
	if !found || err != nil {
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.ListClusters()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, id := range ids {
		if checkDNSLabel("infraID", id) != nil {
			continue // this store did not create that folder
		}
		ms, err := s.observeMachines(id)
		if err != nil {
			errs = append(errs, err)
		}
		if slices.ContainsFunc(ms, func(m observedMachine) bool { return m.APIPort == number }) {
			return id, nil
		}
	}
	return "", errors.Join(errs...)
}
