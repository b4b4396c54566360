package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idleTime is the time after which an idle hub has returned unused memory.
const idleTime = 2 * time.Minute

// measureMemory reads the memory that an idle hub and the machines of a running local cluster take.
// Programs share their text segment: PSS counts a shared page once, divided among its users.
func (b *bench) measureMemory(ctx context.Context) ([]row, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(idleTime):
	}
	pid, err := b.readHubPID()
	if err != nil {
		return nil, err
	}
	hub, err := readMemoryUsage(pid)
	if err != nil {
		return nil, err
	}
	rows := []row{{"memory of the hub with its controllers", hub.String(), "< 350 MB RSS"}}
	locks, err := filepath.Glob(filepath.Join(b.dir, "machines", "*", "*", "lock"))
	if err != nil {
		return nil, err
	}
	whole := map[string]memorySize{}
	for _, lock := range locks {
		raw, err := os.ReadFile(lock)
		if err != nil {
			return nil, err
		}
		one, err := readMemoryUsage(strings.TrimSpace(string(raw)))
		if err != nil {
			continue // it is turned off
		}
		machine := filepath.Dir(lock)
		cluster := filepath.Base(filepath.Dir(machine))
		sum := whole[cluster]
		whole[cluster] = memorySize{sum.rss + one.rss, sum.pss + one.pss}
		if strings.Contains(filepath.Base(machine), "master") {
			rows = append(rows, row{"memory of a local control plane", one.String(), ""})
		}
	}
	for _, sum := range whole {
		rows = append(rows, row{"memory of a whole local cluster", sum.String(), "< 300 MB PSS"})
		break
	}
	return rows, nil
}

// readHubPID returns the process ID of the hub.
func (b *bench) readHubPID() (string, error) {
	raw, err := os.ReadFile(filepath.Join(b.dir, "lock"))
	return strings.TrimSpace(string(raw)), err
}

// readProcessorTime returns the processor time that the hub has used since it started. Other
// programs on the machine do not affect how much of it a claim costs.
func (b *bench) readProcessorTime() (time.Duration, error) {
	pid, err := b.readHubPID()
	if err != nil {
		return 0, err
	}
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	// Fields are counted from the end of the program's name, which may contain blanks: utime and stime
	// are the 14th and 15th of proc_pid_stat(5).
	f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	user, err := strconv.Atoi(f[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(f[12])
	return time.Duration(user+system) * tick, err
}

// tick is the unit of proc_pid_stat(5), the same on every Linux that Go supports.
const tick = 10 * time.Millisecond

// memorySize is in kB.
type memorySize struct{ rss, pss int }

func (s memorySize) String() string {
	return fmt.Sprintf("%d MB RSS, %d MB PSS", s.rss/1024, s.pss/1024)
}

func readMemoryUsage(pid string) (memorySize, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
	if err != nil {
		return memorySize{}, err
	}
	var s memorySize
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, err := strconv.Atoi(f[1])
		switch {
		case err != nil:
		case f[0] == "Rss:":
			s.rss = n
		case f[0] == "Pss:":
			s.pss = n
		}
	}
	return s, nil
}
