// Package console is hotspare in a browser: pages that show pools, claims and fleets as
// they change, and let people act on them. Whoever looks is asked who they are, and
// everything is read and written with their own rights at the hub.
package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/console/door"
	"hotspare.io/hotspare/internal/console/see"
	"hotspare.io/hotspare/internal/console/session"
)

// A Viewer is somebody at the hub, with their own rights. *see.Person is one.
type Viewer interface {
	// Client asks the hub itself.
	client.Client
	Name() string
	May(ctx context.Context, d see.Deed) (bool, error)
	// Sight is what there is in a namespace, or in all; for kinds that may be listed there.
	Sight(namespace string) (client.Reader, error)
	// Changed is closed when something looked at has changed since the call.
	Changed() <-chan struct{}
	// Lost reports whether the hub does not know the viewer any more.
	Lost() bool
	// Rest lets go of memory, Close of everything.
	Rest()
	Close()
}

// A Hub tells who somebody is. The error is see.ErrUnknown for who it does not know.
type Hub interface {
	Bearer(ctx context.Context, token string) (Viewer, error)
	Admin(ctx context.Context) (Viewer, error)
}

// Options are what a console works with.
type Options struct {
	Hub Hub
	// Key lets in who runs the hub, by codes made with it (see package door); nil: nobody
	// comes in that way.
	Key door.Key
	// Hosts are names by which browsers reach it, beside those of this computer.
	Hosts []string
	// Secure is set when browsers reach it by https.
	Secure bool
	// Port is the one listened on: consoles of one computer share its cookies.
	Port    string
	Version string
	Clock   clock.WithTicker
	Log     logr.Logger
}

// A Server is a console. Its methods may be called by several goroutines.
type Server struct {
	Options
	sessions session.Store[Viewer]
	codes    *door.Keeper
	failures failures
	lives    lives
	renders  *renders
	ui       *ui
	pages    *http.ServeMux
	life     context.Context //nolint:containedctx // live pages end with it, whoever looks
	// reading is how long a client may take to say what it wants.
	reading time.Duration
}

// New returns a console that works until life ends.
func New(life context.Context, o Options) (*Server, error) {
	s := &Server{Options: o, life: life, reading: patience, renders: newRenders(o.Clock)}
	if o.Key != nil {
		s.codes = door.NewKeeper(o.Key)
	}
	s.sessions.End = func(one *session.Session[Viewer]) { one.Who.Close() }
	var err error
	if s.ui, err = newUI(); err != nil {
		return nil, err
	}
	s.pages = routes()
	return s, nil
}

// Times that a client may take, and a request.
const (
	patience = 10 * time.Second
	answer   = time.Minute
	quiet    = 2 * time.Minute
)

// mostBody bounds what a form may hold: a token is its longest field.
const (
	mostBody   = 64 << 10
	mostHeader = 64 << 10
)

// Serve serves the console on l until its life ends; settings is nil for plain http.
// It closes l.
func (s *Server) Serve(l net.Listener, settings *tls.Config) error {
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.reading,
		ReadTimeout:       s.reading,
		WriteTimeout:      answer,
		IdleTimeout:       quiet,
		MaxHeaderBytes:    mostHeader,
		TLSConfig:         settings,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(s.Log), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return s.life },
	}
	ended := make(chan error, 1)
	go func() {
		if settings != nil {
			ended <- srv.ServeTLS(l, "", "")
		} else {
			ended <- srv.Serve(l)
		}
	}()
	go s.keep()
	defer s.sessions.CloseAll()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the console: %w", err)
	case <-s.life.Done():
	}
	// Requests see their context end, so what is left is done soon.
	err := srv.Close()
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// How often sessions are looked after, and how long one is unused until its memory is
// let go of.
const (
	round  = 10 * time.Second
	unused = time.Minute
)

// keep ends sessions that are over, and lets go of the memory of those that nobody uses.
func (s *Server) keep() {
	tick := s.Clock.NewTicker(round)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C():
			s.sessions.Sweep(s.Clock.Now(), unused, func(one *session.Session[Viewer]) { one.Who.Rest() })
			s.failures.forget(s.Clock.Now())
		}
	}
}

// Handler is all of the console.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /static/", s.ui.static())
	mux.HandleFunc("GET /signin", s.askIn)
	mux.HandleFunc("POST /signin", s.comeIn)
	mux.HandleFunc("GET "+door.Path, s.enter)
	mux.HandleFunc("POST /signout", s.within(s.signOut))
	mux.HandleFunc("POST /look", s.chooseLook)
	mux.HandleFunc("GET /live", s.live)
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, r *http.Request) {
		s.session(r) // which is used now
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /", s.within(s.show))
	for path, do := range deeds {
		mux.HandleFunc("POST "+path, s.within(s.doing(do)))
	}
	return s.guard(mux)
}

// hubOf is a hub whose people live as long as the console.
type hubOf struct {
	*see.Hub
	life context.Context //nolint:containedctx // see Server
}

// OnHub is the hub that cfg reaches, for viewers with their own credentials until life
// ends. admin is how the person who runs it reaches it, or nil.
func OnHub(life context.Context, cfg, admin *rest.Config, version string, c clock.PassiveClock) Hub {
	return hubOf{see.NewHub(cfg, admin, "hotspare-console/"+version, c), life}
}

// Bearer returns the person with that token.
func (h hubOf) Bearer(ctx context.Context, token string) (Viewer, error) {
	p, err := h.Hub.Bearer(ctx, h.life, token)
	if err != nil { // not a nil pointer in an interface
		return nil, err
	}
	return p, nil
}

// Admin returns the person who runs the hub.
func (h hubOf) Admin(ctx context.Context) (Viewer, error) {
	p, err := h.Hub.Admin(ctx, h.life)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// cookie is the name of the one that holds the session. Browsers give cookies of one
// port to all of that computer, so its port is in it.
func (s *Server) cookie() string {
	if s.Secure {
		return "__Host-hotspare-session"
	}
	return strings.TrimSuffix("hotspare-session-"+s.Port, "-")
}
