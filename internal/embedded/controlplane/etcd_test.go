package controlplane

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestSocketsAreInAFolderThatAURLCanName(t *testing.T) {
	long := strings.Repeat("x", maxSocket)
	for name, own := range map[string]bool{"run": true, "a-b.c/run_1": true, "a,b": false, "a b": false, "50%": false, "#1?": false, long: false} {
		path := filepath.Join(t.TempDir(), name)
		if own {
			path = filepath.Join("/data", name)
		} else if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		dir, temp, err := socketFolder(path)
		if err != nil {
			t.Fatal(err)
		}
		if temp != "" && runtime.GOOS != "linux" {
			defer os.RemoveAll(temp)
		} else if temp != "" {
			t.Errorf("%s: %s stays if the process is killed", path, temp)
		}
		if own && dir != path || !plainPath.MatchString(dir) || len(dir) > maxSocket-len("/etcd.sock") {
			t.Errorf("%s: the folder is %q", path, dir)
		}
	}
}

// TestSocketsStayInTheFolderOfTheControlPlane listens with a path that is too long for a socket.
func TestSocketsStayInTheFolderOfTheControlPlane(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	run := filepath.Join(t.TempDir(), strings.Repeat("x", maxSocket))
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, _, err := socketFolder(run)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "etcd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connection, err := new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(dir, "etcd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
	if _, err := os.Stat(filepath.Join(run, "etcd.sock")); err != nil {
		t.Error(err)
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
