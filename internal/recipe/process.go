package recipe

import (
	"os/exec"
	"syscall"
	"time"
)

// markerVariable is the environment variable that identifies all processes of a run. Its value is
// random. A process keeps it when it leaves the process group, for example with setsid.
const markerVariable = "HOTSPARE_RUN"

// process is the program of a run, with all processes that it has started.
type process struct {
	cmd    *exec.Cmd
	marker string
	// ended is closed when the program has ended and its output was read. err is then its error.
	ended chan struct{}
	err   error
}

func startProcess(cmd *exec.Cmd, marker string) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, marker: marker, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// terminate sends SIGTERM to the process group, and SIGKILL to all processes of the run when the
// program has ended, or after the grace period. It returns when none of them is left.
func (p *process) terminate(grace time.Duration) {
	p.signalGroup(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
	p.signalGroup(syscall.SIGKILL)
	killMarked(p.marker)
	<-p.ended
}

// signalGroup signals the process group, which may have ended.
func (p *process) signalGroup(signal syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, signal) }

// countProcesses returns the number of running processes of the run.
func (p *process) countProcesses() int { return len(findMarked(p.marker)) }

const (
	// killAttempts bounds the scans of killMarked, killPause is the time between two of them.
	killAttempts = 500
	killPause    = 10 * time.Millisecond
)

// killMarked sends SIGKILL to all processes with the marker, until two scans in a row find none: a
// scan can miss a process that was just started. A process that has removed the marker from its
// environment is not found.
func killMarked(marker string) {
	empty := 0
	for range killAttempts {
		pids := findMarked(marker)
		if len(pids) == 0 {
			empty++
		} else {
			empty = 0
		}
		if empty == 2 {
			return
		}
		for _, pid := range pids {
			killIfMarked(pid, marker)
		}
		time.Sleep(killPause) //nolint:forbidigo // the kernel removes killed processes within this time, and sends no event
	}
}
