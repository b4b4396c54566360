package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
)

const demoLong = `Show in some minutes what hotspare does, with real local clusters on this machine: a
pool is filled, a claim is served at once, a stand-by loses its disk and the next claim
gets a cluster all the same, the broken one is replaced, a cluster sleeps and wakes.
Each step tells the command that you would type, and how long it took.

It plays on the hub that runs on the data folder, in a namespace of its own. If none
runs, it starts one with a data folder of its own, and stops it at the end. Whatever it
made is gone afterwards, also after Ctrl-C.`

// demoNamespace is where a demo plays on a hub that it did not start.
const demoNamespace = "hotspare-demo"

func (a commands) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "demo",
		Short:             "Show what hotspare does, in some minutes",
		Long:              demoLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Flags.Kubeconfig != "" || a.Flags.Context != "" || a.Flags.Namespace != "" {
				return base.UsageErrorFor(errors.New("a demo plays on the hub of a data folder, in a namespace of its own: leave out --kubeconfig, --context and --namespace"), cmd)
			}
			return a.runDemo(cmd.Context())
		},
	}
}

func (a commands) runDemo(ctx context.Context) (err error) {
	s, err := a.newDemoRunner(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.cleanUpDemo(ctx, err)) }()
	if err := s.connectAndCheckNamespace(ctx); err != nil {
		return err
	}
	for n, act := range demoSteps {
		if err := s.runStep(ctx, n+1, act); err != nil {
			return err
		}
	}
	s.printLine("\nThat is all. To go on by yourself:\n" + s.suggestCommands())
	return nil
}

// suggestCommands are commands to go on with.
func (s *demoRunner) suggestCommands() string {
	commands := []string{
		"pool create dev --size 3 --running 1", "claim run dev -- " + s.Name + " kubectl get nodes", "pool watch dev", "explain pool dev",
	}
	if s.hubProcess != nil {
		commands = append([]string{"up --detach"}, commands...)
	}
	return "  " + s.Name + " " + strings.Join(commands, "\n  "+s.Name+" ")
}

// demoRunner is where a demo plays: a hub.
type demoRunner struct {
	commands
	hub *base.Hub
	// self is this program, as a file.
	self string
	// hubProcess is the hub, if the demo has started it; else nil. ended is closed when it has.
	hubProcess *exec.Cmd
	stdin      io.Closer
	hubExited  chan struct{}
	// standbyName is the stand-by that is broken.
	standbyName string
}

// newDemoRunner finds a hub on this machine, or makes a data folder for one.
func (a commands) newDemoRunner(ctx context.Context) (*demoRunner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	there := *a.App
	s := &demoRunner{commands: commands{&there}, self: self}
	s.Flags.DataDir, s.Flags.Output = base.ResolveDataDir(a.Flags.DataDir), ""
	if s.isHubReachable(ctx) {
		s.Flags.Namespace = demoNamespace
		return s, nil
	}
	if a.Flags.DataDir != "" {
		return nil, base.WithRemedy(fmt.Errorf("no hub runs on %s", a.Flags.DataDir), "start it with: "+a.FormatCommand("up --detach")+", or leave out --data-dir")
	}
	if s.Flags.DataDir, err = os.MkdirTemp("", "hotspare-demo-"); err != nil {
		return nil, fmt.Errorf("making a data folder: %w", err)
	}
	if err := s.startHub(ctx); err != nil {
		return nil, errors.Join(err, s.stopHub(ctx, err))
	}
	return s, nil
}

// isHubReachable reports whether a hub runs on the stage's data folder.
func (s *demoRunner) isHubReachable(ctx context.Context) bool {
	if _, err := os.Stat(filepath.Join(s.Flags.DataDir, "ready")); err != nil {
		return false
	}
	h, err := s.ConnectToHub()
	if err != nil {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	_, err = h.FetchVersion(soon)
	return err == nil
}

// readyPrefix begin the line by which hotspare up says that its hub can be used.
const readyPrefix = "ready in "

// startHub runs hotspare up on the stage's data folder. It ends with this process, however
// that ends: its standard input is ours to close.
func (s *demoRunner) startHub(ctx context.Context) error {
	s.printLine("No hub runs on this machine, so the demo starts one, in a folder of its own.\n")
	fmt.Fprintf(s.Stdout, "%s$ %s up --data-dir %s\n", indent, s.Name, s.Flags.DataDir)
	s.hubProcess = exec.CommandContext(context.WithoutCancel(ctx), s.self, "up", "--until-eof", "--metrics-address", "0", "--data-dir", s.Flags.DataDir)
	s.hubProcess.Env = s.childEnvironment()
	stdin, err := s.hubProcess.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	said, err := s.hubProcess.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	var wrong strings.Builder
	s.hubProcess.Stderr = &wrong
	if err := s.hubProcess.Start(); err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	s.stdin, s.hubExited = stdin, make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(s.hubExited)
		scanForPrefix(said, readyPrefix, func(line string) { s.printLine(indent + "  " + line); close(ready) })
		_ = s.hubProcess.Wait() // how it ended is in ProcessState
	}()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.hubExited: // perhaps by the Ctrl-C that ends us, too
		return cmp.Or(context.Cause(ctx), fmt.Errorf("the hub has ended: %s", strings.TrimSpace(wrong.String())))
	}
}

// scanForPrefix reads all that is said, and passes on the first line that begins so.
func scanForPrefix(said io.Reader, prefix string, tell func(line string)) {
	var once sync.Once
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), prefix) {
			once.Do(func() { tell(lines.Text()) })
		}
	}
}

// childEnvironment is this process's, with the stage's hub.
func (s *demoRunner) childEnvironment(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KUBECONFIG=") && !strings.HasPrefix(v, "HOTSPARE_DATA_DIR=") {
			out = append(out, v)
		}
	}
	return append(append(out, "HOTSPARE_DATA_DIR="+s.Flags.DataDir), more...)
}

// connectAndCheckNamespace looks whether the stage is free.
func (s *demoRunner) connectAndCheckNamespace(ctx context.Context) error {
	var err error
	if s.hub, err = s.ConnectToHub(); err != nil {
		return err
	}
	if s.hubProcess != nil {
		return nil
	}
	s.printLine(fmt.Sprintf("A hub runs on %s. The demo plays there, in namespace %s.", s.Flags.DataDir, demoNamespace))
	sc, err := s.hub.ReadSnapshot(ctx, demoNamespace)
	if err != nil {
		return s.hub.ExplainAPIError(err)
	}
	if len(sc.Pools.Items)+len(sc.Claims.Items) > 0 {
		s.hub = nil // it is somebody else's: leave it alone
		return base.WithRemedy(fmt.Errorf("namespace %s is in use: another demo plays, or one was killed", demoNamespace),
			"to take away what it left: "+s.FormatCommandIn("", "kubectl delete namespace "+demoNamespace))
	}
	return nil
}

const (
	// demoCleanupTimeout is how long taking everything away may take.
	demoCleanupTimeout = 2 * time.Minute
	indent             = "   "
)

// cleanUpDemo takes away all that the demo has made; why is how it ended.
func (s *demoRunner) cleanUpDemo(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoCleanupTimeout)
	defer cancel()
	if s.hubProcess != nil {
		return s.stopHub(ctx, why)
	}
	if s.hub == nil {
		return nil
	}
	s.printLine("\nTaking away what the demo made.")
	return s.deleteDemoNamespace(ctx)
}

// stopHub ends the hub that the demo started. Its folder stays only for somebody to look
// into what went wrong.
func (s *demoRunner) stopHub(ctx context.Context, why error) error {
	if s.hubExited == nil {
		return os.RemoveAll(s.Flags.DataDir)
	}
	s.printLine("\nStopping the hub, and all its clusters.")
	err := s.stdin.Close()
	select {
	case <-s.hubExited:
	case <-ctx.Done():
		err = errors.Join(err, s.hubProcess.Process.Signal(syscall.SIGKILL))
		<-s.hubExited
	}
	var by base.InterruptError
	if why != nil && !errors.As(why, &by) && !errors.Is(why, context.Canceled) {
		s.printLine("What went wrong may be in " + filepath.Join(s.Flags.DataDir, "hotspare.log") + ". Delete that folder when you have looked.")
		return err
	}
	return errors.Join(err, os.RemoveAll(s.Flags.DataDir))
}

func (s *demoRunner) printLine(text string) { fmt.Fprintln(s.Stdout, text) }
