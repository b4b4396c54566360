package processtree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// checkInterval is the interval at which Freeze checks whether signals have arrived. No notification exists for
// processes that are no children.
const checkInterval = time.Millisecond

// Freeze stops the process root and all its descendants, and returns when all of them are stopped. A process
// that was stopped before is not continued by Thaw. If ctx ends first, or a process cannot be stopped,
// Freeze continues what it has stopped and returns an error.
func Freeze(ctx context.Context, root int) (*Tree, error) {
	t := &Tree{}
	if err := t.freeze(ctx, root); err != nil {
		return nil, errors.Join(fmt.Errorf("freezing process %d: %w", root, err), t.Thaw())
	}
	return t, nil
}

func (t *Tree) freeze(ctx context.Context, root int) error {
	// A child of a process that was stopped while the list was read may be missing in that list: all must be
	// stopped when the reading of a list begins.
	for wereFrozen := false; ; {
		all, err := readProcesses()
		if err != nil {
			return err
		}
		tree := descendants(all, root)
		if len(tree) == 0 {
			return syscall.ESRCH
		}
		stop, frozen := decideSignals(tree, t.stopped)
		if frozen && wereFrozen {
			return nil
		}
		wereFrozen = frozen
		for _, p := range stop {
			if err := signalProcess(p.id, syscall.SIGSTOP); err != nil {
				return fmt.Errorf("stopping process %d: %w", p.id, err)
			}
			t.stopped = append(t.stopped, p)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("some processes do not stop: %w", context.Cause(ctx))
		case <-time.After(checkInterval):
		}
	}
}

// Thaw continues the processes that Freeze has stopped. Those that have ended meanwhile are no error.
func (t *Tree) Thaw() error {
	var errs []error
	for _, p := range slices.Backward(t.stopped) {
		if now, err := readProcess(p.id); err != nil || now.start != p.start {
			continue // it has ended
		}
		if err := signalProcess(p.id, syscall.SIGCONT); err != nil {
			errs = append(errs, fmt.Errorf("continuing process %d: %w", p.id, err))
		}
	}
	return errors.Join(errs...)
}

// ContinueDescendants continues all descendants of this process that are stopped. A process that was frozen
// calls it when it ends although nobody has thawed it.
func ContinueDescendants() error {
	all, err := readProcesses()
	if err != nil {
		return err
	}
	tree := &Tree{}
	for _, p := range descendants(all, os.Getpid()) {
		if p.id != os.Getpid() && p.state == "T" {
			tree.stopped = append(tree.stopped, p)
		}
	}
	return tree.Thaw()
}

// ContinueWhenParentDies makes the kernel continue this process if it is frozen when its parent, or the thread
// of the parent that started it, ends.
func ContinueWhenParentDies() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGCONT), 0); errno != 0 {
		return fmt.Errorf("setting the signal for the end of the parent: %w", errno)
	}
	return nil
}

// signalProcess sends a signal to a process; one that has ended is no error.
func signalProcess(id int, s syscall.Signal) error {
	if err := syscall.Kill(id, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// readProcesses returns all processes that this process can see.
func readProcesses() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer dir.Close() //nolint:errcheck // it was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var all []process
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if p, err := readStat(filepath.Join("/proc", name, "stat")); err == nil { // otherwise it has ended
			all = append(all, p)
		}
	}
	return all, nil
}

func readProcess(id int) (process, error) { return readStat(fmt.Sprintf("/proc/%d/stat", id)) }

func readStat(path string) (process, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return process{}, err
	}
	return parseStat(string(raw))
}
