package recipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/remote"
)

const testLong = `Run the conformance suite on a recipe: it creates, stops, starts and destroys clusters,
runs programs twice, and kills them at random times. RECIPE is a folder or the name of a
recipe.

The suite creates real clusters, which may cost money, and destroys them, also after
Ctrl-C. It runs the programs on this machine, as hotspare up does. If a cluster cannot be
destroyed, the output contains its infraID.

The exit code is 0 if no check failed. A skipped check needs a program that the recipe
does not have.`

// pollPause is the time between two calls of a verb.
const pollPause = time.Second

// testOptions are the flags of recipe test.
type testOptions struct {
	source
	with     []string
	secrets  string
	patience time.Duration
	keepLog  string
	skipAPI  bool
	seed     uint64
}

// testReport is the output of recipe test for programs.
type testReport struct {
	Recipe  string            `json:"recipe"`
	Version string            `json:"version"`
	With    map[string]string `json:"with"`
	// Seed repeats the random times at which programs were killed.
	Seed    uint64      `json:"seed"`
	Checks  []testCheck `json:"checks"`
	Passed  int         `json:"passed"`
	Failed  int         `json:"failed"`
	Skipped int         `json:"skipped"`
	Seconds float64     `json:"seconds"`
}

type testCheck struct {
	Name    string            `json:"name"`
	State   recipe.CheckState `json:"state"`
	Seconds float64           `json:"seconds"`
	Detail  string            `json:"detail,omitempty"`
	// Log is the end of the programs' standard error, if the check failed.
	Log []string `json:"log,omitempty"`
}

func (a commands) testCommand() *cobra.Command {
	o := &testOptions{}
	cmd := &cobra.Command{
		Use:   "test RECIPE",
		Short: "Test whether a recipe creates and destroys clusters reliably",
		Long:  testLong,
		Example: `  hotspare recipe test ./mytool
  hotspare recipe test kind --with workers=1 --patience 10m --keep-log kind.log
  hotspare recipe test ./mytool --secrets ./credentials -o json`,
		Args:              base.RequireOneName("recipe"),
		ValidArgsFunction: o.completeRecipes,
	}
	o.addFlag(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.with, "with", nil, "value of a parameter, such as workers=3; may be repeated")
	f.StringVar(&o.secrets, "secrets", "", "`folder` with credentials, which the programs find in $HOTSPARE_SECRETS")
	f.DurationVar(&o.patience, "patience", 30*time.Minute, "how long to wait for one goal, such as a created cluster")
	f.StringVar(&o.keepLog, "keep-log", "", "`file` to which the standard error of the programs is written")
	f.BoolVar(&o.skipAPI, "skip-api", false, "do not test whether the API of a cluster answers and its nodes are ready")
	f.Uint64Var(&o.seed, "seed", 0, "number from which the random times are derived (default: random)")
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("with", cobra.NoFileCompletions))
	base.MustSucceed(cmd.MarkFlagDirname("secrets"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		with, err := parseParameters(o.with)
		switch {
		case err != nil:
		case o.patience <= 0:
			err = fmt.Errorf("--patience %s must be positive", o.patience)
		case a.Flags.Output == base.AsName:
			err = errors.New("-o name is not supported: use table, json or yaml")
		}
		if err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		return o.withRecipe(args[0], func(f found) error { return a.testRecipe(cmd.Context(), f, o, with) })
	}
	return cmd
}

// parseParameters parses the values of --with.
func parseParameters(given []string) (map[string]string, error) {
	with := map[string]string{}
	for _, g := range given {
		name, value, found := strings.Cut(g, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("--with %q is not a parameter: use NAME=VALUE, such as workers=3", g)
		}
		if _, twice := with[name]; twice {
			return nil, fmt.Errorf("--with sets %s twice: specify one value", name)
		}
		with[name] = value
	}
	return with, nil
}

// testRecipe runs the suite in a temporary folder.
func (a commands) testRecipe(ctx context.Context, f found, o *testOptions, with map[string]string) (err error) {
	if _, err := f.Parameters.Complete(with); err != nil {
		return fmt.Errorf("the parameters of recipe %s are invalid:\n%w", f.Name, err)
	}
	if o.secrets != "" {
		if o.secrets, err = filepath.Abs(o.secrets); err != nil {
			return fmt.Errorf("finding the secrets: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "hotspare-recipe-test-")
	if err != nil {
		return fmt.Errorf("testing recipe %s: %w", f.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log, err := openLog(o.keepLog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	seed := o.seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	usable := checkUsable
	if o.skipAPI {
		usable = nil
	}
	t := &tester{App: a.App, log: log, report: testReport{Recipe: f.Name, Version: f.Version, With: with, Seed: seed, Checks: []testCheck{}}}
	return t.run(ctx, o.keepLog, &recipe.Suite{
		Recipe: f.Recipe, With: with, Dir: dir, Secrets: o.secrets, Log: log, Random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // it chooses times only
		Pause: pollPause, Patience: o.patience, Begin: t.beginCheck, Report: t.reportCheck, CheckUsable: usable,
	})
}

// checkUsable returns why the hub could not use a cluster: it asks the API as the hub does.
func checkUsable(ctx context.Context, c recipe.Cluster, kubeconfig []byte, expectNodes bool) error {
	inlined, err := runner.InlineKubeconfig(c, kubeconfig)
	if err != nil {
		return err
	}
	if err := remote.CheckUsable(ctx, inlined, expectNodes); err != nil {
		return fmt.Errorf("its API, as the kubeconfig names it: %w", err)
	}
	return nil
}

// tester runs the suite and prints each check when it ends.
type tester struct {
	*base.App
	log    *testLog
	report testReport
	view   *base.ProgressView
	failed error // the first error of a write
}

// run runs the suite. It returns an error if a check failed, or if ctx ended.
func (t *tester) run(ctx context.Context, logFile string, s *recipe.Suite) error {
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(t.Stderr, "Destroying the clusters of the test. Press Ctrl-C again to exit immediately; the clusters then remain.")
	})
	defer stop()
	t.printf("%-7s  %-*s  %6s  %s\n", "RESULT", checkWidth(), "CHECK", "TIME", "DETAIL")
	started := t.Clock.Now()
	s.Run(ctx)
	elapsed := t.Clock.Since(started)
	t.report.Seconds = elapsed.Seconds()
	t.printf("\n%d passed, %d failed, %d skipped, in %s (seed %d)\n", t.report.Passed, t.report.Failed, t.report.Skipped, formatSeconds(elapsed), t.report.Seed)
	if t.isEncoded() {
		t.failed = t.PrintEncoded(t.report)
	}
	switch {
	case t.failed != nil:
		return fmt.Errorf("printing the result: %w", t.failed)
	case ctx.Err() != nil:
		return ctx.Err()
	case t.report.Failed == 0:
		return nil
	}
	remedy := "see the log: " + logFile
	if logFile == "" {
		remedy = "to get the complete log, add --keep-log FILE"
	}
	return base.WithRemedy(fmt.Errorf("recipe %s failed %d of %d checks", t.report.Recipe, t.report.Failed, len(t.report.Checks)), remedy)
}

func (t *tester) isEncoded() bool {
	return t.Flags.Output == base.AsJSON || t.Flags.Output == base.AsYAML
}

// printf prints a part of the table. It prints nothing with -o json or -o yaml.
func (t *tester) printf(format string, args ...any) {
	if t.isEncoded() || t.failed != nil {
		return
	}
	_, t.failed = fmt.Fprintf(t.Stdout, format, args...)
}

// beginCheck shows the name of the check on a terminal while it runs.
func (t *tester) beginCheck(name string) {
	t.log.forgetLines()
	if t.IsTerminal(t.Stderr) {
		t.view = t.StartProgressView(name)
		t.view.ShowState("running")
	}
}

func (t *tester) reportCheck(c recipe.Check) {
	if t.view != nil {
		t.view.Close()
	}
	entry := testCheck{Name: c.Name, State: c.State, Seconds: c.Took.Seconds(), Detail: c.Detail}
	switch c.State {
	case recipe.CheckPassed:
		t.report.Passed++
	case recipe.CheckSkipped:
		t.report.Skipped++
	case recipe.CheckFailed:
		t.report.Failed++
		entry.Log = t.log.copyLines()
	}
	t.report.Checks = append(t.report.Checks, entry)
	t.printf("%s\n", strings.TrimRight(fmt.Sprintf("%-7s  %-*s  %6s  %s", c.State, checkWidth(), c.Name, formatSeconds(c.Took), c.Detail), " "))
	for _, line := range entry.Log {
		t.printf("    | %s\n", line)
	}
}

// checkWidth returns the length of the longest name of a check.
func checkWidth() int {
	width := 0
	for _, name := range recipe.CheckNames() {
		width = max(width, len(name))
	}
	return width
}

// formatSeconds formats the duration of a check: 0.1s, 12.0s, 3m20s.
func formatSeconds(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// testLog writes the log to a file and keeps its last lines. The suite runs one program at a time.
type testLog struct {
	file io.WriteCloser // nil without --keep-log
	tail string
}

// maxTailLines and maxTailSize limit what a failed check prints of the log.
const (
	maxTailLines = 8
	maxTailSize  = 4 << 10
)

func openLog(path string) (*testLog, error) {
	if path == "" {
		return &testLog{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the log: %w", err)
	}
	return &testLog{file: f}, nil
}

// Write implements io.Writer.
func (l *testLog) Write(p []byte) (int, error) {
	l.tail += string(p)
	if over := len(l.tail) - maxTailSize; over > 0 {
		l.tail = l.tail[over:]
	}
	if l.file == nil {
		return len(p), nil
	}
	return l.file.Write(p)
}

// Close closes the file.
func (l *testLog) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func (l *testLog) forgetLines() { l.tail = "" }

// copyLines returns the last lines.
func (l *testLog) copyLines() []string {
	var lines []string
	for line := range strings.Lines(l.tail) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return slices.Clone(lines[max(0, len(lines)-maxTailLines):])
}
