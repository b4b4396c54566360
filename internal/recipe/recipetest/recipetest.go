// Package recipetest contains a stand-in recipe for tests: it creates folders instead of machines,
// slowly enough to be killed, and records whatever must never happen.
package recipetest

import (
	"embed"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

//go:embed standin
var files embed.FS

// homeVariable is the environment variable with the folder in which the stand-in keeps its clusters.
const homeVariable = "STANDIN_HOME"

// Name is the name of the stand-in recipe.
const Name = "standin"

// A World is the folder in which the stand-in keeps its clusters. All recipes of a process share one.
type World struct {
	// Home is the folder; Catalog is the folder with the recipe.
	Home, Catalog string
}

// New writes the stand-in recipe without the given programs, and makes all programs of this process
// use a new World.
func New(t testing.TB, without ...string) World {
	t.Helper()
	w := World{Home: t.TempDir(), Catalog: t.TempDir()}
	t.Setenv(homeVariable, w.Home)
	if err := os.MkdirAll(w.dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := files.ReadDir(Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := files.ReadFile(Name + "/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.dir(), e.Name()), raw, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range without {
		if err := os.Remove(filepath.Join(w.dir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"clusters", "running", "faults"} {
		if err := os.Mkdir(filepath.Join(w.Home, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w World) dir() string { return filepath.Join(w.Catalog, Name) }

// WriteProgram replaces a program of the recipe.
func (w World) WriteProgram(t testing.TB, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir(), name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// SetFault makes the next run of a verb for a cluster exit with a code, after it has changed
// something.
func (w World) SetFault(t testing.TB, cluster, verb string, code int) {
	t.Helper()
	path := filepath.Join(w.Home, "faults", cluster+"."+verb)
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(code)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// ListClusters returns the infraIDs of the clusters that exist, also in part, and that begin with
// prefix.
func (w World) ListClusters(t testing.TB, prefix string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.Home, "clusters"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// KillRunning sends SIGKILL to the program that runs for a cluster of a given name, if there is one.
func (w World) KillRunning(name string) {
	found, _ := filepath.Glob(filepath.Join(w.Home, "running", name+"-*"))
	for _, path := range found {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		environment, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err == nil && pid > 1 && strings.Contains(string(environment), homeVariable+"="+w.Home+"\x00") {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// ReadEvents returns the recorded events of a cluster of a given name: each begin and end of a
// program as "verb infraID", and each rule that was broken as "BROKEN …".
func (w World) ReadEvents(t testing.TB, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.Home, "events-"+name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// CountEvents returns how many events begin with prefix.
func CountEvents(events []string, prefix string) int {
	n := 0
	for _, e := range events {
		if strings.HasPrefix(e, prefix) {
			n++
		}
	}
	return n
}
