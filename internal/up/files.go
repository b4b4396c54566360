package up

import (
	"fmt"
	"syscall"
)

// Limits on open files. A process that cannot open a file may be unable to write its data, and
// ends.
const (
	// ownFiles is the number of files reserved for hotspare itself: 200 are open while it is idle,
	// and each machine of a local cluster takes some.
	ownFiles = 384
	// minFiles is the lowest limit on open files to start with: the files above ownFiles are for
	// connections.
	minFiles = 640
)

// connections is the maximum number of open connections of each server.
// held are those to sleeping clusters, which need two open files each.
type connections struct{ api, console, metrics, held int }

// raiseFileLimit raises the soft limit on open files to the hard limit, and returns it.
func raiseFileLimit() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit on open files: %w", err)
	}
	raised := limit
	raised.Cur = raised.Max
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) != nil {
		raised = limit // macOS reports an unlimited hard limit that it does not allow
	}
	return raised.Cur, nil
}

// divideConnections divides the available file descriptors among the servers. It returns an error
// if there are too few.
func divideConnections(files uint64) (connections, error) {
	if files < minFiles {
		return connections{}, fmt.Errorf("this process can open %d files, and hotspare needs %d: raise the hard limit on open files "+
			"(ulimit -Hn in a root shell, LimitNOFILE of a systemd unit, --ulimit nofile of a container)", files, minFiles)
	}
	spare := files - ownFiles
	return connections{
		api:     int(min(spare/2, 4096)),
		console: int(min(spare/8, 512)),
		metrics: int(min(spare/8, 128)),
		held:    int(min(spare/16, 4096)),
	}, nil
}
