//go:build realclusters

// Package recipes tests a recipe with real clusters: by the conformance suite of package recipe, as a
// pool of the built program hotspare that serves a claim, and with kill -9 of hotspare. Each test compares
// this machine before and after. The tests need what the recipe needs, for example root:
//
//	go test -tags realclusters -timeout 60m ./test/recipes -v -recipe ../../recipes/kubernetes-processes -with workers=1
package recipes

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/recipe"
)

var (
	folder     = flag.String("recipe", "", "the folder of the recipe to test")
	killWithin = flag.Duration("kill-within", 10*time.Second, "the time within which the suite kills a program")
	seed       = flag.Uint64("seed", uint64(time.Now().UnixNano()), "chooses when programs are killed")
	with       = parameters{}
)

func init() { flag.Var(with, "with", "a parameter of the recipe, as name=value; may be repeated") }

// parameters is a flag that may be repeated.
type parameters map[string]string

// String returns the parameters in order of their names.
func (p parameters) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		out = append(out, name+"="+p[name])
	}
	return strings.Join(out, ",")
}

// Set adds one parameter.
func (p parameters) Set(entry string) error {
	name, value, ok := strings.Cut(entry, "=")
	if !ok {
		return fmt.Errorf("-with %q: write name=value", entry)
	}
	p[name] = value
	return nil
}

func TestTheRecipePassesTheSuiteAndLeavesNothingBehind(t *testing.T) {
	if *folder == "" {
		t.Skip("no -recipe")
	}
	r, err := recipe.Load(*folder)
	if err != nil {
		t.Fatal(err)
	}
	before := observeMachine(t, r.Dir)
	log := &bytes.Buffer{}
	t.Logf("seed %d", *seed)
	s := &recipe.Suite{
		Recipe: r, With: with, Dir: t.TempDir(), Log: log, Random: rand.New(rand.NewPCG(*seed, 0)),
		Pause: 200 * time.Millisecond, Patience: 10 * time.Minute, KillWithin: *killWithin,
		Report: func(c recipe.Check) { fmt.Print(recipe.Table([]recipe.Check{c})) },
	}
	all := s.Run(t.Context())
	if slices.ContainsFunc(all, func(c recipe.Check) bool { return c.State == recipe.CheckFailed }) {
		t.Errorf("not all checks have passed:\n%s\nthe programs printed:\n%s", recipe.Table(all), log)
	}
	compareMachine(t, r.Dir, before)
}

// compareMachine fails the test for all that is on this machine now and was not there before.
func compareMachine(t *testing.T, recipeDir string, before map[string][]string) {
	t.Helper()
	after := observeMachine(t, recipeDir)
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		left := slices.DeleteFunc(after[kind], func(item string) bool { return slices.Contains(before[kind], item) })
		fmt.Printf("%-18s %4d before, %d left behind\n", kind, len(before[kind]), len(left))
		if len(left) > 0 {
			t.Errorf("%s left behind:\n%s", kind, strings.Join(left, "\n"))
		}
	}
}

// stateFolders are where cluster tools leave files. None of them is on a machine without clusters.
var stateFolders = []string{
	"/run/containerd", "/run/netns", "/run/flannel", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/lib/etcd",
	"/var/log/pods", "/var/log/containers", "/etc/cni", "/etc/kubernetes", "/usr/libexec/kubernetes", "/opt/cni",
}

// observeMachine lists what clusters could leave on this machine: processes, mounts, cgroups, network
// interfaces and files. A listening socket has a process.
func observeMachine(t *testing.T, recipeDir string) map[string][]string {
	t.Helper()
	out := map[string][]string{"processes": processes(t, recipeDir)}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	out["mounts"] = strings.Split(strings.TrimSpace(string(mounts)), "\n")
	out["cgroups"] = list("/sys/fs/cgroup", fs.FileMode.IsDir)
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		out["interfaces"] = append(out["interfaces"], i.Name)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		state = filepath.Join(os.Getenv("HOME"), ".local", "state")
	}
	own := filepath.Join(state, filepath.Base(recipeDir)) // a recipe may leave this folder, if it is empty
	for _, dir := range append(stateFolders, own) {
		out["files"] = append(out["files"], list(dir, func(m fs.FileMode) bool { return !m.IsDir() })...)
		out["folders"] = append(out["folders"], list(dir, fs.FileMode.IsDir)...)
	}
	out["folders"] = slices.DeleteFunc(out["folders"], func(dir string) bool { return dir == own })
	return out
}

// list returns the paths at and below dir whose mode is wanted; none if dir does not exist.
func list(dir string, wanted func(fs.FileMode) bool) (out []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what ends meanwhile is not there
		if err == nil && wanted(e.Type()) {
			out = append(out, path)
		}
		return nil
	})
	return out
}

// processes returns each process that a verb of the recipe has started, by its environment, or that
// is in another process namespace than this one: containers do not inherit the environment.
func processes(t *testing.T, recipeDir string) (out []string) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range folders {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(line) == 0 {
			continue // it has ended, or is a kernel thread
		}
		environment, errEnvironment := os.ReadFile(filepath.Join(dir, "environ"))
		namespace, errNamespace := os.Readlink(filepath.Join(dir, "ns", "pid"))
		if errEnvironment != nil || errNamespace != nil {
			continue // it has ended
		}
		if bytes.Contains(environment, []byte("HOTSPARE_RECIPE_DIR="+recipeDir+"\x00")) || namespace != own {
			out = append(out, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}
