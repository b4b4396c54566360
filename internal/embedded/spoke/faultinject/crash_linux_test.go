package faultinject

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// crashVariable makes the test binary crash.
const crashVariable = "HOTSPARE_TEST_CRASH"

func TestTheProcessOfAMachineKillsItself(t *testing.T) {
	if os.Getenv(crashVariable) != "" {
		killOwnProcess()
		os.Exit(0) // it is alive
	}
	for name, c := range map[string]struct {
		attributes *syscall.SysProcAttr
		signal     syscall.Signal
		code       int
	}{
		"an ordinary process": {nil, syscall.SIGKILL, -1},
		"the first process of its namespace": {&syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}, -1, machine.CrashExitCode},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestTheProcessOfAMachineKillsItself$")
			cmd.Env, cmd.SysProcAttr = append(os.Environ(), crashVariable+"=1"), c.attributes
			err := cmd.Run()
			var exit *exec.ExitError
			if cmd.ProcessState == nil && c.attributes != nil {
				t.Skipf("no right to create namespaces: %v", err)
			}
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if status.Signal() != c.signal || cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("it ended: %v", cmd.ProcessState)
			}
		})
	}
}
