package machinepool

// PoolLoad is the load by which an autoscaled pool is sized.
type PoolLoad struct {
	// Nodes is the number of the pool's nodes, including those that are still joining.
	Nodes int64
	// Joining is the number of those whose node is not ready yet.
	Joining int64
	// Pending is the number of pods that fit on no node of the cluster and could run on a new
	// node of the pool.
	Pending int64
	// Empty is the number of nodes that have been empty for long enough.
	Empty int64
}

// DesiredNodes returns how many nodes an autoscaled pool should have now. The pool grows by one
// node at a time and waits for that node, because all pending pods may fit on it. It shrinks by
// all empty nodes if no pod is pending. The result is always within the range.
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
