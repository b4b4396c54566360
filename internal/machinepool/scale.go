package machinepool

// PoolLoad is what the size of an autoscaled pool goes by.
type PoolLoad struct {
	// Nodes are the pool's, those that are on their way to join included.
	Nodes int64
	// Joining are those of them that have no node yet that is ready.
	Joining int64
	// Pending are the pods that fit nowhere in the cluster and could run on a new node
	// of the pool.
	Pending int64
	// Empty are the nodes on which nothing has run for long enough.
	Empty int64
}

// DesiredNodes returns how many nodes an autoscaled pool should have now. It grows by one at a
// time, and waits for that one: it may take all that is pending. It shrinks by all that
// is empty, when nothing is pending. The bounds count first.
func DesiredNodes(r Range, l PoolLoad) int64 {
	n := l.Nodes
	switch {
	case l.Pending > 0 && l.Joining == 0:
		n++
	case l.Pending == 0:
		n -= min(max(l.Empty, 0), max(l.Nodes, 0))
	}
	return r.clamp(n)
}
