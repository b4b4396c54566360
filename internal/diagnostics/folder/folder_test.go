package folder_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/folder"
	"hotspare.io/hotspare/internal/diagnostics/retention"
)

func TestAFolderOfBundles(t *testing.T) {
	f := folder.Folder{Dir: filepath.Join(t.TempDir(), "new"), Limits: retention.Limits{MaxAge: time.Hour}}
	now := time.Now()
	if err := f.Prune(t.Context(), now); err != nil {
		t.Errorf("no folder: %v", err)
	}
	b := diagnostics.NewBundle(diagnostics.Subject{Name: "c"}, diagnostics.DefaultLimits, diagnostics.NewScrubber())
	const name = "c-gate-20260301T120000Z-0a1b2c3d.tar.gz"
	for _, bad := range []string{"../" + name, "", ".tar.gz", "a/b-c.tar.gz", ".hidden-a.tar.gz"} {
		if err := f.Write(t.Context(), bad, b); err == nil {
			t.Errorf("%q was written", bad)
		}
	}
	if err := f.Write(t.Context(), name, b); err != nil {
		t.Fatal(err)
	}
	for which, want := range map[string]bool{name: true, "other-a.tar.gz": false} {
		if stored, err := f.Has(t.Context(), which); err != nil || stored != want {
			t.Errorf("%s is stored: %t, %v", which, stored, err)
		}
	}
	for other, age := range map[string]time.Duration{"mine.txt": 9 * time.Hour, ".writing-old": 2 * time.Hour, ".writing-new": time.Minute} {
		path := filepath.Join(f.Dir, other)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.List()
	if err != nil || len(list) != 1 || list[0].Cluster != "0a1b2c3d" || list[0].Size == 0 {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if info, err := os.Stat(filepath.Join(f.Dir, name)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	expect := func(at time.Time, want ...string) {
		t.Helper()
		if err := f.Prune(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(f.Dir)
		if err != nil || len(entries) != len(want) {
			t.Fatalf("the folder has %v, %v, want %v", entries, err, want)
		}
		for i, e := range entries {
			if e.Name() != want[i] {
				t.Errorf("the folder has %v, want %v", entries, want)
			}
		}
	}
	expect(now, ".writing-new", name, "mine.txt")
	expect(now.Add(2*time.Hour), "mine.txt")
}
