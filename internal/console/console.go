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

	"hotspare.io/hotspare/internal/console/localauth"
	"hotspare.io/hotspare/internal/console/session"
	"hotspare.io/hotspare/internal/console/userclient"
)

// A Viewer is somebody at the hub, with their own rights. *see.Person is one.
type Viewer interface {
	// Client asks the hub itself.
	client.Client
	Name() string
	IsAllowed(ctx context.Context, d userclient.Permission) (bool, error)
	// ReaderFor is what there is in a namespace, or in all; for kinds that may be listed there.
	ReaderFor(namespace string) (client.Reader, error)
	// ChangeSignal is closed when something looked at has changed since the call.
	ChangeSignal() <-chan struct{}
	// HasLostAccess reports whether the hub does not know the viewer any more.
	HasLostAccess() bool
	// ReleaseMemory lets go of memory, Close of everything.
	ReleaseMemory()
	Close()
}

// A Hub tells who somebody is. The error is see.ErrUnknown for who it does not know.
type Hub interface {
	ViewerForToken(ctx context.Context, token string) (Viewer, error)
	AdminViewer(ctx context.Context) (Viewer, error)
}

// Options are what a console works with.
type Options struct {
	Hub Hub
	// Key lets in who runs the hub, by codes made with it (see package localauth); nil: nobody
	// comes in that way.
	Key localauth.Key
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
	sessions  session.Store[Viewer]
	codes     *localauth.CodeVerifier
	failures  failures
	livePages livePageCounts
	renders   *renderScheduler
	ui        *ui
	pages     *http.ServeMux
	life      context.Context //nolint:containedctx // live pages end with it, whoever looks
	// readTimeout is how long a client may take to say what it wants.
	readTimeout time.Duration
}

// New returns a console that works until life ends.
func New(life context.Context, o Options) (*Server, error) {
	s := &Server{Options: o, life: life, readTimeout: clientTimeout, renders: newRenderScheduler(o.Clock)}
	if o.Key != nil {
		s.codes = localauth.NewCodeVerifier(o.Key)
	}
	s.sessions.End = func(one *session.Session[Viewer]) { one.Viewer.Close() }
	var err error
	if s.ui, err = newUI(); err != nil {
		return nil, err
	}
	s.pages = newPageMux()
	return s, nil
}

// Times that a client may take, and a request.
const (
	clientTimeout   = 10 * time.Second
	responseTimeout = time.Minute
	idleTimeout     = 2 * time.Minute
)

// maxBody bounds what a form may hold: a token is its longest field.
const (
	maxBody   = 64 << 10
	maxHeader = 64 << 10
)

// Serve serves the console on l until its life ends; settings is nil for plain http.
// It closes l.
func (s *Server) Serve(l net.Listener, settings *tls.Config) error {
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.readTimeout,
		ReadTimeout:       s.readTimeout,
		WriteTimeout:      responseTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
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
	go s.maintainSessions()
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
	sweepInterval = 10 * time.Second
	releaseAfter  = time.Minute
)

// maintainSessions ends sessions that are over, and lets go of the memory of those that nobody uses.
func (s *Server) maintainSessions() {
	tick := s.Clock.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C():
			s.sessions.EndExpired(s.Clock.Now(), releaseAfter, func(one *session.Session[Viewer]) { one.Viewer.ReleaseMemory() })
			s.failures.removeDecayed(s.Clock.Now())
		}
	}
}

// Handler is all of the console.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /static/", s.ui.staticHandler())
	mux.HandleFunc("GET /signin", s.serveSignIn)
	mux.HandleFunc("POST /signin", s.signInWithToken)
	mux.HandleFunc("GET "+localauth.LoginPath, s.signInWithCode)
	mux.HandleFunc("POST /signout", s.requireSession(s.signOut))
	mux.HandleFunc("POST /theme", s.setTheme)
	mux.HandleFunc("GET /live", s.serveLivePage)
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, r *http.Request) {
		s.findSession(r) // which is used now
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /", s.requireSession(s.servePage))
	for path, do := range formActions {
		mux.HandleFunc("POST "+path, s.requireSession(s.handleForm(do)))
	}
	return s.guardRequests(mux)
}

// viewerHub is a hub whose people live as long as the console.
type viewerHub struct {
	*userclient.Hub
	life context.Context //nolint:containedctx // see Server
}

// NewHub is the hub that cfg reaches, for viewers with their own credentials until life
// ends. admin is how the person who runs it reaches it, or nil.
func NewHub(life context.Context, cfg, admin *rest.Config, version string, c clock.PassiveClock) Hub {
	return viewerHub{userclient.NewHub(cfg, admin, "hotspare-console/"+version, c), life}
}

// ViewerForToken returns the person with that token.
func (h viewerHub) ViewerForToken(ctx context.Context, token string) (Viewer, error) {
	p, err := h.Hub.UserForToken(ctx, h.life, token)
	if err != nil { // not a nil pointer in an interface
		return nil, err
	}
	return p, nil
}

// AdminViewer returns the person who runs the hub.
func (h viewerHub) AdminViewer(ctx context.Context) (Viewer, error) {
	p, err := h.Hub.AdminUser(ctx, h.life)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// cookieName is the name of the one that holds the session. Browsers give cookies of one
// port to all of that computer, so its port is in it.
func (s *Server) cookieName() string {
	if s.Secure {
		return "__Host-hotspare-session"
	}
	return strings.TrimSuffix("hotspare-session-"+s.Port, "-")
}
