package spoke

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/embedded/imagestore"
	"hotspare.io/hotspare/internal/embedded/imagestore/pullsecret"
	"hotspare.io/hotspare/internal/embedded/imagestore/pullthrough"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/podnetwork"
	"hotspare.io/hotspare/internal/embedded/spoke/quiesce"
)

// Limits of the connections to the images. A pod can connect, too.
const (
	// imageHeaderTimeout is how long a node may take to send a request after it has connected, and imageIdleTimeout how long
	// it may keep a connection without a request.
	imageHeaderTimeout = 10 * time.Second
	imageIdleTimeout   = time.Minute
	// maxImageConnections is how many connections may exist: each takes memory of the control plane.
	maxImageConnections = 500
)

// serveImages serves the images of this computer, and those of other registries, at the gateway of the
// network of pods, as a registry that nodes ask before all others, until ctx ends. It rests while the gate is
// closed: a download that was frozen would block other clusters.
func serveImages(ctx context.Context, dir string, pods *podNetwork, gate *quiesce.Gate) error {
	listener, err := pods.Listen(machine.GatewayImagePort)
	if err != nil {
		return fmt.Errorf("serving images: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	shared := quiesce.ShareListener(netutil.LimitListener(listener, maxImageConnections))
	return gate.Run(ctx, func(ctx context.Context) error { return serveImagesUntilDone(ctx, dir, shared.NewTurn(), gate) })
}

// serveImagesUntilDone serves images at the listener, which it closes, until ctx ends.
func serveImagesUntilDone(ctx context.Context, dir string, listener net.Listener, gate *quiesce.Gate) error {
	store := filepath.Dir(filepath.Dir(dir))
	loaded := imagestore.Open(machine.ImagesPath(store))
	handler := loaded.Handler()
	cached, err := newPullThrough(ctx, dir, machine.ImageCachePath(store))
	if err != nil { // nodes pull from registries themselves
		klog.FromContext(ctx).Error(err, "will serve loaded images only")
	}
	if cached != nil {
		defer cached.Wait()
		token, err := machine.EnsureImageToken(dir)
		if err != nil {
			return err
		}
		handler = selectHandler(token, registryapi.Handler(loaded, cached), handler)
	}
	server := &http.Server{Handler: gatedHandler(gate, handler), ReadHeaderTimeout: imageHeaderTimeout, IdleTimeout: imageIdleTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // pulls are repeated
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serving images: %w", err)
	}
	return nil
}

// gatedHandler returns a handler that answers no requests while the gate is closed, and for whose requests the gate
// waits: they may hold locks.
func gatedHandler(gate *quiesce.Gate, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !gate.TryRun(func() { next.ServeHTTP(w, r) }) {
			http.Error(w, "the cluster is about to sleep", http.StatusServiceUnavailable)
		}
	})
}

// selectHandler returns a handler that serves nodes, which show the image token, by one handler, and pods by another
// one. Pods, including those in the network of a node, may not use the credentials of the cluster.
func selectHandler(token string, nodes, pods http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		shown := []byte(r.Header.Get(machine.ImageTokenHeader))
		if err != nil || !machine.IsNodeAddress(from.Addr().Unmap()) || subtle.ConstantTimeCompare(shown, []byte(token)) == 0 {
			pods.ServeHTTP(w, r)
			return
		}
		nodes.ServeHTTP(w, r)
	})
}

// newPullThrough returns the source of images of other registries for the cluster of the control plane
// in dir; nil if the cache is turned off.
func newPullThrough(ctx context.Context, dir, cache string) (*pullthrough.Source, error) {
	settings, err := pullthrough.ReadSettings(cache)
	if err != nil || settings.Limit <= 0 {
		return nil, err
	}
	secret, err := readPullSecret(machine.PullSecretPath(dir))
	if err != nil { // the other credentials are usable
		klog.FromContext(ctx).Error(err, "will pull without some credentials")
	}
	bundle, err := os.ReadFile(machine.TrustBundlePath(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the additional trust bundle: %w", err)
	}
	return pullthrough.New(ctx, pullthrough.Options{
		Dir: cache, Limit: settings.Limit, Secret: secret, Log: klog.FromContext(ctx).WithName("images"),
		Client: upstream.New(upstream.Options{
			IsAllowed: podnetwork.IsOutside, Insecure: settings.InsecureRegistries, Roots: cabundle.SystemPoolWith(bundle),
		}),
	})
}

// readPullSecret reads a pull secret. It returns the usable credentials also with an error.
func readPullSecret(path string) (pullsecret.Secret, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return pullsecret.Secret{}, nil
	}
	if err != nil {
		return pullsecret.Secret{}, fmt.Errorf("reading the pull secret: %w", err)
	}
	return pullsecret.Parse(raw)
}
