package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/standing"
)

// act is one part of a demo.
type act struct {
	title, words string
	play         func(*stage, context.Context) error
}

// acts are the parts of a demo, in order.
var acts = []act{
	{
		"A pool of spare clusters",
		"You say how many clusters you want in reserve, and how many of them running. Here two,\none of them running; the other hibernates. Each is a Kubernetes of its own.",
		(*stage).fill,
	},
	{
		"A claim",
		"Whoever needs a cluster claims one. One runs already, so it is there at once.",
		(*stage).serve,
	},
	{
		"The pool refills",
		"The sleeping cluster was woken to take the place of the one that you have, and a new\none is installed.",
		(*stage).refill,
	},
	{
		"Given back",
		"What is released is destroyed: nobody gets a used cluster. The pool is told to keep none\nrunning, so that the next claim must wake one.",
		(*stage).rest,
	},
	{
		"A stand-by breaks",
		"The cluster that would be woken next loses its disk while it sleeps. Nobody knows yet.",
		(*stage).hurt,
	},
	{
		"The next claim gets a cluster all the same",
		"The pool wakes the broken one, sees that it does not start, and wakes the next beside it.",
		(*stage).rescue,
	},
	{
		"The broken one is replaced",
		"It is given up half a minute after it failed, and destroyed. Nobody has to do anything.",
		(*stage).refill,
	},
	{
		"Sleep and wake",
		"A cluster that you have can hibernate over night. All that is in it stays.",
		(*stage).doze,
	},
}

// play tells of an act, plays it, and says how long it took.
func (s *stage) play(ctx context.Context, number int, a act) error {
	title := fmt.Sprintf("%d. %s", number, a.title)
	if s.palette(s.Stdout) != nil {
		title = "\x1b[1m" + title + "\x1b[0m"
	}
	s.say("\n" + title)
	s.say(indent + strings.ReplaceAll(a.words, "\n", "\n"+indent))
	began := s.Clock.Now()
	if err := a.play(s, ctx); err != nil {
		return err
	}
	s.say(fmt.Sprintf("%s(%.1f s)", indent, s.Clock.Since(began).Seconds()))
	return nil
}

func (s *stage) fill(ctx context.Context) error {
	if s.up == nil {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: demoNamespace}}
		if err := s.hub.Create(ctx, ns); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating namespace %s: %w", demoNamespace, err)
		}
	}
	if err := s.do(ctx, "pool create demo --size 2 --running 1 --workers 0"); err != nil {
		return err
	}
	return s.refill(ctx)
}

func (s *stage) refill(ctx context.Context) error {
	return s.do(ctx, "pool watch demo --until-settled --timeout 10m")
}

func (s *stage) serve(ctx context.Context) error {
	if err := s.do(ctx, "claim create demo --name first --wait --timeout 5m --lifetime 1h"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hotspare-demo-")
	if err != nil {
		return fmt.Errorf("making a private folder: %w", err)
	}
	file := filepath.Join(dir, "first.kubeconfig")
	err = s.do(ctx, "cluster kubeconfig first -o "+file)
	if err == nil {
		err = s.do(ctx, "kubectl get nodes", "KUBECONFIG="+file)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

func (s *stage) rest(ctx context.Context) error {
	for _, command := range []string{"claim release first --wait --timeout 5m", "pool scale demo --running 0"} {
		if err := s.do(ctx, command); err != nil {
			return err
		}
	}
	ctx, cancel := within(ctx, 5*time.Minute)
	defer cancel()
	var asleep []hivev1.ClusterDeployment
	err := s.until(ctx, func(sc *scene) bool {
		asleep = slices.DeleteFunc(sc.clusters.Items, func(cd hivev1.ClusterDeployment) bool { return standing.Cluster(&cd) != standing.Hibernating })
		return len(asleep) == 2
	})
	if err != nil {
		return err
	}
	s.spare = slices.MinFunc(asleep, func(a, b hivev1.ClusterDeployment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}).Name
	return s.do(ctx, "cluster list")
}

func (s *stage) hurt(ctx context.Context) error {
	return s.do(ctx, "local break "+s.spare+" disk-lost")
}

func (s *stage) rescue(ctx context.Context) error {
	if err := s.do(ctx, "claim create demo --name second --wait --timeout 5m --lifetime 1h"); err != nil {
		return err
	}
	return s.do(ctx, "explain pool demo")
}

func (s *stage) doze(ctx context.Context) error {
	if err := s.do(ctx, "cluster hibernate second --wait --timeout 5m"); err != nil {
		return err
	}
	return s.do(ctx, "cluster resume second --wait --timeout 5m")
}

// until looks at what there is in the demo's namespace until that will do.
func (s *stage) until(ctx context.Context, done func(*scene) bool) error {
	news := s.news(ctx, s.hub, &hivev1.ClusterPoolList{}, &hivev1.ClusterDeploymentList{})
	ticker := s.Clock.NewTicker(tick)
	defer ticker.Stop()
	for {
		sc, err := s.hub.see(ctx, s.hub.namespace) // a hub that does not answer may do so the next time
		if err == nil && done(sc) {
			return nil
		}
		select {
		case <-news:
		case <-ticker.C():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// do runs a command of ours as a person would, and shows both.
func (s *stage) do(ctx context.Context, command string, env ...string) error {
	words := strings.Fields(command)
	shown := s.Name + " " + command
	if s.flags.namespace != "" && !slices.Contains(env, "KUBECONFIG") && words[0] != "kubectl" {
		shown += " -n " + s.flags.namespace
		words = append(words, "-n", s.flags.namespace)
	}
	for _, v := range slices.Backward(env) {
		shown = v + " " + shown
	}
	fmt.Fprintf(s.Stdout, "\n%s$ %s\n", indent, shown)
	child := exec.CommandContext(ctx, s.self, words...)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGINT) }
	child.WaitDelay = 10 * time.Second
	child.Env = s.environment(env...)
	out := &indented{to: s.app}
	child.Stdout, child.Stderr = out, out
	err := child.Run()
	out.flush()
	if err == nil {
		return nil
	}
	if child.ProcessState != nil && child.ProcessState.ExitCode() == exitSignal+int(syscall.SIGINT) {
		s.ctrlC(ctx)
	}
	return cmp.Or(context.Cause(ctx), fmt.Errorf("the command above: %w", err))
}

// ctrlC waits a moment for the Ctrl-C that a command has heard: we should hear it, too.
func (s *stage) ctrlC(ctx context.Context) {
	moment := s.Clock.NewTimer(time.Second)
	defer moment.Stop()
	select {
	case <-ctx.Done():
	case <-moment.C():
	}
}

// indented writes lines with an indentation. What a program writes to its two outputs
// comes in the order in which it was written.
type indented struct {
	to   *app
	rest []byte
}

func (w *indented) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.print(line)
		w.rest = rest
	}
}

func (w *indented) flush() {
	if len(w.rest) > 0 {
		w.print(w.rest)
	}
}

func (w *indented) print(line []byte) {
	if len(line) > 0 {
		fmt.Fprintf(w.to.Stdout, "%s  %s\n", indent, line)
		return
	}
	fmt.Fprintln(w.to.Stdout)
}

// sweep takes away what is in the demo's namespace, and that.
func (s *stage) sweep(ctx context.Context) error {
	sc, err := s.hub.see(ctx, demoNamespace)
	if err != nil {
		return s.hub.explain(err)
	}
	for i := range sc.claims.Items {
		if err := s.hub.Delete(ctx, &sc.claims.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing claim %s: %w", sc.claims.Items[i].Name, err)
		}
	}
	for i := range sc.pools.Items {
		if err := s.hub.Delete(ctx, &sc.pools.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting pool %s: %w", sc.pools.Items[i].Name, err)
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: demoNamespace}}
	if err := s.hub.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", demoNamespace, err)
	}
	err = s.until(ctx, func(sc *scene) bool { return len(sc.pools.Items)+len(sc.claims.Items)+len(sc.clusters.Items) == 0 })
	if err != nil {
		s.say("Its clusters are still being destroyed; the hub goes on with that.")
	}
	return nil
}
