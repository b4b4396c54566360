package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/up"
	"hotspare.io/hotspare/internal/version"
)

// startDetached starts hotspare in a background process with the flags that were given, and returns when it
// is ready.
func startDetached(cmd *cobra.Command, o up.Options, given up.Flags) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	said, err := os.CreateTemp("", "hotspare-up-*.txt")
	if err != nil {
		return fmt.Errorf("creating a file for the output: %w", err)
	}
	defer said.Close()                             //nolint:errcheck // a temporary file
	if err := os.Remove(said.Name()); err != nil { // now: nothing is left if this process is killed
		return fmt.Errorf("removing the name of the file for the output: %w", err)
	}
	args := append([]string{"up", "--data-dir", o.Dir}, given.Arguments()...)
	child := exec.Command(self, args...) //nolint:noctx // the process outlives this command
	child.Stdout, child.Stderr = said, said
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // do not forward Ctrl-C of this terminal
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting hotspare in the background: %w", err)
	}
	began := time.Now()
	if err := waitUntilReady(cmd, child, o.Dir, said); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "hotspare %s runs in the background (pid %d), ready in %.1fs\n", version.Get(), child.Process.Pid, time.Since(began).Seconds())
	printNextCommands(out, o, "Next:", true)
	fmt.Fprintf(out, "\nThis stops it; the data stays:\n  %s\n", formatStopCommand(os.Args[0], o.Dir))
	return child.Process.Release()
}

// formatStopCommand returns the command that stops the hub of a data folder, in any terminal.
func formatStopCommand(self, dir string) string {
	if base.DefaultDataDir() == dir {
		return remedy.QuoteForShell(self) + " down"
	}
	return remedy.QuoteForShell(self) + " down --data-dir " + remedy.QuoteForShell(absolutePath(dir))
}

// waitUntilReady waits until the child is ready. If the child exits before, the error contains its
// output.
func waitUntilReady(cmd *cobra.Command, child *exec.Cmd, dir string, said io.ReaderAt) error {
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-cmd.Context().Done():
			err := child.Process.Signal(syscall.SIGTERM)
			return errors.Join(cmd.Context().Err(), err, <-ended)
		case err := <-ended:
			return fmt.Errorf("hotspare exited before it was ready: %w\n%s", err, readText(said))
		case <-tick.C:
			if up.IsReady(dir, child.Process.Pid) {
				return nil
			}
		}
	}
}

// readText returns the content of a file; "" if it cannot be read.
func readText(file io.ReaderAt) string {
	raw, err := io.ReadAll(io.NewSectionReader(file, 0, maxOutput))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// maxOutput is how much of the output of a process that has failed is repeated, in bytes.
const maxOutput = 1 << 20
