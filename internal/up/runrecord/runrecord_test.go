package runrecord

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestTheEndOfARunIsDescribed(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(dir string, r Record) error
		want string
		fail bool
	}{
		"an error": {
			func(dir string, r Record) error {
				return r.End(dir, errors.New("the disk of /data is full: free disk space there"), noon)
			}, "ended 3m ago: the disk of /data is full: free disk space there", true,
		},
		"a stop":     {func(dir string, r Record) error { return r.End(dir, nil, noon) }, "was stopped 3m ago", false},
		"no end yet": {func(string, Record) error { return nil }, "runs: it may be starting or stopping", false},
		"a long error": {
			func(dir string, r Record) error { return r.End(dir, errors.New(strings.Repeat("\x00é", 5000)), noon) }, "…", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := Begin(dir, noon.Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.end(dir, r); err != nil {
				t.Fatal(err)
			}
			got, ok := Read(dir)
			if words := got.Describe(noon.Add(3 * time.Minute)); !ok || !strings.Contains(words, c.want) || !strings.HasPrefix(words, "hotspare up (pid ") {
				t.Errorf("got %q, want %q", words, c.want)
			}
			if got.IsFailed() != c.fail {
				t.Errorf("failed: %t", got.IsFailed())
			}
		})
	}
}

func TestTheRecordOfAnEndNeedsNoSpace(t *testing.T) {
	dir := t.TempDir()
	r, err := Begin(dir, noon)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.End(dir, errors.New(strings.Repeat("x", 10000)), noon); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	if after.Size() != before.Size() || !os.SameFile(before, after) || after.Sys().(*syscall.Stat_t).Blocks != before.Sys().(*syscall.Stat_t).Blocks {
		t.Errorf("the file of %d bytes was replaced by one of %d bytes", before.Size(), after.Size())
	}
}

func TestARunThatDidNotRecordItsEndWasKilled(t *testing.T) {
	r := Record{PID: 1 << 30, Started: noon} // no process can have this ID
	if got := r.Describe(noon); !r.IsFailed() || !strings.Contains(got, "was killed, or this computer was switched off. All stored data is kept") {
		t.Errorf("got %q", got)
	}
}

func TestTheNextRunReplacesTheRecord(t *testing.T) {
	dir := t.TempDir()
	first, err := Begin(dir, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.End(dir, errors.New(strings.Repeat("long ", 100)), noon); err != nil {
		t.Fatal(err)
	}
	second, err := Begin(dir, noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := Read(dir)
	if diff := cmp.Diff(second, got); diff != "" || !ok {
		t.Error(diff)
	}
}

func TestAFolderWithoutARecordHasNone(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"", "{", "null", "{}"} {
		if content != "" {
			if err := os.WriteFile(Path(dir), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if r, ok := Read(dir); ok {
			t.Errorf("%q: %+v", content, r)
		}
	}
}
