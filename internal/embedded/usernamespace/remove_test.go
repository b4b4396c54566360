package usernamespace

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveAllRemovesAFolderAndFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	gone := filepath.Join(dir, "gone", "below")
	for _, d := range []string{kept, gone} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(kept, filepath.Join(gone, "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing left
		if err := (Remover{}).RemoveAll(t.Context(), filepath.Dir(gone)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Dir(gone)); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if err := (Remover{}).RemoveAll(t.Context(), filepath.Join(dir, "no", "such")); err != nil {
		t.Errorf("a folder without a parent: %v", err)
	}
}

func TestRemoveBelowDoesNotLeaveItsFolder(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside", "precious")
	for _, d := range []string{inside, outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link/precious", "../outside/precious"} {
		if err := RemoveBelow(inside, path); err == nil {
			t.Errorf("removing %s succeeds", path)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}
