// Package processtree freezes a process with all its descendants, and thaws them.
//
// It uses SIGSTOP and SIGCONT, which need no rights beyond those over the processes, and work with every
// version of control groups and without them. The freezer of control groups of version 1 was not
// chosen, because a frozen process cannot be killed; that of version 2 would be another way for some
// machines only.
//
// A process is stopped before its children, and continued after them. Therefore no process sees that a
// child is stopped, as a shell with job control would.
package processtree

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrUnsupported reports that processes of this operating system cannot be frozen.
var ErrUnsupported = errors.New("only Linux can freeze processes")

// process is a process as /proc/ID/stat shows it.
type process struct {
	id, parent int
	state      string
	// start is when the process started, in ticks since the boot: a later process with the same ID has
	// another one.
	start uint64
}

// Tree is a frozen tree of processes.
type Tree struct {
	// stopped are the processes that were stopped, parents before children.
	stopped []process
}

// parseStat parses the start of a file /proc/ID/stat: ID (NAME) STATE PARENT … with the start time as 22nd
// field.
func parseStat(line string) (process, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')') // the name may contain both
	if open < 0 || end < open {
		return process{}, fmt.Errorf("%q is not the status of a process", line)
	}
	const startField = 22 - 3 // after ID and name
	fields := strings.Fields(line[end+1:])
	if len(fields) <= startField {
		return process{}, fmt.Errorf("%q is not the status of a process", line)
	}
	id, err := strconv.Atoi(strings.TrimSpace(line[:open]))
	parent, parentErr := strconv.Atoi(fields[1])
	start, startErr := strconv.ParseUint(fields[startField], 10, 64)
	if err := errors.Join(err, parentErr, startErr); err != nil {
		return process{}, fmt.Errorf("reading the status of a process: %w", err)
	}
	return process{id: id, parent: parent, state: fields[0], start: start}, nil
}

// descendants returns the process root and all its descendants among all, parents before children.
func descendants(all []process, root int) []process {
	children := map[int][]process{}
	var found []process
	for _, p := range all {
		if p.id == root {
			found = append(found, p)
			continue
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].id]...)
	}
	return found
}

// isStopped reports whether the process does not run: it is stopped, or it has ended.
func (p process) isStopped() bool { return slices.Contains([]string{"T", "t", "Z", "X"}, p.state) }

// uninterruptible is the state of a process that waits in the kernel and cannot be stopped there. It stops before it runs
// again. A parent that has used vfork is in this state until its child, which may be stopped, executes another
// program.
const uninterruptible = "D"

// decideSignals returns the processes of a tree to stop now, and whether the tree is frozen: all its
// processes are stopped, or will be before they run again. stopped are those that were stopped before.
func decideSignals(tree, stopped []process) (stop []process, frozen bool) {
	sent := map[int]uint64{}
	for _, p := range stopped {
		sent[p.id] = p.start
	}
	frozen = true
	for _, p := range tree {
		start, ok := sent[p.id]
		isSent := ok && start == p.start
		if p.isStopped() || isSent && p.state == uninterruptible {
			continue
		}
		frozen = false
		if !isSent {
			stop = append(stop, p)
		}
	}
	return stop, frozen
}
