package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxSocket is how long the path of a unix socket may be: 108 bytes on Linux, 104
// on macOS, with a final zero.
const maxSocket = 103

// etcd is the store of a control plane.
type etcd struct {
	server *embed.Etcd
	url    string // where the API server finds it
	temp   string // a folder to be removed, if the sockets needed one
	gaveUp *lastWords
}

// closeLimit bounds how long etcd may take to close its data, and closeLimitBroken how
// long when a part of it has ended: others may wait for that part for ever.
const (
	closeLimit       = 15 * time.Second
	closeLimitBroken = 2 * time.Second
)

// startEtcd starts etcd on the data in dir, which it makes if there is none. Its
// sockets are in run if the path is not too long for that. It calls giveUp when etcd
// cannot go on, then or later.
func startEtcd(ctx context.Context, dir, run string, log io.Writer, giveUp func(error)) (*etcd, error) {
	if err := checkRoom(dir); err != nil {
		return nil, err
	}
	if err := checkData(dir); err != nil {
		return nil, fmt.Errorf("opening the data in %s: %w", dir, err)
	}
	sockets, temp, err := socketFolder(run)
	if err != nil {
		return nil, err
	}
	e := &etcd{url: socketURL(sockets, "etcd.sock"), temp: temp, gaveUp: &lastWords{giveUp: giveUp, said: make(chan struct{})}}
	if e.server, err = open(ctx, dir, sockets, log, e.gaveUp); err == nil {
		err = e.await(ctx)
	}
	if err != nil {
		e.stop()
		return nil, fmt.Errorf("starting etcd on %s: %w", dir, err)
	}
	return e, nil
}

// open starts the server, in a goroutine of its own: what etcd cannot do ends that.
func open(ctx context.Context, dir, sockets string, log io.Writer, words *lastWords) (*embed.Etcd, error) {
	config, err := etcdConfig(dir, sockets, log, words)
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
				r.err = corrupt(p)
			}
			if r.server == nil && r.err == nil {
				r.err = atStart(words.err()) // Goexit
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

func etcdConfig(dir, sockets string, log io.Writer, words *lastWords) (*embed.Config, error) {
	client, err := url.Parse(socketURL(sockets, "etcd.sock"))
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(socketURL(sockets, "peer.sock"))
	if err != nil {
		return nil, err
	}
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls = []url.URL{*client}
	c.ListenPeerUrls = []url.URL{*peer}
	// The advertised URLs keep their defaults: they must be host:port, and nobody
	// dials them, since there are no peers.
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // not set by NewConfig: each request would be a warning
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(log, words))
	return c, nil
}

// etcdLogger writes warnings and worse to log. Where etcd logs that it cannot go on, and
// would then end the process or panic, words takes over.
func etcdLogger(log io.Writer, words *lastWords) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(zapcore.AddSync(log)), zapcore.WarnLevel)
	none := zapcore.AddSync(io.Discard) // for what cannot be logged, because the disk is full: not to the terminal
	return zap.New(core, zap.ErrorOutput(none), zap.WithFatalHook(words), zap.WithPanicHook(words))
}

// lastWords is called when etcd logs that it cannot go on: because its disk is full, for
// instance. It ends the goroutine, and gives the reason to giveUp.
type lastWords struct {
	giveUp func(error)

	mu     sync.Mutex
	reason error
	said   chan struct{} // closed when there is a reason
}

// OnWrite is called in the goroutine that cannot go on.
func (w *lastWords) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	w.note(reasonOf(entry.Message, fields))
	runtime.Goexit()
}

// reasonOf is what a log entry says.
func reasonOf(message string, fields []zapcore.Field) error {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			return fmt.Errorf("etcd gave up: %s: %w", message, withErrno(err))
		}
	}
	return fmt.Errorf("etcd gave up: %s", message)
}

// withErrno returns err with the error of the operating system that its text ends in: bbolt
// formats some of them as text.
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

// note keeps the first reason: the others follow from it.
func (w *lastWords) note(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reason != nil {
		return
	}
	w.reason = reason
	close(w.said)
	w.giveUp(reason)
}

func (w *lastWords) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reason == nil {
		return errGaveUp
	}
	return w.reason
}

// atStart says what to do about what etcd said at its start: if the operating system is
// not to blame, the data is.
func atStart(err error) error {
	var system syscall.Errno
	if errors.As(err, &system) {
		return err
	}
	return corrupt(err)
}

func (e *etcd) await(ctx context.Context) error {
	select {
	case <-e.server.Server.ReadyNotify():
		return nil
	case err := <-e.server.Err():
		return err
	case <-e.gaveUp.said:
		return atStart(e.gaveUp.err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failed yields an error when etcd has stopped by itself.
func (e *etcd) failed() <-chan error {
	return e.server.Err()
}

// stop closes the data. Nothing of it is lost if this does not happen.
func (e *etcd) stop() {
	if e.server != nil {
		e.close()
	}
	if e.temp != "" {
		_ = os.RemoveAll(e.temp) // two sockets in a temporary folder harm nobody
	}
}

// close waits for etcd to close, but not for ever: what has ended of it does not answer.
func (e *etcd) close() {
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
	case <-e.gaveUp.said:
	}
	broken := time.NewTimer(closeLimitBroken)
	defer broken.Stop()
	select {
	case <-closed:
	case <-broken.C:
	}
}

// socketFolder returns where to put sockets: run, or a new temporary folder if
// the path of run is too long. The latter is also returned as temp.
func socketFolder(run string) (dir, temp string, err error) {
	if run, err = filepath.Abs(run); err != nil { // a URL has no relative paths
		return "", "", fmt.Errorf("finding a place for sockets: %w", err)
	}
	if len(filepath.Join(run, "etcd.sock")) <= maxSocket {
		return run, "", nil
	}
	temp, err = os.MkdirTemp("", "hotspare-")
	if err != nil {
		return "", "", fmt.Errorf("making a folder for sockets: %w", err)
	}
	return temp, temp, nil
}

func socketURL(dir, name string) string {
	return "unix://" + filepath.Join(dir, name)
}
