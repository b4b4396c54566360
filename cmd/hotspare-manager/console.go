package main

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"hotspare.io/hotspare/internal/console"
	"hotspare.io/hotspare/internal/version"
)

// addConsole adds the console to the manager, unless it is off. The console uses none of this
// program's permissions on the hub: users bring their own tokens.
func (f *flags) addConsole(log logr.Logger, cfg *rest.Config, mgr ctrl.Manager) error {
	if f.console == off {
		return nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	watcher, err := configureCertificate(settings, "console", f.consoleCertificates, f.consoleHosts)
	if err != nil {
		return err
	}
	if watcher != nil {
		if err := mgr.Add(watcher); err != nil {
			return err
		}
	}
	l, err := listenUnlessOff(log, "console", f.console)
	if err != nil {
		return err
	}
	return mgr.Add(&consoleServer{log: log.WithName("console"), cfg: cfg, settings: settings, hosts: f.consoleHosts, listener: l})
}

// consoleServer runs the console in a manager. Every replica runs it, because it reads from the hub
// and not from the controllers.
type consoleServer struct {
	log      logr.Logger
	cfg      *rest.Config
	settings *tls.Config
	hosts    []string
	listener net.Listener
}

// NeedLeaderElection returns false, so that replicas that do not lead serve the console too.
func (s *consoleServer) NeedLeaderElection() bool { return false }

// Start serves the console until ctx ends.
func (s *consoleServer) Start(ctx context.Context) error {
	server, err := console.New(ctx, console.Options{
		Hub:     console.NewHub(ctx, s.cfg, nil, version.Get(), clock.RealClock{}),
		Hosts:   s.hosts,
		Secure:  true,
		Version: version.Get(),
		Clock:   clock.RealClock{},
		Log:     s.log,
	})
	if err != nil {
		return err
	}
	return server.Serve(s.listener, s.settings)
}
