package controlplane

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestSocketsAreInAFolderThatAURLCanName(t *testing.T) {
	long := "/data/" + strings.Repeat("x", maxSocket)
	for path, own := range map[string]bool{"/data/run": true, "/home/a-b.c/run_1": true, "/data/a,b": false, "/data/a b": false, "/data/50%": false, "/data/#1?": false, long: false} {
		dir, temp, err := socketFolder(path)
		if err != nil {
			t.Fatal(err)
		}
		if own && (dir != path || temp != "") || !own && (dir != temp || !plainPath.MatchString(dir)) {
			t.Errorf("%s: the folder is %q, and %q is to be removed", path, dir, temp)
		}
		if temp != "" {
			if err := os.RemoveAll(temp); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestTheReasonThatEtcdGivesKeepsTheErrorOfTheSystem(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"an error that is wrapped":       {&fs.PathError{Op: "write", Path: "db", Err: syscall.ENOSPC}, syscall.ENOSPC},
		"an error that is only text":     {errors.New("file resize error: truncate db: file too large"), syscall.EFBIG},
		"a full disk that is only text":  {errors.New("file resize error: truncate db: no space left on device"), syscall.ENOSPC},
		"an error that is not a limit's": {errors.New("database not open"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := logEntryReason("failed to commit tx", []zapcore.Field{zap.Error(c.err)})
			if text := "etcd failed: failed to commit tx: " + c.err.Error(); got.Error() != text {
				t.Errorf("got %q, want %q", got, text)
			}
			var errno syscall.Errno
			if errors.As(got, &errno) != (c.want != nil) || c.want != nil && !errors.Is(got, c.want) {
				t.Errorf("got %v", errno)
			}
		})
	}
}
