//go:build linux

package containernode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// reapInterval is the interval between searches for orphans.
const reapInterval = 5 * time.Second

// reapOrphans removes ended processes that became children of this process, the first of its
// namespace, because their parents had ended. It does not take the result of a process from the
// goroutine that started it: that goroutine waits, so its process is not found ended twice.
func reapOrphans(ctx context.Context) {
	tick := time.NewTicker(reapInterval)
	defer tick.Stop()
	before := map[int]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := map[int]bool{}
		for _, id := range endedChildren() {
			if before[id] {
				_, _ = unix.Wait4(id, nil, unix.WNOHANG, nil) // another may have done it
				continue
			}
			now[id] = true
		}
		before = now
	}
}

// endedChildren returns the IDs of the children of this process that have ended.
func endedChildren() []int {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var ids []int
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has just been removed
		}
		if id, parent, state, err := parseStat(string(raw)); err == nil && parent == os.Getpid() && state == "Z" {
			ids = append(ids, id)
		}
	}
	return ids
}

// parseStat parses the start of a file /proc/ID/stat: ID (NAME) STATE PARENT ….
func parseStat(line string) (id, parent int, state string, err error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')') // the name may contain both
	if open < 0 || end < open {
		return 0, 0, "", fmt.Errorf("%q is not the status of a process", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 2 {
		return 0, 0, "", fmt.Errorf("%q is not the status of a process", line)
	}
	if id, err = strconv.Atoi(strings.TrimSpace(line[:open])); err != nil {
		return 0, 0, "", err
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, "", err
	}
	return id, parent, fields[0], nil
}
