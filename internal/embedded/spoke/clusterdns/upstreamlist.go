package clusterdns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// resolvConfInterval is the shortest time between two looks at the file of resolvers.
const resolvConfInterval = time.Second

// upstreamList are the upstreams of the options, and those of a file such as /etc/resolv.conf, which changes when the
// computer joins another network.
type upstreamList struct {
	fixed []netip.AddrPort
	// own are addresses of the server, which are not used.
	own []netip.AddrPort
	// path is the path of the file; "" if there is none.
	path string
	now  func() time.Time

	mu      sync.Mutex
	checked time.Time
	read    os.FileInfo // of the file that was read last
	failure string      // of the last attempt to read it
	current []netip.AddrPort
}

func newUpstreamList(ctx context.Context, o Options, fixed, own []netip.AddrPort) *upstreamList {
	l := &upstreamList{own: own, path: o.ResolvConf, now: o.Now}
	l.fixed = l.withoutOwn(ctx, fixed)
	l.current = l.fixed
	return l
}

// get returns the upstreams. It reads the file again if that has changed. While the file cannot be read or names no
// resolver, those that it named before stay.
func (l *upstreamList) get(ctx context.Context) []netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	if age := l.now().Sub(l.checked); l.path == "" || age >= 0 && age < resolvConfInterval {
		return l.current
	}
	l.checked = l.now()
	failure := ""
	if err := l.readIfChanged(ctx); err != nil {
		failure = err.Error()
	}
	if failure != "" && failure != l.failure {
		klog.FromContext(ctx).Info("the DNS server of the cluster keeps its resolvers", "reason", failure, "resolvers", l.current)
	}
	l.failure = failure
	return l.current
}

func (l *upstreamList) readIfChanged(ctx context.Context) error {
	info, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	if l.read != nil && os.SameFile(info, l.read) && info.ModTime().Equal(l.read.ModTime()) && info.Size() == l.read.Size() {
		return nil
	}
	found, err := readResolvConf(l.path)
	if found = l.withoutOwn(ctx, found); len(found) == 0 {
		return errors.Join(err, fmt.Errorf("%s names no resolver", l.path))
	}
	if err != nil {
		klog.FromContext(ctx).Info("ignored a part of the file of resolvers", "reason", err.Error())
	}
	l.read, l.current = info, slices.Concat(l.fixed, found)
	return nil
}

// readResolvConf returns the resolvers that the file names, also with an error.
func readResolvConf(path string) ([]netip.AddrPort, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	texts, err := ParseResolvConf(f)
	found, parseErr := parseUpstreams(texts)
	return found, errors.Join(err, parseErr)
}

// withoutOwn returns the upstreams that are not the server itself.
func (l *upstreamList) withoutOwn(ctx context.Context, upstreams []netip.AddrPort) []netip.AddrPort {
	others, removed := removeOwn(upstreams, l.own)
	if len(removed) > 0 {
		klog.FromContext(ctx).Info("ignored upstreams that are the DNS server itself", "upstreams", removed)
	}
	return others
}
