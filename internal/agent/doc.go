// Package agent is the program on a data plane: it makes there what the hub lists in
// the DataPlaneAgent of its name, and reports what there is. It watches both sides.
// What to do is decided by package plan.
package agent
