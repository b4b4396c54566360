package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

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
}

// startEtcd starts etcd on the data in dir, which it makes if there is none. Its
// sockets are in run if the path is not too long for that.
func startEtcd(ctx context.Context, dir, run string, log io.Writer) (*etcd, error) {
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
	e := &etcd{url: socketURL(sockets, "etcd.sock"), temp: temp}
	if e.server, err = open(dir, sockets, log); err == nil {
		err = e.await(ctx)
	}
	if err != nil {
		e.stop()
		return nil, fmt.Errorf("starting etcd on %s: %w", dir, err)
	}
	return e, nil
}

// open starts the server. etcd panics when it cannot read its log.
func open(dir, sockets string, log io.Writer) (server *embed.Etcd, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = corrupt(p)
		}
	}()
	config, err := etcdConfig(dir, sockets, log)
	if err != nil {
		return nil, err
	}
	return embed.StartEtcd(config)
}

func etcdConfig(dir, sockets string, log io.Writer) (*embed.Config, error) {
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
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(log))
	return c, nil
}

// etcdLogger writes warnings and worse to log. What etcd thinks fatal becomes a
// panic: it must not end the process behind our back.
func etcdLogger(log io.Writer) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(zapcore.AddSync(log)), zapcore.WarnLevel)
	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic))
}

func (e *etcd) await(ctx context.Context) error {
	select {
	case <-e.server.Server.ReadyNotify():
		return nil
	case err := <-e.server.Err():
		return err
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
		e.server.Close()
	}
	if e.temp != "" {
		_ = os.RemoveAll(e.temp) // two sockets in a temporary folder harm nobody
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
