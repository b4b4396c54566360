package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/dataplane"
	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/manager/crdcheck"
	"hotspare.io/hotspare/internal/manager/healthz"
	"hotspare.io/hotspare/internal/platform"
	"hotspare.io/hotspare/internal/version"
)

// discoveryTimeout is the maximum time for a discovery request to the hub.
const discoveryTimeout = 10 * time.Second

// runManager serves probes, and runs the controllers once the hub serves their kinds. It returns
// nil when ctx has ended and everything has stopped.
func (f *flags) runManager(ctx context.Context, out io.Writer) error {
	log := f.newLogger(out)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	log.Info("started", "version", version.Get())

	cfg, err := f.loadHubConfig()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var p healthz.Probe
	probes := make(chan error, 1)
	l, err := listenUnlessOff(log, "probes", f.health)
	if err != nil {
		return err
	}
	go func() {
		probes <- serveProbes(ctx, &p, l)
		stop() // without probes, the health of this process is unknown
	}()
	err = f.runControllers(ctx, log, cfg, &p)
	stop()
	return errors.Join(err, <-probes)
}

// serveProbes serves probes until ctx ends; without a listener it only waits.
func serveProbes(ctx context.Context, p *healthz.Probe, l net.Listener) error {
	if l == nil {
		<-ctx.Done()
		return nil
	}
	return p.Serve(ctx, l)
}

// runControllers runs the controllers until ctx ends, or the Lease is lost.
func (f *flags) runControllers(ctx context.Context, log logr.Logger, cfg *rest.Config, p *healthz.Probe) error {
	if ready, err := waitForKinds(ctx, log, cfg, p); !ready || err != nil {
		return err
	}
	p.SetUnready("reading what there is on the hub")
	mgr, err := f.buildManager(ctx, log, cfg)
	if err != nil {
		return err
	}
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			p.SetReady()
		}
		<-ctx.Done()
		p.SetUnready("stopping")
	}()
	go func() {
		select {
		case <-mgr.Elected():
			log.Info("leads")
		case <-ctx.Done():
		}
	}()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	log.Info("stopped")
	return nil
}

// waitForKinds waits until the hub serves the kinds that the controllers use. It returns false if
// ctx ends before.
func waitForKinds(ctx context.Context, log logr.Logger, cfg *rest.Config, p *healthz.Probe) (bool, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = discoveryTimeout
	hub, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return false, fmt.Errorf("creating a client for the hub: %w", err)
	}
	p.SetUnready("asking the hub for its kinds")
	return crdcheck.WaitUntilServed(ctx, hub, func(why string) {
		log.Info("waiting for the hub", "why", why)
		p.SetUnready(why)
	}), nil
}

// buildManager creates the manager.
func (f *flags) buildManager(ctx context.Context, log logr.Logger, cfg *rest.Config) (ctrl.Manager, error) {
	jobs, err := f.jobOptions(ctx, log, cfg)
	if err != nil {
		return nil, err
	}
	authorities, err := manager.ParseSecretNames(f.authorities)
	if err != nil {
		return nil, err
	}
	platforms := platform.Options{Only: f.platforms, Jobs: jobs, CertificateAuthorities: authorities}
	set, err := platform.New(cfg, platforms)
	if err != nil {
		return nil, err
	}
	news := newClusterNews(ctx)
	recipes, err := set.AddRecipes(ctx, cfg, platforms, news.report)
	if err != nil {
		return nil, err
	}
	one := manager.Replica{}
	if f.elect {
		one.LeaseNamespace = f.namespace
	}
	watcher, err := f.configureMetrics(log, cfg, &one)
	if err != nil {
		return nil, err
	}
	hub, err := f.hubForAgents(cfg)
	if err != nil {
		return nil, err
	}
	pullSecret, err := manager.ParseSecretName(f.pullSecret)
	if err != nil {
		return nil, err
	}
	deps := manager.Platforms{
		Executors: set.Executors, Actuators: set.Actuators, Namespace: f.ownNamespace(), GlobalPullSecret: pullSecret, Hub: hub,
		CertificateAuthorities: set.CertificateAuthorities, News: news.events,
	}
	if deps.Diagnostics, err = f.openDiagnostics(ctx); err != nil {
		return nil, err
	}
	if recipes != nil {
		deps.Recipes, deps.Room = recipes.Catalog, map[string]clusterpool.Room{"exec": recipes.Executor.CountFits}
	}
	mgr, err := manager.NewReplica(ctx, cfg, deps, one)
	if err != nil {
		return nil, err
	}
	if watcher != nil {
		if err := mgr.Add(watcher); err != nil {
			return nil, err
		}
	}
	if err := f.addConsole(log, cfg, mgr); err != nil {
		return nil, err
	}
	return mgr, mgr.Add(crmanager.RunnableFunc(set.Tend))
}

// openDiagnostics returns where bundles are stored; nil if nowhere.
func (f *flags) openDiagnostics(ctx context.Context) (*manager.Diagnostics, error) {
	if f.diagnostics == "" {
		return nil, nil
	}
	place, err := manager.ParseDiagnosticsPlace(f.diagnostics)
	if err != nil {
		return nil, fmt.Errorf("--diagnostics: %w", err)
	}
	store, err := place.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("--diagnostics: %w", err)
	}
	return &manager.Diagnostics{Store: store}, nil
}

// hubForAgents returns the address of the hub for agents on data planes, and their image.
func (f *flags) hubForAgents(cfg *rest.Config) (dataplane.Hub, error) {
	hub := dataplane.Hub{Server: cmp.Or(f.server, cfg.Host), CA: cfg.CAData, Image: f.agent}
	path := f.authority
	if path == "" && len(hub.CA) == 0 {
		path = cfg.CAFile
	}
	if path == "" {
		return hub, nil
	}
	var err error
	if hub.CA, err = os.ReadFile(path); err != nil {
		return hub, fmt.Errorf("reading the certificate for agents (see --hub-ca): %w", err)
	}
	return hub, nil
}

// loadHubConfig returns the client configuration for the hub.
func (f *flags) loadHubConfig() (*rest.Config, error) {
	path := f.kubeconfig
	if path == "" {
		path = os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	}
	var cfg *rest.Config
	var err error
	if path == "" {
		cfg, err = rest.InClusterConfig()
	} else {
		cfg, err = clientcmd.BuildConfigFromFlags("", path)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the hub (see --kubeconfig): %w", err)
	}
	cfg.Wrap(retryUnavailable)
	cfg.UserAgent = "hotspare-manager/" + version.Get()
	return cfg, nil
}

// listenUnlessOff listens on an address and logs it. It returns nil if the address is off.
func listenUnlessOff(log logr.Logger, what, address string) (net.Listener, error) {
	if address == off {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", what, err)
	}
	log.Info("serving", "what", what, "address", l.Addr().String())
	return l, nil
}

func (f *flags) newLogger(out io.Writer) logr.Logger {
	o := &slog.HandlerOptions{Level: slog.Level(-f.verbosity)}
	if f.format == "json" {
		return logr.FromSlogHandler(slog.NewJSONHandler(out, o))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(out, o))
}
