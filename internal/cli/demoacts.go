package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// demoStep is one part of a demo.
type demoStep struct {
	title, description string
	run                func(*demoRunner, context.Context) error
}

// demoSteps are the parts of a demo, in order.
var demoSteps = []demoStep{
	{
		"A pool of spare clusters",
		"You set the number of spare clusters and how many of them run. This pool has two: one\nruns, the other hibernates. Each is a separate Kubernetes cluster.",
		(*demoRunner).createPool,
	},
	{
		"A claim",
		"You claim a cluster when you need one. One is already running, so you get it immediately.",
		(*demoRunner).claimFirstCluster,
	},
	{
		"A web server",
		"The cluster runs containers. Its image is this program, loaded without Docker.",
		(*demoRunner).runWebServer,
	},
	{
		"The pool refills",
		"The pool resumes the hibernating cluster to replace the one that you claimed, and\ninstalls a new one.",
		(*demoRunner).waitUntilSettled,
	},
	{
		"Release",
		"A released cluster is destroyed: nobody gets a used cluster. The pool is then scaled to\nkeep no cluster running, so that the next claim must resume one.",
		(*demoRunner).releaseFirstClaim,
	},
	{
		"A standby cluster breaks",
		"The cluster that would be resumed next loses its disk while it hibernates. The failure is\nnot detected yet.",
		(*demoRunner).breakStandby,
	},
	{
		"The next claim gets a cluster anyway",
		"The pool resumes the broken cluster, detects that it does not start, and also resumes the\nnext one.",
		(*demoRunner).claimSecondCluster,
	},
	{
		"The broken cluster is replaced",
		"The pool gives up on it half a minute after it failed, and destroys it automatically.",
		(*demoRunner).waitUntilSettled,
	},
	{
		"Hibernate and resume",
		"You can hibernate a claimed cluster overnight. It keeps all its data.",
		(*demoRunner).hibernateAndResume,
	},
}

// runStep prints the description of a step, runs it, and prints how long it took.
func (r *demoRunner) runStep(ctx context.Context, number int, a demoStep) error {
	title := fmt.Sprintf("%d. %s", number, a.title)
	if r.PaletteFor(r.Stdout) != nil {
		title = "\x1b[1m" + title + "\x1b[0m"
	}
	r.printLine("\n" + title)
	r.printLine(indent + strings.ReplaceAll(a.description, "\n", "\n"+indent))
	began := r.Clock.Now()
	if err := a.run(r, ctx); err != nil {
		return err
	}
	r.printLine(fmt.Sprintf("%s(%.1f s)", indent, r.Clock.Since(began).Seconds()))
	return nil
}

func (r *demoRunner) createPool(ctx context.Context) error {
	if r.hubProcess == nil {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: demoNamespace}}
		if err := r.hub.Create(ctx, ns); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating namespace %s: %w", demoNamespace, err)
		}
	}
	if err := r.runCommand(ctx, "pool create demo --size 2 --running 1"); err != nil {
		return err
	}
	return r.waitUntilSettled(ctx)
}

func (r *demoRunner) waitUntilSettled(ctx context.Context) error {
	return r.runCommand(ctx, "pool watch demo --until-settled --timeout 10m")
}

func (r *demoRunner) claimFirstCluster(ctx context.Context) error {
	if err := r.runCommand(ctx, "claim create demo --name first --wait --timeout 5m --lifetime 1h"); err != nil {
		return err
	}
	var err error
	if r.privateDir, err = os.MkdirTemp("", "hotspare-demo-"); err != nil {
		return fmt.Errorf("creating a private folder: %w", err)
	}
	_, file, _ := strings.Cut(r.firstKubeconfig(), "=")
	if err := r.runWords(ctx, []string{"cluster", "kubeconfig", "first", "-o", file}); err != nil {
		return err
	}
	return r.runCommand(ctx, "kubectl get nodes", r.firstKubeconfig())
}

func (r *demoRunner) releaseFirstClaim(ctx context.Context) error {
	for _, command := range []string{"claim release first --wait --timeout 5m", "pool scale demo --running 0"} {
		if err := r.runCommand(ctx, command); err != nil {
			return err
		}
	}
	ctx, cancel := base.WithWaitTimeout(ctx, 5*time.Minute)
	defer cancel()
	var asleep []hivev1.ClusterDeployment
	err := r.waitForSnapshot(ctx, func(sc *base.HubSnapshot) bool {
		asleep = slices.DeleteFunc(sc.Clusters.Items, func(cd hivev1.ClusterDeployment) bool {
			return clusterstate.OfCluster(&cd) != clusterstate.Hibernating
		})
		return len(asleep) == 2
	})
	if err != nil {
		return err
	}
	r.standbyName = slices.MinFunc(asleep, func(a, b hivev1.ClusterDeployment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}).Name
	return r.runCommand(ctx, "cluster list")
}

func (r *demoRunner) breakStandby(ctx context.Context) error {
	return r.runCommand(ctx, "local break "+r.standbyName+" disk-lost")
}

func (r *demoRunner) claimSecondCluster(ctx context.Context) error {
	if err := r.runCommand(ctx, "claim create demo --name second --wait --timeout 5m --lifetime 1h"); err != nil {
		return err
	}
	return r.runCommand(ctx, "explain pool demo")
}

func (r *demoRunner) hibernateAndResume(ctx context.Context) error {
	if err := r.runCommand(ctx, "cluster hibernate second --wait --timeout 5m"); err != nil {
		return err
	}
	return r.runCommand(ctx, "cluster resume second --wait --timeout 5m")
}

// waitForSnapshot reads the objects in the demo's namespace until done returns true.
func (r *demoRunner) waitForSnapshot(ctx context.Context, done func(*base.HubSnapshot) bool) error {
	news := r.WatchForChanges(ctx, r.hub, &hivev1.ClusterPoolList{}, &hivev1.ClusterDeploymentList{})
	ticker := r.Clock.NewTicker(base.RedrawInterval)
	defer ticker.Stop()
	for {
		sc, err := r.hub.ReadSnapshot(ctx, r.hub.Namespace) // ignore errors: the next read may succeed
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

// runCommand runs a hotspare command as a user would, and prints the command and its output. No word of
// the command contains a blank.
func (r *demoRunner) runCommand(ctx context.Context, command string, env ...string) error {
	return r.runWords(ctx, strings.Fields(command), env...)
}

// runWords is runCommand for a command whose words may contain blanks.
func (r *demoRunner) runWords(ctx context.Context, words []string, env ...string) error {
	if r.Flags.Namespace != "" && !slices.Contains(env, "KUBECONFIG") && words[0] != "kubectl" {
		words = append(words, "-n", r.Flags.Namespace)
	}
	fmt.Fprintf(r.Stdout, "\n%s$ %s\n", indent, formatCommandLine(r.Name, words, env))
	child := exec.CommandContext(ctx, r.self, words...)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGINT) }
	child.WaitDelay = 10 * time.Second
	child.Env = r.childEnvironment(env...)
	out := &indentWriter{to: r.commands}
	child.Stdout, child.Stderr = out, out
	err := child.Run()
	out.flushLine()
	if err == nil {
		return nil
	}
	if child.ProcessState != nil && child.ProcessState.ExitCode() == base.ExitSignal+int(syscall.SIGINT) {
		r.waitForInterrupt(ctx)
	}
	return cmp.Or(context.Cause(ctx), fmt.Errorf("the command above: %w", err))
}

// formatCommandLine returns a command as a user would enter it in a shell.
func formatCommandLine(program string, words, env []string) string {
	var line []string
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		line = append(line, name+"="+quoteForShell(value))
	}
	line = append(line, program)
	for _, word := range words {
		line = append(line, quoteForShell(word))
	}
	return strings.Join(line, " ")
}

// quoteForShell quotes a word that a shell would read as something else: see section 2.2 of the Shell
// Command Language of POSIX.
func quoteForShell(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'\\$`|&;<>()*?[#~%!{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// waitForInterrupt waits a second for a Ctrl-C that a command has received: this process receives
// it too.
func (r *demoRunner) waitForInterrupt(ctx context.Context) {
	moment := r.Clock.NewTimer(time.Second)
	defer moment.Stop()
	select {
	case <-ctx.Done():
	case <-moment.C():
	}
}

// indentWriter indents lines. As the standard output and standard error of a program, it keeps
// their order.
type indentWriter struct {
	to          commands
	partialLine []byte
}

func (w *indentWriter) Write(p []byte) (int, error) {
	w.partialLine = append(w.partialLine, p...)
	for {
		line, rest, found := bytes.Cut(w.partialLine, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.printIndented(line)
		w.partialLine = rest
	}
}

func (w *indentWriter) flushLine() {
	if len(w.partialLine) > 0 {
		w.printIndented(w.partialLine)
	}
}

func (w *indentWriter) printIndented(line []byte) {
	if len(line) > 0 {
		fmt.Fprintf(w.to.Stdout, "%s  %s\n", indent, line)
		return
	}
	fmt.Fprintln(w.to.Stdout)
}

// deleteDemoNamespace deletes the claims and pools of the demo, and then its namespace.
func (r *demoRunner) deleteDemoNamespace(ctx context.Context) error {
	sc, err := r.hub.ReadSnapshot(ctx, demoNamespace)
	if err != nil {
		return r.hub.ExplainAPIError(err)
	}
	for i := range sc.Claims.Items {
		if err := r.hub.Delete(ctx, &sc.Claims.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing claim %s: %w", sc.Claims.Items[i].Name, err)
		}
	}
	for i := range sc.Pools.Items {
		if err := r.hub.Delete(ctx, &sc.Pools.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting pool %s: %w", sc.Pools.Items[i].Name, err)
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: demoNamespace}}
	if err := r.hub.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", demoNamespace, err)
	}
	err = r.waitForSnapshot(ctx, func(sc *base.HubSnapshot) bool {
		return len(sc.Pools.Items)+len(sc.Claims.Items)+len(sc.Clusters.Items) == 0
	})
	if err != nil {
		r.printLine("The hub is still destroying the demo's clusters.")
	}
	return nil
}
