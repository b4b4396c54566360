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

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "demo",
		Short:             "Show what hotspare does, in some minutes",
		Long:              demoLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.flags.kubeconfig != "" || a.flags.context != "" || a.flags.namespace != "" {
				return usage(errors.New("a demo plays on the hub of a data folder, in a namespace of its own: leave out --kubeconfig, --context and --namespace"), cmd)
			}
			return a.demo(cmd.Context())
		},
	}
}

func (a *app) demo(ctx context.Context) (err error) {
	s, err := a.newStage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clear(ctx, err)) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	for n, act := range acts {
		if err := s.play(ctx, n+1, act); err != nil {
			return err
		}
	}
	s.say("\nThat is all. To go on by yourself:\n" + s.onwards())
	return nil
}

// onwards are commands to go on with.
func (s *stage) onwards() string {
	commands := []string{
		"pool create dev --size 3 --running 1", "claim run dev -- " + s.Name + " kubectl get nodes", "pool watch dev", "explain pool dev",
	}
	if s.up != nil {
		commands = append([]string{"up --detach"}, commands...)
	}
	return "  " + s.Name + " " + strings.Join(commands, "\n  "+s.Name+" ")
}

// stage is where a demo plays: a hub.
type stage struct {
	*app
	hub *hub
	// self is this program, as a file.
	self string
	// up is the hub, if the demo has started it; else nil. ended is closed when it has.
	up    *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	// spare is the stand-by that is broken.
	spare string
}

// newStage finds a hub on this machine, or makes a data folder for one.
func (a *app) newStage(ctx context.Context) (*stage, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	there := *a
	s := &stage{app: &there, self: self}
	s.flags.dataDir, s.flags.output = dataDir(a.flags.dataDir), ""
	if s.answers(ctx) {
		s.flags.namespace = demoNamespace
		return s, nil
	}
	if a.flags.dataDir != "" {
		return nil, advise(fmt.Errorf("no hub runs on %s", a.flags.dataDir), "start it with: "+a.next("up --detach")+", or leave out --data-dir")
	}
	if s.flags.dataDir, err = os.MkdirTemp("", "hotspare-demo-"); err != nil {
		return nil, fmt.Errorf("making a data folder: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.stop(ctx, err))
	}
	return s, nil
}

// answers reports whether a hub runs on the stage's data folder.
func (s *stage) answers(ctx context.Context) bool {
	if _, err := os.Stat(filepath.Join(s.flags.dataDir, "ready")); err != nil {
		return false
	}
	h, err := s.connect()
	if err != nil {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = h.version(soon)
	return err == nil
}

// readyWords begin the line by which hotspare up says that its hub can be used.
const readyWords = "ready in "

// start runs hotspare up on the stage's data folder. It ends with this process, however
// that ends: its standard input is ours to close.
func (s *stage) start(ctx context.Context) error {
	s.say("No hub runs on this machine, so the demo starts one, in a folder of its own.\n")
	fmt.Fprintf(s.Stdout, "%s$ %s up --data-dir %s\n", indent, s.Name, s.flags.dataDir)
	s.up = exec.CommandContext(context.WithoutCancel(ctx), s.self, "up", "--until-eof", "--metrics-address", "0", "--data-dir", s.flags.dataDir)
	s.up.Env = s.environment()
	stdin, err := s.up.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	said, err := s.up.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	var wrong strings.Builder
	s.up.Stderr = &wrong
	if err := s.up.Start(); err != nil {
		return fmt.Errorf("starting a hub: %w", err)
	}
	s.stdin, s.ended = stdin, make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(s.ended)
		heard(said, readyWords, func(line string) { s.say(indent + "  " + line); close(ready) })
		_ = s.up.Wait() // how it ended is in ProcessState
	}()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ended: // perhaps by the Ctrl-C that ends us, too
		return cmp.Or(context.Cause(ctx), fmt.Errorf("the hub has ended: %s", strings.TrimSpace(wrong.String())))
	}
}

// heard reads all that is said, and passes on the first line that begins so.
func heard(said io.Reader, prefix string, tell func(line string)) {
	var once sync.Once
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), prefix) {
			once.Do(func() { tell(lines.Text()) })
		}
	}
}

// environment is this process's, with the stage's hub.
func (s *stage) environment(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KUBECONFIG=") && !strings.HasPrefix(v, "HOTSPARE_DATA_DIR=") {
			out = append(out, v)
		}
	}
	return append(append(out, "HOTSPARE_DATA_DIR="+s.flags.dataDir), more...)
}

// open looks whether the stage is free.
func (s *stage) open(ctx context.Context) error {
	var err error
	if s.hub, err = s.connect(); err != nil {
		return err
	}
	if s.up != nil {
		return nil
	}
	s.say(fmt.Sprintf("A hub runs on %s. The demo plays there, in namespace %s.", s.flags.dataDir, demoNamespace))
	sc, err := s.hub.see(ctx, demoNamespace)
	if err != nil {
		return s.hub.explain(err)
	}
	if len(sc.pools.Items)+len(sc.claims.Items) > 0 {
		s.hub = nil // it is somebody else's: leave it alone
		return advise(fmt.Errorf("namespace %s is in use: another demo plays, or one was killed", demoNamespace),
			"to take away what it left: "+s.nextIn("", "kubectl delete namespace "+demoNamespace))
	}
	return nil
}

const (
	// curtain is how long taking everything away may take.
	curtain = 2 * time.Minute
	indent  = "   "
)

// clear takes away all that the demo has made; why is how it ended.
func (s *stage) clear(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), curtain)
	defer cancel()
	if s.up != nil {
		return s.stop(ctx, why)
	}
	if s.hub == nil {
		return nil
	}
	s.say("\nTaking away what the demo made.")
	return s.sweep(ctx)
}

// stop ends the hub that the demo started. Its folder stays only for somebody to look
// into what went wrong.
func (s *stage) stop(ctx context.Context, why error) error {
	if s.ended == nil {
		return os.RemoveAll(s.flags.dataDir)
	}
	s.say("\nStopping the hub, and all its clusters.")
	err := s.stdin.Close()
	select {
	case <-s.ended:
	case <-ctx.Done():
		err = errors.Join(err, s.up.Process.Signal(syscall.SIGKILL))
		<-s.ended
	}
	var by interrupt
	if why != nil && !errors.As(why, &by) && !errors.Is(why, context.Canceled) {
		s.say("What went wrong may be in " + filepath.Join(s.flags.dataDir, "hotspare.log") + ". Delete that folder when you have looked.")
		return err
	}
	return errors.Join(err, os.RemoveAll(s.flags.dataDir))
}

func (s *stage) say(text string) { fmt.Fprintln(s.Stdout, text) }
