// Package up runs all of hotspare on one computer: the hub, the controllers and the local platform.
// It implements hotspare up.
//
//	DIR/kubeconfig      kubeconfig of the hub; mode 0600
//	DIR/manager.kubeconfig  kubeconfig for a separate hotspare-manager, with --hub-only; mode 0600
//	DIR/hotspare.log    the log of all components
//	DIR/flags.json      the flags that the next start uses, too
//	DIR/run.json        how the last run has ended: see package runrecord
//	DIR/lock            locked while hotspare runs on DIR; contains its pid
//	DIR/ready           exists while the hub is ready; contains its URL
//	DIR/metrics         contains the URL of the metrics, if they are served
//	DIR/console         contains the address of the console, and a key to it while it is served; mode 0600
//	DIR/containers.json whether local clusters run containers: see package containersrecord
//	DIR/hub/            the hub's data
//	DIR/machines/       the machines of local clusters, and their images
//	DIR/installs/       the files that the installer wrote for each cluster
//	DIR/recipes/        the recipes that hotspare ships, unless others were named
//	DIR/recipe-clusters/  the state and the logs of clusters that recipes created
//	DIR/pods/           logs of the pods that ran openshift-install, if there is one
package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/config"
	"hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/console/localauth"
	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/hub"
	"hotspare.io/hotspare/internal/listen"
	"hotspare.io/hotspare/internal/logfile"
	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/up/containersrecord"
	"hotspare.io/hotspare/internal/up/runrecord"
)

// Options configure hotspare up.
type Options struct {
	// Dir contains all data. It is created if it does not exist.
	Dir string
	// Port is the port of the hub; 0 means the port of the last run, or else any free port.
	Port int
	// MetricsAddress is where metrics are served; see metrics.CheckAddress.
	MetricsAddress string
	// ConsoleAddress is where the console is served; see door.CheckAddress.
	ConsoleAddress string
	// Machine is the command that runs a machine, to which machine run --dir DIR is added.
	Machine []string
	// Containers lets the workers of local clusters run the containers of pods, if this computer can.
	Containers bool
	// ImageCacheSize is the maximum number of bytes of the images of other registries that are kept for
	// local clusters; 0 keeps none, and less selects the default of DefaultImageCacheSize.
	ImageCacheSize int64
	// InsecureRegistries are registries, as host or host:port, from which local clusters may pull by plain
	// HTTP, and at loopback and link-local addresses.
	InsecureRegistries []string
	// AuthenticationConfig is the path of an AuthenticationConfiguration of Kubernetes, with the issuers
	// whose tokens the hub accepts. The hub uses a change of the file within a minute. Empty accepts no
	// tokens but its own.
	AuthenticationConfig string
	// Installer is the path of an openshift-install that installs clusters of other platforms, with
	// hotspare as the program of its pods. If it is empty, only local clusters can be created.
	Installer string
	// Recipes is a folder with recipes, for platform exec; empty means those that hotspare ships.
	Recipes string
	// GlobalPullSecret names a Secret of the hub with registries that all clusters get.
	GlobalPullSecret types.NamespacedName
	// CertificateAuthorities name Secrets of the hub with CA certificates that installers, and the
	// clients of platforms and clusters, trust in addition to those of the system.
	CertificateAuthorities []types.NamespacedName
	// Diagnostics is where bundles of diagnostics are stored; nil selects a folder in Dir.
	Diagnostics *manager.DiagnosticsPlace
	// HubOnly leaves out the controllers and the local platform: hotspare-manager must be run
	// separately.
	HubOnly bool
	// Flags are kept for the next start on Dir when everything has started with them.
	Flags Flags
	// Progress, if not nil, is called with a description of each step.
	Progress func(step string)

	// metricsListener is the listener on which Run serves metrics; nil serves none.
	metricsListener net.Listener
	// connections is the maximum number of open connections of each server.
	connections connections
	// consoleStand is where Run serves the console; nil serves none.
	consoleStand *localauth.Listener
	// containersObstacle returns why workers of local clusters cannot run containers, and what to do; "" if they can.
	containersObstacle func() string
}

// KubeconfigPath and the functions that follow return paths below dir, the data folder.
func KubeconfigPath(dir string) string        { return filepath.Join(dir, "kubeconfig") }
func ManagerKubeconfigPath(dir string) string { return filepath.Join(dir, "manager.kubeconfig") }
func LogPath(dir string) string               { return filepath.Join(dir, "hotspare.log") }
func DiagnosticsPath(dir string) string       { return filepath.Join(dir, "diagnostics") }
func LockPath(dir string) string              { return filepath.Join(dir, "lock") }
func readyPath(dir string) string             { return filepath.Join(dir, "ready") }
func metricsPath(dir string) string           { return filepath.Join(dir, "metrics") }

// startLimit bounds how long the hub may take to become ready.
const startLimit = 2 * time.Minute

// Run starts everything, calls ready with the hub's URL when the hub is ready, and runs until ctx
// ends or a part fails. When it returns, everything that it started has ended.
func Run(ctx context.Context, o Options, ready func(url string)) (err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	files, err := raiseFileLimit()
	if err != nil {
		return err
	}
	if o.connections, err = divideConnections(files); err != nil {
		return err
	}
	lock, err := acquireDataDir(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	run, err := runrecord.Begin(o.Dir, time.Now())
	if err != nil {
		return explainStorageLimit(o.Dir, err)
	}
	defer func() {
		err = explainStorageLimit(o.Dir, err)
		err = errors.Join(err, run.End(o.Dir, err, time.Now()))
	}()
	log, err := openLogFile(LogPath(o.Dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	defer keepLogLimited(ctx, LogPath(o.Dir))()

	if o.HubOnly {
		o.MetricsAddress = "0" // the metrics are those of the controllers
	}
	if o.metricsListener, err = metrics.Listen(metricsPath(o.Dir), o.MetricsAddress); err != nil {
		return err
	}
	if o.metricsListener != nil {
		o.metricsListener = listen.LimitConnections(o.metricsListener, o.connections.metrics)
		defer o.metricsListener.Close() //nolint:errcheck // the server has already closed it, if there was one
	}

	if o.consoleStand, err = localauth.Listen(o.Dir, o.ConsoleAddress); err != nil {
		return err
	}
	if o.consoleStand != nil {
		defer func() { err = errors.Join(err, o.consoleStand.Close()) }()
	}

	h, manifests, err := startHub(ctx, o, log)
	if err != nil {
		return explainStartError(o.Dir, err)
	}
	defer func() { err = errors.Join(err, h.Stop()) }()
	if err := h.WriteKubeconfig(KubeconfigPath(o.Dir)); err != nil {
		return err
	}
	return runOnHub(ctx, o, h, manifests, ready)
}

// acquireDataDir locks the data folder for this process.
func acquireDataDir(dir string) (*flock.Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data folder: %w", err)
	}
	lock, err := flock.Acquire(LockPath(dir))
	var held *flock.LockedError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("hotspare already runs on %s (pid %d): use it, stop it with 'hotspare down --data-dir %s', or choose another --data-dir", dir, held.PID, dir)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Remove(readyPath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, lock.Release())
	}
	if err := containersrecord.Remove(dir); err != nil { // a hub that was killed leaves it
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// startHub starts the hub. It also returns the manifests of which the hub needs to know the mutated kinds; they are not
// applied yet.
func startHub(ctx context.Context, o Options, log io.Writer) (*hub.Hub, []*unstructured.Unstructured, error) {
	o.Progress("starting the API server")
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	manifests, err := readManifests(config.Manifests)
	if err != nil {
		return nil, nil, err
	}
	has, err := local.MeasureResources(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	memory := has.Memory
	if memory == local.Unlimited {
		memory = 0
	}
	h, err := hub.Start(ctx, hub.Options{
		Dir: filepath.Join(o.Dir, "hub"), Port: o.Port, Connections: o.connections.api, AvailableMemory: memory,
		AuthenticationConfig: o.AuthenticationConfig, MutatedGroups: mutatedGroups(manifests), Log: log,
	})
	return h, manifests, err
}

// explainStartError adds a remedy to an error from starting the hub.
func explainStartError(dir string, err error) error {
	var taken *controlplane.PortTakenError
	if errors.As(err, &taken) {
		return fmt.Errorf("port %d is taken by another program: stop that program, or choose another with --port", taken.Port)
	}
	if isStorageLimit(err) {
		return fmt.Errorf("starting the API server: %w", addStorageRemedy(dir, err))
	}
	return fmt.Errorf("starting the API server: %w (more in %s)", err, LogPath(dir))
}

// explainStorageLimit adds a remedy to an error of a write to the data folder, if a limit is its cause, and
// the error has no remedy yet.
func explainStorageLimit(dir string, err error) error {
	if isStorageLimit(err) && !errors.As(err, new(*storageLimitError)) {
		return addStorageRemedy(dir, err)
	}
	return err
}

// isStorageLimit reports whether the API server cannot write because of a limit: a full disk, a
// quota, or the maximum file size of this process.
func isStorageLimit(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// addStorageRemedy adds to err which storage limit was reached, and the remedy.
func addStorageRemedy(dir string, err error) error {
	what := "the disk of " + dir + " is full: free disk space there"
	switch {
	case errors.Is(err, syscall.EDQUOT):
		what = "your quota on the disk of " + dir + " is exhausted: delete some of your files there, or raise the quota"
	case errors.Is(err, syscall.EFBIG):
		what = "a file in " + dir + " has reached the file size limit of this process: raise the limit (ulimit -f)"
	}
	return &storageLimitError{fmt.Errorf("%s, and run hotspare up again. All stored data is kept (%w)", what, err)}
}

// storageLimitError is the error of a storage limit, with its remedy.
type storageLimitError struct{ error }

func (e *storageLimitError) Unwrap() error { return e.error }

// runOnHub runs the controllers and the local platform on a hub that is ready.
func runOnHub(ctx context.Context, o Options, h *hub.Hub, manifests []*unstructured.Unstructured, ready func(url string)) error {
	o.Progress("preparing the hub")
	admin, err := prepareHub(ctx, h, manifests)
	if err != nil {
		return err
	}
	if o.HubOnly {
		return runHubOnly(ctx, o, h, admin, manifests, ready)
	}
	o.Progress("starting the local platform and the controllers")
	store, err := local.Open(filepath.Join(o.Dir, "machines"), o.Machine, local.WithHeldConnections(o.connections.held))
	if err != nil {
		return err
	}
	if err := o.configureImageCache(); err != nil {
		return err
	}
	o.containersObstacle = o.newContainersObstacle(ctx)
	started, recorded := make(chan struct{}), make(chan struct{})
	return runUntilOneEnds(ctx,
		store.Run,
		func(ctx context.Context) error { return stopStrayMachines(ctx, admin, store) },
		func(ctx context.Context) error { return runManager(ctx, o, h, store, func() { close(started) }) },
		func(ctx context.Context) error {
			return recordContainers(ctx, clock.RealClock{}, o.Dir, o.containersObstacle, sync.OnceFunc(func() { close(recorded) }))
		},
		func(ctx context.Context) error {
			if err := completeHub(ctx, admin, manifests); err != nil {
				return err
			}
			if !waitForAll(ctx, started, recorded) {
				return nil
			}
			if err := reportReady(o, h, ready); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		},
		func(ctx context.Context) error { return waitForHubExit(ctx, o.Dir, h) },
		func(ctx context.Context) error { return runInstallers(ctx, o, h) },
		func(ctx context.Context) error { return serveConsole(ctx, o, h) },
	)
}

// prepareHub applies hotspare's manifests to the hub. It returns an administrator's client.
func prepareHub(ctx context.Context, h *hub.Hub, manifests []*unstructured.Unstructured) (client.Client, error) {
	scheme := manager.Scheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding kinds to a scheme: %w", err)
	}
	admin, err := client.New(h.AdminConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return admin, applyManifests(ctx, admin, manifests)
}

// completeHub returns when the API server applies the policies among manifests, and the default
// ClusterImageSet exists.
func completeHub(ctx context.Context, admin client.Client, manifests []*unstructured.Unstructured) error {
	if err := waitForMutations(ctx, admin, manifests); err != nil {
		return err
	}
	return createDefaultImageSet(ctx, admin)
}

// reportReady keeps the flags, with which everything has started, writes the ready file and calls ready.
func reportReady(o Options, h *hub.Hub, ready func(url string)) error {
	if err := o.Flags.keep(o.Dir); err != nil {
		return err
	}
	if err := os.WriteFile(readyPath(o.Dir), []byte(h.URL()+"\n"), 0o600); err != nil {
		klog.ErrorS(err, "writing the ready file")
	}
	ready(h.URL())
	return nil
}

// waitForHubExit returns an error when the hub stops on its own, and nil when ctx ends first.
func waitForHubExit(ctx context.Context, dir string, h *hub.Hub) error {
	select {
	case <-ctx.Done():
		return nil
	case <-h.Done():
		return hubStoppedError(dir, h.Err())
	}
}

// hubStoppedError returns an error with the reason why the API server of the hub in dir stopped on
// its own.
func hubStoppedError(dir string, err error) error {
	return fmt.Errorf("the API server has stopped: %w", explainStorageLimit(dir, err))
}

// waitForAll waits until all channels are closed. It returns false if ctx ends before.
func waitForAll(ctx context.Context, all ...<-chan struct{}) bool {
	for _, closed := range all {
		select {
		case <-closed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// runUntilOneEnds runs parts until the first of them ends, then ends the others and waits for them.
func runUntilOneEnds(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, run := range parts {
		go func() { ended <- run(ctx) }()
	}
	var errs []error
	for range parts {
		errs = append(errs, <-ended)
		cancel()
	}
	return errors.Join(errs...)
}

// DefaultImageSet is the ClusterImageSet that every hub of hotspare up has: local clusters of plain
// Kubernetes.
const DefaultImageSet = "kubernetes"

// createDefaultImageSet creates the ClusterImageSet, and leaves one that exists as it is. It applies the object: for two
// seconds, the API server delays other creations of a new kind.
func createDefaultImageSet(ctx context.Context, c client.Client) error {
	switch err := c.Get(ctx, client.ObjectKey{Name: DefaultImageSet}, &hivev1.ClusterImageSet{}); {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading ClusterImageSet %s: %w", DefaultImageSet, err)
	}
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"releaseImage": "hotspare.io/local/kubernetes"}}}
	set.SetGroupVersionKind(hivev1.GroupVersion.WithKind("ClusterImageSet"))
	set.SetName(DefaultImageSet)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(set), fieldOwner); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("creating ClusterImageSet %s: %w", DefaultImageSet, err)
	}
	return nil
}

// maxLogSize is the maximum size in bytes of the log and of its predecessor.
const maxLogSize = 32 << 20

// openLogFile opens the log, and redirects the log output of libraries to it.
func openLogFile(path string) (*os.File, error) {
	f, err := logfile.Open(path, maxLogSize)
	if err != nil {
		return nil, err
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(f, nil)))
	return f, nil
}

// keepLogLimited limits the size of the log until stop is called.
func keepLogLimited(ctx context.Context, path string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var limits sync.WaitGroup
	limits.Go(func() {
		logfile.KeepLimited(ctx, clock.RealClock{}, maxLogSize, func() []string { return []string{path} }, func(err error) {
			ctrl.Log.Error(err, "limiting the log")
		})
	})
	return func() {
		cancel()
		limits.Wait()
	}
}
