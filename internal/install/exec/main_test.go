package exec_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	installexec "hotspare.io/hotspare/internal/install/exec"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// patience is how long anything may take on a busy computer.
const patience = time.Minute

// childVariable makes the test binary a process of hotspare that creates one cluster. Its value is the
// data folder, and the working folder is that of the recipes.
const childVariable = "INSTALL_EXEC_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := runChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runChild installs cluster c until it is killed.
func runChild(dir string) error {
	folder := runner.Folder(filepath.Join(dir, "clusters"))
	run, err := runner.NewProcesses(folder, runner.Options{SecretDir: dir})
	if err != nil {
		return err
	}
	ctx, req := context.Background(), newRequest("c")
	e := installexec.New(ctx, installexec.Options{Runner: run, Store: folder, Catalog: runner.Catalog{Dir: "."}, Clock: clock.RealClock{}})
	md, err := e.Prepare(ctx, req)
	if err != nil {
		return err
	}
	if _, err := e.Install(ctx, req, md); err != nil {
		return err
	}
	time.Sleep(2 * patience) //nolint:forbidigo // until it is killed
	return nil
}

// child is a process of hotspare.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func startChild(t *testing.T, r *rig) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(self), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stderr = r.w.Catalog, append(os.Environ(), childVariable+"="+r.dir), os.Stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // it is killed
	}()
	t.Cleanup(func() { c.kill(t) })
	return c
}

// checkRuns fails the test if the process has ended. It lets a short time pass.
func (c *child) checkRuns(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
		t.Fatal("the process of hotspare has ended")
	case <-time.After(2 * time.Millisecond):
	}
}

// kill kills the process, and waits until it has ended.
func (c *child) kill(t *testing.T) {
	t.Helper()
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}
