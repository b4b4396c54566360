package hostfacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/embedded/nodeprograms"
)

// lockFile is an environment variable of iptables: the lock of this machine is not needed in another namespace, and
// only root may open it.
const lockFile = "XTABLES_LOCKFILE=/dev/null"

// tryKernelFeatures records which packet filters cannot use what kube-proxy needs of the kernel. It tries those that
// print their versions, at the same time.
func (h host) tryKernelFeatures(ctx context.Context, found map[string]doctor.Program) {
	type trial struct {
		program string
		doctor.Program
	}
	var trials []*trial
	for name := range nodeprograms.KernelFeatures {
		if p, exists := found[name]; exists && p.Err == "" {
			trials = append(trials, &trial{name, p})
		}
	}
	var tried sync.WaitGroup
	for _, t := range trials {
		tried.Go(func() { t.Lacks, t.LacksErr = h.findLackingFeature(ctx, t.program, t.Path) })
	}
	tried.Wait()
	for _, t := range trials {
		found[t.program] = t.Program
	}
}

// findLackingFeature returns the first feature of the kernel that a packet filter cannot use, and the reason.
func (h host) findLackingFeature(ctx context.Context, program, path string) (feature, reason string) {
	missing, err := nodeprograms.FindMissing(program, false, func(arguments []string) error { return h.runIsolated(ctx, path, arguments...) })
	return missing.Name, formatError(err)
}

// vethTrial are the arguments with which the program ip creates a pair of veth interfaces.
var vethTrial = []string{"link", "add", "hotspare0", "type", "veth", "peer", "name", "hotspare1"}

// tryVeth creates a pair of veth interfaces in a network namespace that ends afterwards. If the user is not root, a
// program has to do it; without one, the lists of the kernel's modules say whether it can.
func (h host) tryVeth(ctx context.Context, f *doctor.Facts) (doctor.Support, string) {
	var err error
	ip := h.findProgram("ip")
	switch {
	case f.UserID == 0:
		err = h.createVeth()
	case ip != "":
		err = h.runIsolated(ctx, ip, vethTrial...)
	case h.findModule(f.Kernel, "veth") == doctor.Unsupported:
		err = errors.New("there is no module veth")
	default:
		return h.findModule(f.Kernel, "veth"), ""
	}
	if err != nil {
		return doctor.Unsupported, err.Error()
	}
	return doctor.Supported, ""
}

// runIsolated runs a program in a network namespace of its own. The error contains the first line that the program
// printed as an error.
func (h host) runIsolated(ctx context.Context, path string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var failure firstBytes
	cmd := exec.CommandContext(ctx, filepath.Join(h.root, path), args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", lockFile)
	cmd.Stderr = &failure
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	h.isolate(cmd.SysProcAttr)
	err := h.runInGroup(ctx, cmd)
	line, _, _ := bytes.Cut(bytes.TrimSpace(failure.text), []byte("\n"))
	if err == nil || len(line) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.ToValidUTF8(string(line[:min(len(line), maxReason)]), ""))
}

// maxReason is the maximum length of the line of a program in an error.
const maxReason = 200

// isolate makes a program start in a network namespace of its own. A user who is not root is root of it.
func isolate(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWNET
	if os.Geteuid() != 0 {
		enterUserNamespace(attributes)
	}
}

// enterUserNamespace makes a program start as root of a user namespace that maps this user only.
func enterUserNamespace(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
}

// createVeth creates a pair of veth interfaces in a network namespace of a thread, which leaves the namespace afterwards.
func createVeth() error {
	created := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		restored, err := createVethInThread()
		if restored { // otherwise the thread ends with this goroutine
			runtime.UnlockOSThread()
		}
		created <- err
	}()
	return <-created
}

// createVethInThread creates the interfaces, and reports whether the thread is in its namespace again.
func createVethInThread() (restored bool, err error) {
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true, fmt.Errorf("opening the network namespace of the thread: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(own)) }()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return true, fmt.Errorf("creating a network namespace: %w", err)
	}
	err = addVethPair()
	return unix.Setns(own, unix.CLONE_NEWNET) == nil, err
}

func addVethPair() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "hotspare0"
	return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "hotspare1"})
}
