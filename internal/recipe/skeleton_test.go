package recipe

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheSkeletonIsARecipeThatPassesTheSuite(t *testing.T) {
	world := t.TempDir()
	t.Setenv("XDG_STATE_HOME", world)
	dir := filepath.Join(t.TempDir(), "new", "mine")
	names, err := WriteSkeleton(dir)
	if want := []string{"create", "destroy", "observe", "recipe.yaml", "start", "stop"}; err != nil || !slices.Equal(names, want) {
		t.Fatalf("got %v, %v", names, err)
	}
	r, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &Suite{Recipe: r, Dir: t.TempDir(), Random: rand.New(rand.NewPCG(1, 0)), Pause: time.Millisecond, Patience: time.Minute, KillWithin: 100 * time.Millisecond}
	all := s.Run(t.Context())
	if slices.ContainsFunc(all, func(c Check) bool { return c.State != CheckPassed }) {
		t.Errorf("not all checks have passed:\n%s", Table(all))
	}
	if left, err := filepath.Glob(filepath.Join(world, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestASkeletonOverwritesNothing(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	taken := filepath.Join(top, "taken")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		taken:                        "taken already exists: choose another name, or delete it",
		filepath.Join(top, "My_One"): `"My_One" is not a valid name of a recipe: use at most 63 lowercase letters`,
	} {
		if _, err := WriteSkeleton(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", dir, err)
		}
	}
	entries, err := os.ReadDir(top)
	if err != nil || len(entries) != 1 {
		t.Errorf("in the folder are %v, %v", entries, err)
	}
}
