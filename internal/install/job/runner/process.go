package runner

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/install/job/pod"
	"hotspare.io/hotspare/internal/redact"
)

const (
	// logName is the name of a pod's log in its folder, workName that of its work folder.
	logName  = "log"
	workName = "work"
	// stopTimeout is how long a pod may take to end before it is killed.
	stopTimeout = 60 * time.Second
)

// inheritedEnv lists the variables that a pod inherits from this process. It contains no
// credentials: a cluster has its own.
var inheritedEnv = []string{"PATH", "TZ", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// Programs are the programs that a pod runs.
type Programs struct {
	// Hotspare is the path of this program, Installer that of openshift-install.
	Hotspare, Installer string
	// Hub is the URL of the API.
	Hub string
}

// LaunchPod starts a pod as a process.
func (g Programs) LaunchPod(_ context.Context, p Pod) (Process, error) {
	hub, err := url.Parse(g.Hub)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's URL: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(p.Dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of a pod: %w", err)
	}
	args := p.Args
	if len(args) > 1 && args[1] != "copy" {
		args = append(args, "--installer", g.Installer)
	}
	cmd := exec.Command(g.Hotspare, args...) //nolint:noctx // Stop ends it with a grace period
	for _, name := range inheritedEnv {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, p.Env...)
	cmd.Env = append(cmd.Env, "KUBERNETES_SERVICE_HOST="+hub.Hostname(), "KUBERNETES_SERVICE_PORT="+hub.Port(), "HOTSPARE_PARENT_PIPE=1")
	cmd.Stdout, cmd.Stderr = log, log
	// A Ctrl-C in the terminal goes to hotspare up, which stops its pods in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The pipe closes when this process ends, for whatever reason, and the pod ends with it.
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a pod: %w", err), log.Close())
	}
	l := &podProcess{cmd: cmd, dir: p.Dir, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.waitForExit()
		_, _ = pipe.Close(), log.Close() // nothing reads or writes them any more
	}()
	return l, nil
}

// podProcess is a pod that runs as a process.
type podProcess struct {
	cmd  *exec.Cmd
	dir  string
	stop chan struct{}
	done chan struct{}
	err  error
}

// Stop sends SIGTERM, and SIGKILL if the process does not end.
func (p *podProcess) Stop() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
}

// Done returns a channel that is closed when the process and its installer have ended.
func (p *podProcess) Done() <-chan struct{} { return p.done }

// Err returns nil, or an error with the last line of the log.
func (p *podProcess) Err() error { return p.err }

// waitForExit waits until the process ends, stops it on request, and leaves nothing running.
func (p *podProcess) waitForExit() {
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-p.stop:
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // the process may just have ended
		select {
		case err = <-ended:
		case <-time.After(stopTimeout):
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the process may just have ended
			err = <-ended
		}
	}
	if err != nil {
		if tail, noLog := redact.ReadUnscrubbedTail(filepath.Join(p.dir, logName), 1); noLog == nil && tail != "" {
			err = errors.New(strings.TrimSpace(redact.Text(tail)))
		}
	}
	p.err = errors.Join(err, killInstaller(p.dir))
}

// killInstaller kills the installer that a pod left running when it ended.
func killInstaller(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, workName, pod.PIDFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the installer of a pod: %w", err)
	}
	group, err := strconv.Atoi(string(raw))
	if err != nil || group < 2 {
		return fmt.Errorf("finding the installer of a pod: %q is not a process ID", raw)
	}
	if err := syscall.Kill(-group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending the installer of a pod: %w", err)
	}
	return os.Remove(filepath.Join(dir, workName, pod.PIDFile))
}

// StopOrphan reports whether the pod of an earlier process, in the folder dir, has ended. It kills
// whatever that pod left running.
func StopOrphan(dir string) (bool, error) {
	work := filepath.Join(dir, workName)
	if _, err := os.Stat(work); errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	lock, err := flock.Acquire(pod.LockPath(work))
	var held *flock.LockedError
	if errors.As(err, &held) {
		return false, nil // the pod has seen its pipe close and is about to end
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(killInstaller(dir), lock.Release())
}
