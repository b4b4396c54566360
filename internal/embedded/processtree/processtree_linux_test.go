package processtree

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

const patience = 30 * time.Second

// family starts a shell with a child and a grandchild, which print lines all the time, and returns the shell and a
// function that reports whether a line arrives soon.
func family(t *testing.T) (root int, prints func(within time.Duration) bool) {
	t.Helper()
	const script = `(while :; do echo grandchild; sleep 0.01; done) & while :; do sleep 0.01; done`
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		for range lines { // until all have ended
		}
		_ = cmd.Wait() // it was killed
	})
	prints = func(within time.Duration) bool {
		select {
		case <-lines:
			return true
		case <-time.After(within):
			return false
		}
	}
	if !prints(patience) {
		t.Fatal("it prints nothing")
	}
	return cmd.Process.Pid, prints
}

func freezeTree(t *testing.T, root int) *Tree {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tree, err := Freeze(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestAFrozenTreeDoesNothingUntilItIsThawed(t *testing.T) {
	root, prints := family(t)
	tree := freezeTree(t, root)
	for lines := 0; prints(100 * time.Millisecond); lines++ { // some were printed before it was frozen
		if lines == 1000 {
			t.Fatal("it prints while it is frozen")
		}
	}
	if err := tree.Thaw(); err != nil {
		t.Fatal(err)
	}
	if !prints(patience) {
		t.Error("it prints nothing after the thaw")
	}
}

func TestAProcessThatItsUserHasStoppedStaysSo(t *testing.T) {
	root, prints := family(t)
	if err := syscall.Kill(root, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		p, err := readProcess(root)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v: %v", p, err)
		}
		if p.state == "T" {
			break
		}
	}
	tree := freezeTree(t, root)
	if err := tree.Thaw(); err != nil {
		t.Fatal(err)
	}
	if !prints(patience) {
		t.Error("its child does not run")
	}
	if p, err := readProcess(root); err != nil || p.state != "T" {
		t.Errorf("%+v, %v: it was continued", p, err)
	}
}

func TestAFrozenTreeCanBeKilled(t *testing.T) {
	root, prints := family(t)
	freezeTree(t, root)
	if err := syscall.Kill(-root, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for prints(patience) { // the channel ends with the processes
		if p, err := readProcess(root); err != nil || p.state == "Z" {
			return
		}
	}
}

func TestAProcessThatDoesNotExistCannotBeFrozen(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Freeze(t.Context(), cmd.Process.Pid); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("got %v", err)
	}
}

func TestAFailedFreezeLeavesNothingStopped(t *testing.T) {
	root, prints := family(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if tree, err := Freeze(ctx, root); err == nil { // two passes are needed
		t.Fatalf("froze %+v", tree)
	}
	for range 3 {
		if !prints(patience) {
			t.Fatal("it does not run")
		}
	}
}

func TestFrozenDescendantsAreContinued(t *testing.T) {
	root, prints := family(t)
	freezeTree(t, root)
	prints(time.Millisecond)
	prints(time.Millisecond)
	if err := ContinueDescendants(); err != nil {
		t.Fatal(err)
	}
	if !prints(patience) {
		t.Errorf("process %d, a descendant of this one (%d), does not run", root, os.Getpid())
	}
}
