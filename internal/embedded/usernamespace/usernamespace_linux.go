package usernamespace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Files that delegate IDs to users: see subuid(5) and subgid(5).
const (
	userRanges  = "/etc/subuid"
	groupRanges = "/etc/subgid"
)

// stage is an environment variable of a process that Configure has prepared.
const stage = "HOTSPARE_USER_NAMESPACE"

// Values of stage.
const (
	stageMapping = "mapping" // the process waits for its IDs
	stageEntered = "entered" // the process is root of the namespace
)

// Limits of the wait for the IDs.
const (
	mappingTimeout = 10 * time.Second
	mappingPoll    = 5 * time.Millisecond
)

// IsNeeded reports whether this process lacks the rights of root.
func IsNeeded() bool { return os.Geteuid() != 0 }

// Configure makes a command start in a user namespace of its own. After the start, call Map. The program
// must call Enter before anything that needs rights.
func Configure(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, stage+"="+stageMapping)
}

// Map gives a started process its IDs: root is this user, and the others are the user's subordinate IDs.
func Map(ctx context.Context, pid int) error {
	self, err := user.Current()
	if err != nil {
		return fmt.Errorf("finding the current user: %w", err)
	}
	for _, m := range []struct {
		program, file, what, flag string
		own                       int
	}{
		{"newgidmap", groupRanges, "group IDs", "--add-subgids", os.Getegid()},
		{"newuidmap", userRanges, "user IDs", "--add-subuids", os.Geteuid()},
	} {
		raw, err := os.ReadFile(m.file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("reading the subordinate %s: %w", m.what, err)
		}
		delegated := FindRange(string(raw), self.Username, os.Geteuid())
		if err := checkRange(delegated, m.what, m.file, m.flag, self.Username); err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, findProgram(m.program), mappingArguments(pid, m.own, delegated)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("mapping %s: %s: %w: %s", m.what, m.program, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// findProgram returns the path of a program in $PATH, /usr/sbin or /sbin, where the checks of this computer search it, too; its
// name if there is none.
func findProgram(name string) string {
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	return name
}

// Enter makes a process that Configure has prepared root of its namespace: it waits for Map and then
// executes the program again. It returns in the new program, and in all processes that were not
// prepared; otherwise only if it fails.
func Enter() error {
	if os.Getenv(stage) != stageMapping {
		return nil
	}
	if err := waitForMapping(); err != nil {
		return err
	}
	// The groups of the user are not mapped; a program of the namespace should not have their rights.
	if err := unix.Setgroups(nil); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("leaving groups: %w", err)
	}
	// Only a program that starts as root gets the rights of root.
	environment := append(withoutStage(os.Environ()), stage+"="+stageEntered)
	return fmt.Errorf("executing this program again: %w", unix.Exec("/proc/self/exe", os.Args, environment))
}

// waitForMapping waits until both kinds of IDs are mapped. No notification exists for it.
func waitForMapping() error {
	for deadline := time.Now().Add(mappingTimeout); time.Now().Before(deadline); time.Sleep(mappingPoll) { //nolint:forbidigo // see above
		mapped := true
		for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
			raw, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("waiting for user IDs: %w", err)
			}
			mapped = mapped && len(raw) > 0
		}
		if mapped {
			return nil
		}
	}
	return fmt.Errorf("waiting for user IDs: there were none after %s", mappingTimeout)
}

func withoutStage(environment []string) []string {
	var out []string
	for _, v := range environment {
		if !strings.HasPrefix(v, stage+"=") {
			out = append(out, v)
		}
	}
	return out
}
