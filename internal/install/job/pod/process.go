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

// PIDFile, in the work folder, has the process group of the installer that runs.
const PIDFile = "installer.pid"

// runInstaller runs the installer on its folder until it ends. When ctx ends, it and its
// children are told to, and after the grace made to. None of them is left.
func (p *installerRun) runInstaller(ctx context.Context, args ...string) error {
	what := strings.Join(args, " ")
	fmt.Fprintf(p.Out, "running openshift-install %s\n", what)
	cmd := exec.CommandContext(ctx, p.Installer, append(args, "--dir", p.clusterDir(), "--log-level", "debug")...)
	cmd.Dir = p.Work
	cmd.Env = p.installerProcessEnv()
	cmd.Stdout, cmd.Stderr = p.log, p.log
	// A group of its own: the installer starts providers, which have to go with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = p.Grace
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the installer: %w", err)
	}
	pid := filepath.Join(p.Work, PIDFile)
	noted := os.WriteFile(pid, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	err := cmd.Wait()
	killed := signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	p.log.flushPending()
	if err != nil {
		err = fmt.Errorf("openshift-install %s: %w", what, err)
	}
	return errors.Join(err, noted, killed, os.Remove(pid))
}

// signalGroup signals a process group; that there is none is fine.
func signalGroup(group int, sig syscall.Signal) error {
	err := syscall.Kill(-group, sig)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("signalling the installer: %w", err)
}

// installerProcessEnv is the installer's: it writes where it may.
func (p *installerRun) installerProcessEnv() []string {
	return append(append([]string{}, p.Env...), "HOME="+p.homeDir(), "TMPDIR="+p.tempDir(), "XDG_CACHE_HOME="+filepath.Join(p.homeDir(), ".cache"))
}
