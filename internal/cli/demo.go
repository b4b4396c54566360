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
	"hotspare.io/hotspare/internal/embedded/usernamespace"
	"hotspare.io/hotspare/internal/explain/remedy"
)

const demoLong = `Run a two-minute demo with real local clusters on this machine: it fills a pool, gets a
cluster for a claim immediately, runs a web server there if this machine can run
containers (see "hotspare doctor"), breaks a standby cluster, gets the next claim a
cluster anyway, waits until the broken cluster is replaced, and hibernates and resumes a
cluster.
Each step shows the command that you would type, and how long it took.

The demo uses the hub of the data folder, in a separate namespace. If no hub is running,
it starts one with a temporary data folder, and stops it at the end. It deletes
everything that it created, even after Ctrl-C.`

// demoNamespace is the namespace of the demo on a hub that it did not start.
const demoNamespace = "hotspare-demo"

func (a commands) demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "demo",
		Short:             "Run a two-minute demo",
		Long:              demoLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Flags.Kubeconfig != "" || a.Flags.Context != "" || a.Flags.Namespace != "" {
				return base.UsageErrorFor(errors.New("the demo uses the hub of a data folder and a separate namespace: omit --kubeconfig, --context and --namespace"), cmd)
			}
			return a.runDemo(cmd.Context())
		},
	}
	cmd.AddCommand(a.demoServerCommand())
	return cmd
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
	s.printLine("\nThe demo is complete. Commands to try next:\n" + s.suggestCommands())
	return nil
}

// suggestCommands returns commands to try after the demo.
func (r *demoRunner) suggestCommands() string {
	commands := []string{
		"pool create dev --size 3 --running 1", "claim run dev -- " + r.Name + " kubectl get nodes", "pool watch dev", "explain pool dev",
	}
	if r.hubProcess != nil {
		commands = append([]string{"up --detach"}, commands...)
	}
	return "  " + r.Name + " " + strings.Join(commands, "\n  "+r.Name+" ")
}

// demoRunner runs the steps of the demo on a hub.
type demoRunner struct {
	commands
	hub *base.Hub
	// self is the path of this program.
	self string
	// hubProcess is the hub, if the demo has started it; else nil. hubExited is closed when it
	// exits.
	hubProcess *exec.Cmd
	stdin      io.Closer
	hubExited  chan struct{}
	// privateDir is a temporary folder for kubeconfigs; "" if there is none yet.
	privateDir string
	// standbyName is the name of the standby cluster that the demo breaks.
	standbyName string
	// imageLoaded is set when the image of the web server may be in the data folder.
	imageLoaded bool
}

// newDemoRunner finds a hub on this machine, or starts one with a temporary data folder.
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
		return nil, base.WithRemedy(fmt.Errorf("no hub is running on %s", a.Flags.DataDir), "start it with: "+a.FormatCommand("up --detach")+", or omit --data-dir")
	}
	if s.Flags.DataDir, err = os.MkdirTemp("", "hotspare-demo-"); err != nil {
		return nil, fmt.Errorf("creating a data folder: %w", err)
	}
	if err := s.startHub(ctx); err != nil {
		return nil, errors.Join(err, s.stopHub(ctx, err))
	}
	return s, nil
}

// isHubReachable reports whether a hub is running on the demo's data folder.
func (r *demoRunner) isHubReachable(ctx context.Context) bool {
	if _, err := os.Stat(filepath.Join(r.Flags.DataDir, "ready")); err != nil {
		return false
	}
	h, err := r.ConnectToHub()
	if err != nil {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	_, err = h.FetchVersion(soon)
	return err == nil
}

// readyPrefix starts the line that hotspare up prints when its hub can be used.
const readyPrefix = "ready in "

// startHub runs hotspare up on the demo's data folder. It exits with this process in any case,
// because its standard input is then closed.
func (r *demoRunner) startHub(ctx context.Context) error {
	r.printLine("No hub is running on this machine, so the demo starts one with a temporary data folder.\n")
	fmt.Fprintf(r.Stdout, "%s$ %s up --data-dir %s\n", indent, r.Name, remedy.QuoteForShell(r.Flags.DataDir))
	r.hubProcess = exec.CommandContext(context.WithoutCancel(ctx), r.self, "up", "--until-eof", "--metrics-address", "0", "--data-dir", r.Flags.DataDir)
	r.hubProcess.Env = r.childEnvironment()
	stdin, err := r.hubProcess.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	said, err := r.hubProcess.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	var wrong strings.Builder
	r.hubProcess.Stderr = &wrong
	if err := r.hubProcess.Start(); err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	r.stdin, r.hubExited = stdin, make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(r.hubExited)
		scanForPrefix(said, readyPrefix, func(line string) { r.printLine(indent + "  " + line); close(ready) })
		_ = r.hubProcess.Wait() // how it ended is in ProcessState
	}()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.hubExited: // possibly by the same Ctrl-C that interrupts this process
		return cmp.Or(context.Cause(ctx), fmt.Errorf("the hub exited: %s", strings.TrimSpace(wrong.String())))
	}
}

// scanForPrefix reads all lines, and calls report with the first one that starts with prefix.
func scanForPrefix(output io.Reader, prefix string, report func(line string)) {
	var once sync.Once
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), prefix) {
			once.Do(func() { report(lines.Text()) })
		}
	}
}

// childEnvironment returns the environment of this process with the demo's hub.
func (r *demoRunner) childEnvironment(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KUBECONFIG=") && !strings.HasPrefix(v, "HOTSPARE_DATA_DIR=") {
			out = append(out, v)
		}
	}
	return append(append(out, "HOTSPARE_DATA_DIR="+r.Flags.DataDir), more...)
}

// connectAndCheckNamespace connects to the hub and checks that the demo's namespace is empty.
func (r *demoRunner) connectAndCheckNamespace(ctx context.Context) error {
	var err error
	if r.hub, err = r.ConnectToHub(); err != nil {
		return err
	}
	if r.hubProcess != nil {
		return nil
	}
	r.printLine(fmt.Sprintf("The demo uses the hub that is running on %s, in namespace %s.", r.Flags.DataDir, demoNamespace))
	sc, err := r.hub.ReadSnapshot(ctx, demoNamespace)
	if err != nil {
		return r.hub.ExplainAPIError(err)
	}
	if len(sc.Pools.Items)+len(sc.Claims.Items) > 0 {
		r.hub = nil // the objects are not the demo's, so it must not delete them
		return base.WithRemedy(fmt.Errorf("namespace %s is in use: another demo is running, or was killed", demoNamespace),
			"to delete the objects of a killed demo: "+r.FormatCommandIn("", "kubectl delete namespace "+demoNamespace))
	}
	return nil
}

const (
	// demoCleanupTimeout is the maximum time for the cleanup.
	demoCleanupTimeout = 2 * time.Minute
	indent             = "   "
)

// cleanUpDemo deletes everything that the demo created; why is the error that ended it, if any.
func (r *demoRunner) cleanUpDemo(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoCleanupTimeout)
	defer cancel()
	err := r.deletePrivateDir()
	if r.hubProcess != nil {
		return errors.Join(err, r.stopHub(ctx, why))
	}
	if r.hub == nil {
		return err
	}
	r.printLine("\nDeleting everything that the demo created.")
	return errors.Join(err, r.deleteDemoImage(ctx), r.deleteDemoNamespace(ctx))
}

func (r *demoRunner) deletePrivateDir() error {
	if r.privateDir == "" {
		return nil
	}
	return os.RemoveAll(r.privateDir)
}

// stopHub stops the hub that the demo started. It keeps the data folder only after an error, for
// debugging.
func (r *demoRunner) stopHub(ctx context.Context, why error) error {
	if r.hubExited == nil {
		return os.RemoveAll(r.Flags.DataDir)
	}
	r.printLine("\nStopping the hub and all its clusters.")
	err := r.stdin.Close()
	select {
	case <-r.hubExited:
	case <-ctx.Done():
		err = errors.Join(err, r.hubProcess.Process.Signal(syscall.SIGKILL))
		<-r.hubExited
	}
	var by base.InterruptError
	if why != nil && !errors.As(why, &by) && !errors.Is(why, context.Canceled) {
		r.printLine("See " + filepath.Join(r.Flags.DataDir, "hotspare.log") + " for the cause, then delete that folder.")
		return err
	}
	return errors.Join(err, usernamespace.Remover{Command: []string{r.self}}.RemoveAll(ctx, r.Flags.DataDir))
}

func (r *demoRunner) printLine(text string) { fmt.Fprintln(r.Stdout, text) }
