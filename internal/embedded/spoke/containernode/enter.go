//go:build linux

package containernode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// enteredProcess is an environment variable of a process that Enter has prepared. Its value is the
// ID of the process outside of its namespaces.
const enteredProcess = "HOTSPARE_MACHINE_PROCESS"

// withoutCgroups is an environment variable that Enter sets if the node has no control groups.
const withoutCgroups = "HOTSPARE_MACHINE_WITHOUT_CGROUPS"

// hasCgroups reports whether the node of this process has control groups, with which it limits pods.
func hasCgroups() bool { return os.Getenv(withoutCgroups) == "" }

// ProcessID returns the ID of this process as the program that started the machine sees it.
func ProcessID() int {
	if id, err := strconv.Atoi(os.Getenv(enteredProcess)); err == nil {
		return id
	}
	return os.Getpid()
}

// Enter prepares this process, which must be the first process of new namespaces, for Run: it moves
// the process into control groups and a root folder of its own, and then executes this program
// again. It returns at once in the process that it has prepared, and otherwise only if it fails.
func Enter(dir string, c machine.Config) error {
	if os.Getenv(enteredProcess) != "" {
		return nil
	}
	if os.Getpid() != 1 {
		return fmt.Errorf("starting machine %s: %w", c.Name, errNotPrepared)
	}
	return fmt.Errorf("starting machine %s: %w", c.Name, enterNamespaces(dir, c))
}

// enterOwnCgroups moves this process into control groups of its own and into a namespace in which they are
// the roots. It returns nil if a user who is not root has no right to create control groups: the node
// then runs without them.
func enterOwnCgroups(name string) ([]machine.CgroupHierarchy, error) {
	groups, err := enterCgroups(name)
	if errors.Is(err, fs.ErrPermission) && isUserNamespace() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The namespace of control groups is a thread's. The thread that executes the program passes its
	// own on.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return nil, fmt.Errorf("creating a namespace of control groups: %w", err)
	}
	return groups, nil
}

// isUserNamespace reports whether root of this process is not root of the computer.
func isUserNamespace() bool {
	raw, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(raw)), " ") != "0 0 4294967295"
}

// enterNamespaces executes this program again in the prepared process. It returns only if that fails.
func enterNamespaces(dir string, c machine.Config) error {
	// The proc file system is still that of the program that started the machine.
	outside, err := os.Readlink("/proc/self")
	if err != nil {
		return fmt.Errorf("reading this process's ID: %w", err)
	}
	program, err := os.Open("/proc/self/exe") // its path may not exist in the new root folder
	if err != nil {
		return fmt.Errorf("opening this program: %w", err)
	}
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	groups, err := enterOwnCgroups(c.Name)
	if err != nil {
		return err
	}
	if err := enterRoot(dir, c, groups); err != nil {
		return err
	}
	environment := append(withoutSecrets(os.Environ()), enteredProcess+"="+outside, "PATH="+searchPath, "HOME=/root")
	if groups == nil {
		environment = append(environment, withoutCgroups+"=1")
	}
	path := fmt.Sprintf("/proc/self/fd/%d", program.Fd())
	return fmt.Errorf("executing this program again: %w", unix.Exec(path, os.Args, environment))
}
