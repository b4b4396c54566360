// Package console serves the web console: pages that show pools, claims and fleets live, and forms
// to act on them. Users sign in with their own identity. The console reads and writes everything
// with their permissions at the hub and has none of its own.
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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/console/localauth"
	"hotspare.io/hotspare/internal/console/session"
	"hotspare.io/hotspare/internal/console/userclient"
)

// A Viewer is a user of the hub who has signed in. *userclient.User implements it.
type Viewer interface {
	// Client sends requests to the hub without a cache.
	client.Client
	Name() string
	IsAllowed(ctx context.Context, d userclient.Permission) (bool, error)
	// ReaderFor returns a cached reader of a namespace, or of all namespaces if it is empty. Use it
	// only for kinds that the viewer may list there.
	ReaderFor(namespace string) (client.Reader, error)
	// ReadRecord reads the record of claims of a pool, which is the only ConfigMap that the console can read. The
	// error is userclient.ErrNotRecord if it is none.
	ReadRecord(ctx context.Context, pool types.NamespacedName) (*corev1.ConfigMap, error)
	// ChangeSignal returns a channel that is closed at the next change of an object in the viewer's
	// caches.
	ChangeSignal() <-chan struct{}
	// HasLostAccess reports whether the hub has rejected the viewer's credentials.
	HasLostAccess() bool
	// ReleaseMemory drops the caches; the next read fills them again. Close drops everything.
	ReleaseMemory()
	Close()
}

// A Hub identifies users. Its methods return userclient.ErrUnknown if the hub does not accept the
// credentials.
type Hub interface {
	ViewerForToken(ctx context.Context, token string) (Viewer, error)
	AdminViewer(ctx context.Context) (Viewer, error)
}

// Options configures a console.
type Options struct {
	Hub Hub
	// Key verifies the login codes of the person who runs the hub (see package localauth). If it is
	// nil, the console does not accept login links.
	Key localauth.Key
	// Hosts are host names under which browsers reach the console, in addition to the loopback
	// names.
	Hosts []string
	// Secure is set if browsers use HTTPS.
	Secure bool
	// Port is the port that the console listens on. Browsers send the cookies of one host to all
	// its ports, so the name of the session cookie contains the port.
	Port    string
	Version string
	Clock   clock.WithTicker
	Log     logr.Logger
}

// A Server serves the console. Its methods are safe for concurrent use.
type Server struct {
	Options
	sessions session.Store[Viewer]
	codes    *localauth.CodeVerifier
	failures failures
	// tokenChecks has an element for each token that the hub checks.
	tokenChecks chan struct{}
	livePages   livePageCounts
	renders     *renderScheduler
	ui          *ui
	pages       *http.ServeMux
	life        context.Context //nolint:containedctx // live pages end with it
	// readTimeout is the maximum time that a client may take to send a request.
	readTimeout time.Duration
}

// New returns a console that works until life ends.
func New(life context.Context, o Options) (*Server, error) {
	s := &Server{Options: o, life: life, readTimeout: clientTimeout, renders: newRenderScheduler(o.Clock), tokenChecks: make(chan struct{}, maxTokenChecks)}
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

// Timeouts of requests.
const (
	clientTimeout   = 10 * time.Second
	responseTimeout = time.Minute
	idleTimeout     = 2 * time.Minute
)

// maxBody bounds the body of a form: its longest field is a token.
const (
	maxBody   = 64 << 10
	maxHeader = 64 << 10
)

// Serve serves the console on l until the console's life ends, by HTTP if settings is nil. It
// closes l.
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
	// The contexts of running requests are canceled, so their handlers return soon.
	err := srv.Close()
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// sweepInterval is the time between two checks of sessions. releaseAfter is the idle time after
// which a session's caches are dropped.
const (
	sweepInterval = 10 * time.Second
	releaseAfter  = time.Minute
)

// maintainSessions ends expired sessions and drops the caches of idle ones.
func (s *Server) maintainSessions() {
	tick := s.Clock.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C():
			s.sessions.EndExpiredAndRestIdle(s.Clock.Now(), releaseAfter, func(one *session.Session[Viewer]) { one.Viewer.ReleaseMemory() })
			s.failures.removeDecayed(s.Clock.Now())
		}
	}
}

// Handler returns the handler of all requests to the console.
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
		s.findSession(r) // marks the session as used
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /", s.requireSession(s.servePage))
	for path, do := range formActions {
		mux.HandleFunc("POST "+path, s.requireSession(s.handleForm(do)))
	}
	return s.guardRequests(mux)
}

// viewerHub is a Hub whose users live as long as the console.
type viewerHub struct {
	*userclient.Hub
	life context.Context //nolint:containedctx // see Server
}

// NewHub returns a Hub that reaches the API server of cfg with each viewer's own credentials until
// life ends. admin has the credentials of the person who runs the hub; nil if there is none.
func NewHub(life context.Context, cfg, admin *rest.Config, version string, c clock.PassiveClock) Hub {
	return viewerHub{userclient.NewHub(cfg, admin, "hotspare-console/"+version, c), life}
}

// ViewerForToken returns the user of a token.
func (h viewerHub) ViewerForToken(ctx context.Context, token string) (Viewer, error) {
	p, err := h.Hub.UserForToken(ctx, h.life, token)
	if err != nil { // a nil pointer must not become a non-nil interface
		return nil, err
	}
	return p, nil
}

// AdminViewer returns the user who runs the hub.
func (h viewerHub) AdminViewer(ctx context.Context) (Viewer, error) {
	p, err := h.Hub.AdminUser(ctx, h.life)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// cookieName returns the name of the session cookie. Browsers send a cookie to all ports of a host,
// so the name contains the port.
func (s *Server) cookieName() string {
	if s.Secure {
		return "__Host-hotspare-session"
	}
	return strings.TrimSuffix("hotspare-session-"+s.Port, "-")
}
