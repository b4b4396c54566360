// Package hostfacts reads the facts about this machine that package doctor explains. It changes
// nothing on the machine.
package hostfacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/doctor"
)

// versionTimeout is how long a program may take to print its version.
const versionTimeout = 5 * time.Second

// Read returns the facts about this machine, and about a data folder, which may not exist. A fact
// that cannot be read is unknown, with the reason. Read runs the programs that it finds, to learn
// their versions and whether packet filters work in namespaces of their own, and returns after 11 seconds
// at most, or soon after ctx ends.
func Read(ctx context.Context, dataFolder string) doctor.Facts {
	h := host{root: "/", searchPath: os.Getenv("PATH"), timeout: versionTimeout, isolate: isolate, createVeth: createVeth}
	return h.readFacts(ctx, dataFolder)
}

// host is a machine whose files are below a folder. Tests use a folder of their own.
type host struct {
	root string
	// searchPath is a list of folders below root, in the form of $PATH.
	searchPath string
	timeout    time.Duration
	// isolate makes a program start in a network namespace of its own, as root of it.
	isolate func(*syscall.SysProcAttr)
	// createVeth creates a pair of veth interfaces in a network namespace that ends afterwards. It needs root.
	createVeth func() error
}

func (h host) readFacts(ctx context.Context, dataFolder string) doctor.Facts {
	f := doctor.Facts{
		OS:            runtime.GOOS,
		UserID:        os.Geteuid(),
		UserName:      readUserName(),
		DataFolder:    readDataFolder(dataFolder),
		OpenFiles:     readOpenFileLimit(),
		LoopbackError: formatError(checkLoopback(ctx)),
	}
	h.addSystemFacts(ctx, &f)
	return f
}

// readUserName returns the name of the current user; "" if the user has none.
func readUserName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// formatError returns the text of an error; "" for nil.
func formatError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func newQuantity(n int64, err error) doctor.Quantity {
	return doctor.Quantity{Value: n, Err: formatError(err)}
}

// loopbackTimeout is how long a connection on this machine may take.
const loopbackTimeout = time.Second

// checkLoopback listens on a free port for a moment, and connects to it: programs can listen while the
// interface is down. The error contains no port.
func checkLoopback(ctx context.Context) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return findCause(err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent
	dialer := net.Dialer{Timeout: loopbackTimeout}
	c, err := dialer.DialContext(ctx, "tcp4", l.Addr().String())
	if err != nil {
		return findCause(err)
	}
	return c.Close()
}

// findCause returns an error of the network without its addresses.
func findCause(err error) error {
	var failed *net.OpError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// readOpenFileLimit returns the hard limit: hotspare up raises its soft limit to it.
func readOpenFileLimit() doctor.Quantity {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return newQuantity(0, err)
	}
	return doctor.Quantity{Value: int64(min(limit.Max, math.MaxInt64))}
}

func readDataFolder(dir string) doctor.DataFolder {
	d := doctor.DataFolder{Path: dir}
	existing, err := findExisting(dir)
	if err != nil {
		d.Err = err.Error()
		return d
	}
	d.Exists = existing == filepath.Clean(dir)
	if err := unix.Access(existing, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		d.Err = fmt.Sprintf("%s: %v", existing, err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(existing, &disk); err != nil {
		d.Free.Err = err.Error()
		return d
	}
	d.Free.Value = int64(min(uint64(disk.Bavail)*uint64(disk.Bsize), math.MaxInt64)) //nolint:unconvert // the types differ on darwin
	d.FileSystem = nameFileSystem(&disk)
	return d
}

// findExisting returns the folder, or else the closest folder above it that exists.
func findExisting(dir string) (string, error) {
	dir = filepath.Clean(dir)
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a folder", dir)
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s is a link to a folder that does not exist", dir)
		}
		dir = filepath.Dir(dir)
	}
}
