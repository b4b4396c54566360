package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// PIDFile, in the work folder, contains the process group of the running installer.
const PIDFile = "installer.pid"

// runInstaller runs the installer on its folder until it ends. When ctx ends, it sends SIGTERM to
// the installer and its children, and kills them after the grace period. None of them is left
// running.
func (r *installerRun) runInstaller(ctx context.Context, args ...string) error {
	what := strings.Join(args, " ")
	fmt.Fprintf(r.Out, "running openshift-install %s\n", what)
	cmd := exec.CommandContext(ctx, r.Installer, append(args, "--dir", r.clusterDir(), "--log-level", "debug")...)
	cmd.Dir = r.Work
	cmd.Env = r.installerProcessEnv()
	cmd.Stdout, cmd.Stderr = r.log, r.log
	// The installer starts providers, which must be signaled with it: it gets its own process group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = r.Grace
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the installer: %w", err)
	}
	pid := filepath.Join(r.Work, PIDFile)
	noted := os.WriteFile(pid, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	err := cmd.Wait()
	killed := signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	r.log.flushPending()
	if err != nil {
		err = fmt.Errorf("openshift-install %s: %w", what, err)
	}
	return errors.Join(err, noted, killed, os.Remove(pid))
}

// signalGroup signals a process group; a group that does not exist is not an error.
func signalGroup(group int, sig syscall.Signal) error {
	err := syscall.Kill(-group, sig)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("signalling the installer: %w", err)
}

// installerProcessEnv returns the installer's environment, with writable folders as HOME, TMPDIR and
// XDG_CACHE_HOME.
func (r *installerRun) installerProcessEnv() []string {
	return append(append([]string{}, r.Env...), "HOME="+r.homeDir(), "TMPDIR="+r.tempDir(), "XDG_CACHE_HOME="+filepath.Join(r.homeDir(), ".cache"))
}
