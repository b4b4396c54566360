package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/up/containersrecord"
	"hotspare.io/hotspare/recipes"
)

func TestDataDir(t *testing.T) {
	home, here := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(here)
	for _, step := range []struct {
		name, flag, env string
		before          func()
		want            string
	}{
		{name: "below home when there is none", want: filepath.Join(home, ".hotspare")},
		{name: "here once it exists", before: func() { mkdir(t, ".hotspare") }, want: ".hotspare"},
		{name: "the environment before that", env: "/e", want: "/e"},
		{name: "the flag before all", flag: "/f", env: "/e", want: "/f"},
	} {
		t.Setenv("HOTSPARE_DATA_DIR", step.env)
		if step.before != nil {
			step.before()
		}
		cmd := New(base.Options{})
		if err := cmd.PersistentFlags().Set("data-dir", step.flag); err != nil {
			t.Fatal(err)
		}
		if got := base.DataDir(cmd); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestKubeconfigIsFoundInTheDataFolder(t *testing.T) {
	dir := filepath.Dir(kubeconfigFile(t))
	r := newRig(t, interceptor.Funcs{}, world()...)
	for name, env := range map[string]string{"without KUBECONFIG": "", "before KUBECONFIG when the flag is given": "/no/such/file"} {
		t.Setenv("KUBECONFIG", env)
		if code := r.run("pool", "list", "--data-dir", dir); code != 0 {
			t.Errorf("%s: exit code %d: %s", name, code, r.stderr.String())
		}
	}
}

func TestNextCommandRepeatsTheFlags(t *testing.T) {
	a := &base.App{Flags: base.Flags{Namespace: "team-a", DataDir: "/d", Context: "c"}}
	if got, want := a.FormatCommand("claim release %s", "x"), "hotspare claim release x -n team-a --data-dir /d --context c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestKubeconfigFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	write(t, path, "old")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, interceptor.Funcs{}, world()...)
	if code := r.run("cluster", "kubeconfig", "alice", "-o", path); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || info.Mode() != 0o600 || string(raw) != secretKubeconfig {
		t.Errorf("mode %v, content %q, error %v", info.Mode(), raw, err)
	}
	if strings.Contains(r.stdout.String(), "apiVersion") {
		t.Error("the secret was printed as well")
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	const green = "\x1b[32mRunning\x1b[0m"
	for name, c := range map[string]struct {
		terminal bool
		noColor  string
		want     bool
	}{
		"a pipe":                 {want: false},
		"a terminal":             {terminal: true, want: true},
		"a terminal, NO_COLOR=1": {terminal: true, noColor: "1", want: false},
	} {
		r := newRig(t, interceptor.Funcs{}, world()...)
		r.terminal = c.terminal
		t.Setenv("NO_COLOR", c.noColor)
		r.run("claim", "list")
		if got := strings.Contains(r.stdout.String(), green); got != c.want {
			t.Errorf("%s: coloured is %v", name, got)
		}
	}
}

func TestCompletion(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, world()...)
	for line, want := range map[string]string{
		"pool describe |":           "dev",
		"pool describe -n team-a |": "bare",
		"pool describe dev |":       "",
		"claim release |":           "alice bob",
		"claim release alice |":     "bob",
		"cluster describe |":        "alice bob pet dev-1aaaa dev-2bbbb dev-3cccc dev-4dddd",
		"claim run |":               "dev",
		"explain pool |":            "dev",
		"explain claim |":           "alice bob",
		"explain claim bob |":       "",
		"explain cluster |":         "alice bob pet dev-1aaaa dev-2bbbb dev-3cccc dev-4dddd",
		"pool watch |":              "dev",
		"cluster logs bob |":        "",
		"local break dev-2bbbb |":   strings.Join(machine.InjectionNames(), " "),
		"local heal alice |":        strings.Join(machine.InjectionNames(), " "),
		"local heal |":              "alice bob pet dev-1aaaa dev-2bbbb dev-3cccc dev-4dddd",
		"local break a b |":         "",
		"pool list -o |":            "table json yaml name",
		"inventory list |":          "dev",
		"inventory list dev |":      "",
		"inventory describe |":      "",
		"image list |":              "",
		"image delete |":            "",
		"recipe new |":              "",
		"recipe list |":             "",
		"recipe describe |":         strings.Join(recipes.Names(), " "),
		"recipe test kind |":        "",
	} {
		typed := strings.Split(strings.TrimSuffix(line, "|"), " ")
		r.run(append([]string{"__complete"}, typed...)...)
		var got []string
		for _, found := range strings.Split(r.stdout.String(), "\n") {
			if found != "" && !strings.HasPrefix(found, ":") {
				got = append(got, found)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
}

func TestExtraCommandsSeeTheFlags(t *testing.T) {
	var seen string
	extra := &cobra.Command{Use: "up", RunE: func(cmd *cobra.Command, _ []string) error {
		seen = base.DataDir(cmd)
		return nil
	}}
	cmd := New(base.Options{Stdout: &safeBuffer{}, Stderr: &safeBuffer{}, Commands: []*cobra.Command{extra}})
	cmd.SetArgs([]string{"up", "--data-dir", "/d"})
	if code := Execute(t.Context(), cmd); code != 0 || seen != "/d" {
		t.Errorf("exit code %d, data folder %q", code, seen)
	}
}

func TestEveryCommandHasItsWords(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short is %q", cmd.CommandPath(), cmd.Short)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(New(base.Options{}))
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]hivev1.Duration{
		4 * time.Hour: "4h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", 30 * time.Second: "30s", 61 * time.Minute: "1h1m",
		time.Hour + time.Second: "1h0m1s", 20 * time.Hour: "20h",
	} {
		if got := base.ToAPIDuration(d); *got != want {
			t.Errorf("%v: %s, want %s", d, *got, want)
		}
	}
	if base.ToAPIDuration(0) != nil {
		t.Error("0 is a lifetime")
	}
}

func TestStatusTellsWhereMetricsAre(t *testing.T) {
	const url = "http://127.0.0.1:41233/metrics"
	dir := filepath.Dir(kubeconfigFile(t))
	r := newRig(t, interceptor.Funcs{}, world()...)
	status := func(args ...string) string {
		t.Helper()
		if code := r.run(append([]string{"status"}, args...)...); code != 0 {
			t.Fatalf("exit code %d: %s", code, r.stderr.String())
		}
		return r.stdout.String()
	}
	if got := status("--data-dir", dir); strings.Contains(got, "Metrics") {
		t.Errorf("none are served, and it says:\n%s", got)
	}
	write(t, filepath.Join(dir, "metrics"), url+"\n")
	if got := status("--data-dir", dir); !strings.Contains(got, "Metrics    "+url+"\n") {
		t.Errorf("it says:\n%s", got)
	}
	if got := status("--data-dir", dir, "-o", "json"); !strings.Contains(got, `"metrics": "`+url+`"`) {
		t.Errorf("it says:\n%s", got)
	}
	if got := status(); strings.Contains(got, url) { // $KUBECONFIG names another hub
		t.Errorf("of another hub it says:\n%s", got)
	}
}

func TestStatusSaysWhetherPodsAreSimulatedAndWhy(t *testing.T) {
	dir := filepath.Dir(kubeconfigFile(t))
	r := newRig(t, interceptor.Funcs{}, world()...)
	status := func(args ...string) string {
		t.Helper()
		if code := r.run(append([]string{"status"}, args...)...); code != 0 {
			t.Fatalf("exit code %d: %s", code, r.stderr.String())
		}
		return r.stdout.String()
	}
	if got := status("--data-dir", dir); strings.Contains(got, "Containers") {
		t.Errorf("a hub without a record says:\n%s", got)
	}
	const obstacle = "runc is missing: run \"apt-get install runc\""
	for obstacle, want := range map[string]string{"": "real pods", obstacle: "simulated: " + obstacle} {
		if err := (containersrecord.Record{Obstacle: obstacle}).Write(dir); err != nil {
			t.Fatal(err)
		}
		if got := status("--data-dir", dir); !strings.Contains(got, "Containers   "+want+"\n") {
			t.Errorf("obstacle %q: it says:\n%s", obstacle, got)
		}
		var report struct {
			Containers         *bool
			ContainersObstacle string
		}
		if err := json.Unmarshal([]byte(status("--data-dir", dir, "-o", "json")), &report); err != nil {
			t.Fatal(err)
		}
		if report.Containers == nil || *report.Containers != (obstacle == "") || report.ContainersObstacle != obstacle {
			t.Errorf("obstacle %q: it reports %+v", obstacle, report)
		}
	}
	if got := status(); strings.Contains(got, "Containers") { // $KUBECONFIG names another hub
		t.Errorf("of another hub it says:\n%s", got)
	}
}
