package diagnostics_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	controller "hotspare.io/hotspare/internal/controller/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/folder"
	"hotspare.io/hotspare/internal/diagnostics/retention"
)

// watchedFolder is a folder that reports each Prune. The first one fails.
type watchedFolder struct {
	folder.Folder
	calls  int
	pruned chan time.Time
}

func (f *watchedFolder) Prune(ctx context.Context, now time.Time) error {
	defer func() { f.pruned <- now }()
	if f.calls++; f.calls == 1 {
		return errors.New("the disk does not answer")
	}
	return f.Folder.Prune(ctx, now)
}

// A hub without new failures deletes its bundles, too, when they are seven days old.
func TestBundlesAreDeletedByAgeWhileNothingFails(t *testing.T) {
	store := &watchedFolder{Folder: folder.Folder{Dir: t.TempDir(), Limits: retention.DefaultLimits}, pruned: make(chan time.Time, 10)}
	path := filepath.Join(store.Dir, first)
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, noon, noon)); err != nil {
		t.Fatal(err)
	}
	exists := func() bool { _, err := os.Stat(path); return err == nil }
	ctx, cancel := context.WithCancel(t.Context())
	clock := clocktesting.NewFakeClock(noon.Add(7*24*time.Hour - 30*time.Minute))
	pruner := &controller.Pruner{Store: store, Clock: clock}
	ended := make(chan error, 1)
	go func() { ended <- pruner.Start(ctx) }()
	next := func() time.Time {
		t.Helper()
		select {
		case at := <-store.pruned:
			return at
		case err := <-ended:
			t.Fatalf("it has ended: %v", err)
			return time.Time{}
		}
	}
	if at := next(); !at.Equal(noon.Add(7*24*time.Hour-30*time.Minute)) || !exists() {
		t.Errorf("pruned at %s, the bundle exists: %t", at, exists())
	}
	clock.Step(time.Hour)
	if at := next(); !at.Equal(noon.Add(7*24*time.Hour+30*time.Minute)) || exists() {
		t.Errorf("pruned at %s, the bundle exists: %t", at, exists())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !pruner.NeedLeaderElection() {
		t.Error("replicas that do not lead prune the store, too")
	}
}
