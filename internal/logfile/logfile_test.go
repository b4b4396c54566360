package logfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func write(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func open(t *testing.T, path string, limit int64) *os.File {
	t.Helper()
	f, err := Open(path, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestALogThatIsOpenedIsAppendedToOrBecomesThePredecessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, open(t, path, 4), "1234")
	write(t, open(t, path, 4), "5")
	if got := read(t, path); got != "12345" {
		t.Errorf("a log of the limit has %q", got)
	}
	write(t, open(t, path, 4), "6")
	if got := read(t, path) + " " + read(t, path+".1"); got != "6 12345" {
		t.Errorf("after the limit: %q", got)
	}
}

// A process that prints without end must not fill the disk: its log and the predecessor stay within twice the limit.
func TestALogThatIsWrittenToIsLimited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, 100)
	for n := range 200 {
		write(t, f, fmt.Sprintf("line %d\n", n))
		if err := Limit(path, 100); err != nil {
			t.Fatal(err)
		}
		size := len(read(t, path))
		if raw, err := os.ReadFile(path + ".1"); err == nil && len(raw) > 100 {
			t.Fatalf("the predecessor has %d bytes", len(raw))
		}
		if size > 100 {
			t.Fatalf("after line %d, it has %d bytes", n, size)
		}
	}
	if got := read(t, path+".1") + read(t, path); !strings.HasSuffix(got, "line 198\nline 199\n") || strings.ContainsRune(got, 0) {
		t.Errorf("the end is %q", got)
	}
}

func TestALogWithoutPredecessorIsEmptied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, open(t, path, 1), "much")
	if err := os.Mkdir(path+".1", 0o700); err != nil { // it cannot be written, as on a full disk
		t.Fatal(err)
	}
	if err := Limit(path, 1); err == nil || read(t, path) != "" {
		t.Errorf("%v, and the log has %q", err, read(t, path))
	}
	if err := Limit(filepath.Join(t.TempDir(), "none"), 1); err != nil {
		t.Errorf("a log that does not exist: %v", err)
	}
}

func TestLogsAreLimitedEveryFewSeconds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, open(t, path, 1), "much")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		passes := 0
		go KeepLimited(ctx, clock.RealClock{}, 1, func() []string {
			passes++
			return []string{path}
		}, func(err error) { t.Error(err) })
		<-time.After(12 * time.Second)
		cancel()
		synctest.Wait()
		if passes != 2 {
			t.Errorf("%d passes", passes)
		}
	})
	if got := read(t, path+".1"); got != "h" || read(t, path) != "" {
		t.Errorf("the predecessor has %q", got)
	}
}
