package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/console/session"
	"hotspare.io/hotspare/internal/console/userclient"
)

// A pageRoute is a page of the console.
type pageRoute struct {
	// Path is a pattern of http.ServeMux.
	Path string
	// Title is the title in the browser. If Path has a {name}, the name precedes it.
	Title string
	// Nav is the label in the navigation; empty if the page is not there.
	Nav string
	// Template is the file of the template.
	Template string
	// Build returns the content for the template. The error userclient.ErrUnknown ends the session;
	// the console shows an *errorPage as it is.
	Build func(ctx context.Context, l *PageReader, now time.Time, r *http.Request) (any, error)
}

// pageRoutes lists all pages in the order of the navigation.
var pageRoutes = []pageRoute{
	{Path: "/{$}", Title: "Overview", Nav: "Overview", Template: "overview.html", Build: buildOverviewPage},
	{Path: "/pools", Title: "Pools", Nav: "Pools", Template: "pools.html", Build: buildPoolsPage},
	{Path: "/pools/{namespace}/{name}", Title: "Pool", Template: "pool.html", Build: buildPoolPage},
	{Path: "/inventory", Title: "Inventory", Nav: "Inventory", Template: "inventory.html", Build: buildInventoryPage},
	{Path: "/fleet", Title: "Fleet", Nav: "Fleet", Template: "fleet.html", Build: buildFleetPage},
	{Path: "/fleet/{namespace}/{name}", Title: "Fleet", Template: "fleet.html", Build: buildRegionPage},
	{Path: "/activity", Title: "Activity", Nav: "Activity", Template: "activity.html", Build: buildActivityPage},
}

// An errorPage is a page that explains why the requested one cannot be shown.
type errorPage struct {
	Status                 int
	Title, Message, Remedy string
}

func (p *errorPage) Error() string { return p.Title + ": " + p.Message }

//go:embed ui
var files embed.FS

// ui has the templates by file name.
type ui struct {
	templates map[string]*template.Template
	version   string // hash of the static files, so that browsers request changed ones
}

func newUI() (*ui, error) {
	base, err := template.New("layout.html").Funcs(template.FuncMap{
		"plural": page.FormatCount,
		"lower":  strings.ToLower,
		"word":   cssClass,
		"dict":   templateDict,
	}).ParseFS(files, "ui/layout.html", "ui/parts.html")
	if err != nil {
		return nil, fmt.Errorf("reading the console's templates: %w", err)
	}
	names := []string{"signin.html", "entered.html", "problem.html"}
	for _, l := range pageRoutes {
		names = append(names, l.Template)
	}
	u := &ui{templates: map[string]*template.Template{}}
	for _, name := range names {
		one, err := base.Clone()
		if err == nil {
			one, err = one.ParseFS(files, "ui/"+name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the console's template %s: %w", name, err)
		}
		u.templates[name] = one
	}
	sum := sha256.New()
	for _, name := range []string{"style.css", "fleet.css", "live.js", "idiomorph.min.js"} {
		raw, err := files.ReadFile("ui/" + name)
		if err != nil {
			return nil, fmt.Errorf("reading the console's files: %w", err)
		}
		sum.Write(raw)
	}
	u.version = hex.EncodeToString(sum.Sum(nil))[:12]
	return u, nil
}

// templateDict returns a map of alternating names and values, for a template with several
// arguments.
func templateDict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		out[name] = pairs[i+1]
	}
	return out, nil
}

// cssClass converts a word to a CSS class.
func cssClass(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
}

// staticTypes has the content types of the files that browsers may request.
var staticTypes = map[string]string{
	"style.css":        "text/css; charset=utf-8",
	"fleet.css":        "text/css; charset=utf-8",
	"live.js":          "text/javascript; charset=utf-8",
	"idiomorph.min.js": "text/javascript; charset=utf-8",
	"icon.svg":         "image/svg+xml",
}

func (u *ui) staticHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/static/")
		kind, found := staticTypes[name]
		raw, err := files.ReadFile("ui/" + name)
		if !found || err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", `"`+u.version+`"`)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(raw))
	})
}

// pageData is the input of the templates. Content is what the page's Build returned.
type pageData struct {
	Content any
	// CSRFToken is in each form: {{template "csrf" $}}.
	CSRFToken string
	// Query is appended to links to other pages. It selects the namespace.
	Query string
	// Namespace is the namespace that the page shows, Path the page's own path.
	Namespace, Path string
	Missing         []string

	Title, User, Theme, Version, Static string
	Nav                                 []navItem
	Messages                            []session.Message
	Now                                 string
	Digest                              string
	Live                                bool
	Main                                template.HTML
}

// navItem is a link of the navigation.
type navItem struct {
	Label, Link string
	Current     bool
}

// routeMatch receives the route of a request.
type routeMatch struct {
	http.ResponseWriter
	route *pageRoute
	r     *http.Request
}

// newPageMux returns a mux that finds routes and writes no response: see findPage.
func newPageMux() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range pageRoutes {
		l := &pageRoutes[i]
		mux.HandleFunc("GET "+l.Path, func(w http.ResponseWriter, r *http.Request) {
			if f, ok := w.(*routeMatch); ok {
				f.route, f.r = l, r
			}
		})
	}
	return mux
}

// findPage returns the route of a request, and the request with the values of its path. They are
// nil if no route matches.
func (s *Server) findPage(r *http.Request) (*pageRoute, *http.Request) {
	f := &routeMatch{ResponseWriter: discardWriter{}}
	s.pages.ServeHTTP(f, r)
	return f.route, f.r
}

// discardWriter discards a response.
type discardWriter struct{}

// Header returns headers that are discarded.
func (discardWriter) Header() http.Header { return http.Header{} }

// Write discards p.
func (discardWriter) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader discards the status.
func (discardWriter) WriteHeader(int) {}

// servePage serves a page.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request, one *viewerSession) {
	l, inner := s.findPage(r)
	if l == nil {
		s.serveProblem(w, r, one, errorPage{
			Status: http.StatusNotFound, Title: "Page not found",
			Message: "The console has no page at " + r.URL.Path + ".", Remedy: "Continue with the overview.",
		})
		return
	}
	build := func() (*pageData, error) { return s.buildPageData(r.Context(), one, l, inner) } // it is the context of the request
	f, err := s.renders.renderOnce(r.Context(), one.UserName, build)
	if err != nil {
		s.serveError(w, r, one, err)
		return
	}
	f.Messages = s.sessions.TakeMessages(one)
	s.sendPage(w, r, f, http.StatusOK, l.Template)
}

// buildPageData builds a page and renders its main part.
func (s *Server) buildPageData(ctx context.Context, one *viewerSession, l *pageRoute, r *http.Request) (*pageData, error) {
	look := &PageReader{Viewer: one.Viewer, Namespace: r.URL.Query().Get("namespace")}
	f := &pageData{CSRFToken: one.CSRFToken, Namespace: look.Namespace, Path: r.URL.RequestURI(), Live: true}
	if look.Namespace != "" {
		f.Query = "?namespace=" + template.URLQueryEscaper(look.Namespace)
	}
	f.Title = l.Title
	if name := r.PathValue("name"); name != "" {
		look.Namespace = r.PathValue("namespace")
		f.Title = name + ", " + l.Title
	}
	var err error
	if f.Content, err = l.Build(ctx, look, s.Clock.Now(), r); err != nil {
		return nil, err
	}
	f.Missing = look.Missing
	f.Nav = buildNavigation(l, f.Query)
	var b bytes.Buffer
	if err := s.ui.templates[l.Template].ExecuteTemplate(&b, "content", f); err != nil {
		return nil, fmt.Errorf("writing page %s: %w", l.Path, err)
	}
	f.Main = template.HTML(b.String()) //nolint:gosec // a template has escaped it
	f.Digest = pageDigest(b.Bytes())
	return f, nil
}

func buildNavigation(here *pageRoute, query string) []navItem {
	var out []navItem
	for i := range pageRoutes {
		l := &pageRoutes[i]
		if l.Nav == "" {
			continue
		}
		link := strings.TrimSuffix(l.Path, "{$}")
		under := link != "/" && here != nil && strings.HasPrefix(here.Path, link)
		out = append(out, navItem{l.Nav, link + query, here == l || under})
	}
	return out
}

// timeContents matches the text of times, which the browser updates itself.
var timeContents = regexp.MustCompile(`(<time [^>]*>)[^<]*`)

// pageDigest returns a digest of a page's main part that does not depend on the text of times.
func pageDigest(html []byte) string {
	sum := sha256.Sum256(timeContents.ReplaceAll(html, []byte("$1")))
	return hex.EncodeToString(sum[:12])
}

// writeStandalonePage writes a page that is not in pageRoutes.
func (s *Server) writeStandalonePage(w http.ResponseWriter, r *http.Request, one *viewerSession, status int, title, file string, in any) {
	f := &pageData{Content: in, Title: title, Path: "/"}
	if one != nil {
		f.CSRFToken, f.Nav = one.CSRFToken, buildNavigation(nil, "")
	}
	var b bytes.Buffer
	if err := s.ui.templates[file].ExecuteTemplate(&b, "content", f); err != nil {
		s.Log.Error(err, "writing a page", "template", file)
		http.Error(w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	f.Main = template.HTML(b.String()) //nolint:gosec // a template has escaped it
	s.sendPage(w, r, f, status, file)
}

// sendPage renders the layout around a page and sends it.
func (s *Server) sendPage(w http.ResponseWriter, r *http.Request, f *pageData, status int, file string) {
	f.Theme, f.Version, f.Static = readTheme(r), s.Version, s.ui.version
	f.Now = s.Clock.Now().UTC().Format(time.RFC3339Nano)
	if one := s.findSession(r); one != nil {
		f.User, f.CSRFToken = one.UserName, one.CSRFToken
	}
	var b bytes.Buffer
	if err := s.ui.templates[file].ExecuteTemplate(&b, "layout.html", f); err != nil {
		s.Log.Error(err, "writing a page", "template", file)
		http.Error(w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	if _, err := w.Write(b.Bytes()); err != nil {
		s.Log.V(1).Info("could not send a page", "why", err.Error())
	}
}

// serveProblem serves an error page.
func (s *Server) serveProblem(w http.ResponseWriter, r *http.Request, one *viewerSession, p errorPage) {
	s.writeStandalonePage(w, r, one, p.Status, p.Title, "problem.html", p)
}

// serveError serves the page of an error.
func (s *Server) serveError(w http.ResponseWriter, r *http.Request, one *viewerSession, err error) {
	var p *errorPage
	switch {
	case errors.Is(err, userclient.ErrUnknown):
		s.sessions.Close(one.ID)
		http.SetCookie(w, s.newSessionCookie("", -1))
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	case errors.As(err, &p):
		s.serveProblem(w, r, one, *p)
	case errors.Is(err, context.Canceled):
		// The client has closed the connection.
	default:
		s.Log.Info("could not show a page", "path", r.URL.Path, "user", one.UserName, "why", err.Error())
		s.serveProblem(w, r, one, errorPage{
			Status: http.StatusBadGateway, Title: "The hub did not respond",
			Message: describeError(err), Remedy: "Reload the page. If the error persists, check whether the hub is running: hotspare status",
		})
	}
}

// describeError returns the text of an error for a viewer: the hub's own message if the hub
// returned the error.
func describeError(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
