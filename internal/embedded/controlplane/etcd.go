package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxSocket is the maximum length of the path of a unix socket: 108 bytes on Linux, 104 on macOS,
// including a terminating zero.
const maxSocket = 103

// etcd is the store of a control plane.
type etcd struct {
	server    *embed.Etcd
	url       string // the URL for the API server
	tempDir   string // a folder to remove, if the sockets needed one
	fatalHook *etcdFatalHook
}

// closeLimit is how long etcd may take to close its data. closeLimitBroken applies when a part of
// etcd has ended: other parts may wait for that part forever.
const (
	closeLimit       = 15 * time.Second
	closeLimitBroken = 2 * time.Second
)

// startEtcd starts etcd on the data in dir, and creates dir if it does not exist. The sockets are
// in run, unless their path would be too long. startEtcd calls giveUp when etcd cannot continue,
// during the start or later.
func startEtcd(ctx context.Context, dir, run string, log io.Writer, giveUp func(error)) (*etcd, error) {
	if err := checkDiskSpace(dir); err != nil {
		return nil, err
	}
	if err := prepareEtcdData(dir); err != nil {
		return nil, fmt.Errorf("opening the data in %s: %w", dir, err)
	}
	sockets, temp, err := socketFolder(run)
	if err != nil {
		return nil, err
	}
	e := &etcd{url: unixSocketURL(sockets, "etcd.sock"), tempDir: temp, fatalHook: &etcdFatalHook{giveUp: giveUp, fired: make(chan struct{})}}
	if e.server, err = startEtcdServer(ctx, dir, sockets, log, e.fatalHook); err == nil {
		err = e.waitUntilReady(ctx)
	}
	if err != nil {
		e.stopAndClean()
		return nil, fmt.Errorf("starting etcd on %s: %w", dir, err)
	}
	return e, nil
}

// startEtcdServer starts the server in its own goroutine, because a fatal error of etcd ends the
// goroutine.
func startEtcdServer(ctx context.Context, dir, sockets string, log io.Writer, words *etcdFatalHook) (*embed.Etcd, error) {
	config, err := newEtcdConfig(dir, sockets, log, words)
	if err != nil {
		return nil, err
	}
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = corruptDataError(p)
			}
			if r.server == nil && r.err == nil {
				r.err = classifyStartError(words.fatalError()) // Goexit
			}
			started <- r
		}()
		r.server, r.err = embed.StartEtcd(config)
	}()
	select {
	case r := <-started:
		return r.server, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Settings of a store with one member.
const (
	// catchUpEntries is how many of the last changes raft keeps in memory; 0 would be the default, 5000.
	catchUpEntries   = 100
	tickMilliseconds = 50
	electionTicks    = 5 // the lowest number that etcd accepts
)

func newEtcdConfig(dir, sockets string, log io.Writer, words *etcdFatalHook) (*embed.Config, error) {
	client, err := url.Parse(unixSocketURL(sockets, "etcd.sock"))
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(unixSocketURL(sockets, "peer.sock"))
	if err != nil {
		return nil, err
	}
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls = []url.URL{*client}
	c.ListenPeerUrls = []url.URL{*peer}
	// The advertised URLs keep their defaults: they must be host:port, and they are not used, since
	// there are no peers.
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// No follower can be slow, so few entries stay in memory. Each has an object.
	c.SnapshotCatchUpEntries = catchUpEntries
	// A start waits for the election of its only member: up to the election timeout. A request may take 5 s and twice that.
	c.TickMs, c.ElectionMs = tickMilliseconds, electionTicks*tickMilliseconds
	c.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // not set by NewConfig: every request would log a warning
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newEtcdLogger(log, words))
	return c, nil
}

// newEtcdLogger returns a logger that writes warnings and errors to log. When etcd logs that it
// cannot continue, and would then end the process or panic, words handles that instead.
func newEtcdLogger(log io.Writer, words *etcdFatalHook) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(zapcore.AddSync(log)), zapcore.WarnLevel)
	none := zapcore.AddSync(io.Discard) // discards what cannot be logged because the disk is full, instead of printing it to the terminal
	return zap.New(core, zap.ErrorOutput(none), zap.WithFatalHook(words), zap.WithPanicHook(words))
}

// etcdFatalHook is called when etcd logs that it cannot continue, for example because its disk is
// full. It ends the goroutine and passes the reason to giveUp.
type etcdFatalHook struct {
	giveUp func(error)

	mu     sync.Mutex
	reason error
	fired  chan struct{} // closed when there is a reason
}

// OnWrite is called in the goroutine that cannot continue. It ends that goroutine.
func (h *etcdFatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	h.recordReason(logEntryReason(entry.Message, fields))
	runtime.Goexit()
}

// logEntryReason returns a log entry as an error.
func logEntryReason(message string, fields []zapcore.Field) error {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			return fmt.Errorf("etcd failed: %s: %w", message, withErrno(err))
		}
	}
	return fmt.Errorf("etcd failed: %s", message)
}

// withErrno returns err wrapping the operating system error that its text ends with: bbolt formats
// some of these errors as text.
func withErrno(err error) error {
	var wrapped syscall.Errno
	if errors.As(err, &wrapped) {
		return err
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, syscall.EIO} {
		if before, found := strings.CutSuffix(err.Error(), errno.Error()); found {
			return fmt.Errorf("%s%w", before, errno)
		}
	}
	return err
}

// recordReason records the first reason: later ones are consequences of it.
func (h *etcdFatalHook) recordReason(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != nil {
		return
	}
	h.reason = reason
	close(h.fired)
	h.giveUp(reason)
}

func (h *etcdFatalHook) fatalError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == nil {
		return errComponentFatal
	}
	return h.reason
}

// classifyStartError returns the error to report for err, an error from the start of etcd: if it is
// not an operating system error, the data is corrupt.
func classifyStartError(err error) error {
	var system syscall.Errno
	if errors.As(err, &system) {
		return err
	}
	return corruptDataError(err)
}

func (e *etcd) waitUntilReady(ctx context.Context) error {
	select {
	case <-e.server.Server.ReadyNotify():
		return nil
	case err := <-e.server.Err():
		return err
	case <-e.fatalHook.fired:
		return classifyStartError(e.fatalHook.fatalError())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failureChannel returns a channel that receives an error when etcd has stopped on its own.
func (e *etcd) failureChannel() <-chan error {
	return e.server.Err()
}

// stopAndClean closes the data. If it is not called, no data is lost.
func (e *etcd) stopAndClean() {
	if e.server != nil {
		e.closeWithTimeout()
	}
	if e.tempDir != "" {
		_ = os.RemoveAll(e.tempDir) // two leftover sockets in a temporary folder are harmless
	}
}

// closeWithTimeout closes etcd and waits for a limited time: parts of etcd that have ended do not
// respond.
func (e *etcd) closeWithTimeout() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		e.server.Close()
	}()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-closed:
		return
	case <-limit.C:
		return
	case <-e.fatalHook.fired:
	}
	broken := time.NewTimer(closeLimitBroken)
	defer broken.Stop()
	select {
	case <-closed:
	case <-broken.C:
	}
}

// plainPath matches a path that means the same in a URL, and is one element of a list with commas: the API server
// reads the address of etcd as such a list of URLs.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._~+=@:-]*$`)

// socketFolder returns the folder for sockets: run, or another name for it if the path of run is too long or not
// plain. If run cannot have another name, as on a system without /proc, it is a new temporary folder, which is also
// returned as temp: it stays if the process is killed.
func socketFolder(run string) (dir, temp string, err error) {
	if run, err = filepath.Abs(run); err != nil { // a URL cannot contain a relative path
		return "", "", fmt.Errorf("finding a folder for sockets: %w", err)
	}
	if len(filepath.Join(run, "etcd.sock")) <= maxSocket && plainPath.MatchString(run) {
		return run, "", nil
	}
	if dir, ok := openedFolder(run); ok {
		return dir, "", nil
	}
	temp, err = os.MkdirTemp("", "hotspare-")
	if err != nil {
		return "", "", fmt.Errorf("creating a folder for sockets: %w", err)
	}
	return temp, temp, nil
}

// openedFolder returns a short name for a folder, which only this process can use. ok is false if the folder cannot be
// opened, and on a system without /proc. The folder stays open until the process ends: a client that is late must not
// reach the store of another control plane through a descriptor that was used again.
func openedFolder(path string) (name string, ok bool) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	name = fmt.Sprintf("/proc/self/fd/%d", fd)
	if _, err := os.Stat(name); err != nil {
		_ = syscall.Close(fd)
		return "", false
	}
	return name, true
}

func unixSocketURL(dir, name string) string {
	return "unix://" + filepath.Join(dir, name)
}
