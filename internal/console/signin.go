package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/console/localauth"
	"hotspare.io/hotspare/internal/console/session"
	"hotspare.io/hotspare/internal/console/userclient"
)

type viewerSession = session.Session[Viewer]

// signInPage is the content of the sign-in page.
type signInPage struct {
	// Next is the page to open after signing in.
	Next string
	// Error describes what was wrong with the last attempt.
	Error string
	// LinksEnabled is set if the command hotspare console creates login links.
	LinksEnabled bool
}

// serveSignIn shows the sign-in form to users without a session.
func (s *Server) serveSignIn(w http.ResponseWriter, r *http.Request) {
	if s.findSession(r) != nil {
		http.Redirect(w, r, localPath(r.FormValue("next")), http.StatusSeeOther)
		return
	}
	s.writeSignIn(w, r, http.StatusOK, "")
}

func (s *Server) writeSignIn(w http.ResponseWriter, r *http.Request, status int, bad string) {
	next := localPath(r.FormValue("next"))
	s.writeStandalonePage(w, r, nil, status, "Sign in", "signin.html", signInPage{Next: next, Error: bad, LinksEnabled: s.codes != nil})
}

// localPath returns next if it is a path of this console, otherwise the path of the overview.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// signInWithToken signs a user in with a token.
func (s *Server) signInWithToken(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.PostFormValue("token"))
	if token == "" || strings.ContainsFunc(token, isInvalidTokenRune) {
		s.writeSignIn(w, r, http.StatusBadRequest, "This is not a token: paste the single word that the command prints.")
		return
	}
	viewer, err := s.checkToken(r.Context(), token)
	switch {
	case errors.Is(err, userclient.ErrUnknown):
		s.delayFailure(r)
		s.writeSignIn(w, r, http.StatusUnauthorized, "The hub does not accept this token. It may have expired: create another one.")
		return
	case err != nil:
		s.Log.Info("could not check a token with the hub", "why", err.Error())
		s.writeSignIn(w, r, http.StatusBadGateway, "The hub could not check the token: "+describeError(err))
		return
	}
	s.openSession(w, r, viewer, "token", localPath(r.PostFormValue("next")))
}

// checkToken asks the hub whose token it is. It waits while the hub checks maxTokenChecks others.
func (s *Server) checkToken(ctx context.Context, token string) (Viewer, error) {
	select {
	case s.tokenChecks <- struct{}{}:
		defer func() { <-s.tokenChecks }()
		return s.Hub.ViewerForToken(ctx, token)
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the checks of other tokens: %w", ctx.Err())
	}
}

// delayFailure counts a wrong token, and returns when it may be answered. Wrong tokens delay no valid one
// of their address: behind a proxy, all users have one address.
func (s *Server) delayFailure(r *http.Request) {
	wait := s.failures.recordFailure(remoteAddress(r), s.Clock.Now())
	if wait <= 0 {
		return
	}
	select {
	case <-s.Clock.After(wait):
	case <-r.Context().Done():
	}
}

// isInvalidTokenRune reports whether a token cannot contain a rune.
func isInvalidTokenRune(r rune) bool { return r <= ' ' || r > '~' }

// signInWithCode signs in the person who runs the hub, with a code of a login link.
func (s *Server) signInWithCode(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") {
		http.Error(w, "A code works only once: open the link itself.", http.StatusMethodNotAllowed)
		return
	}
	if s.codes == nil {
		s.writeSignIn(w, r, http.StatusNotFound, "This console does not accept links: sign in with a token.")
		return
	}
	// Failures from the same address do not delay a valid code: a code cannot be guessed, and
	// checking one takes microseconds.
	if err := s.codes.VerifyOnce(r.URL.Query().Get(localauth.CodeParameter), s.Clock.Now()); err != nil {
		s.writeSignIn(w, r, http.StatusUnauthorized, "The link is not valid: "+err.Error()+". Create another one with: hotspare console")
		return
	}
	viewer, err := s.Hub.AdminViewer(r.Context())
	if err != nil {
		s.Log.Info("could not sign in the administrator at the hub", "why", err.Error())
		s.writeSignIn(w, r, http.StatusBadGateway, "The hub did not respond: "+describeError(err))
		return
	}
	s.openSession(w, r, viewer, "link", "/")
}

func (s *Server) openSession(w http.ResponseWriter, r *http.Request, viewer Viewer, how, next string) {
	if old := s.findSession(r); old != nil {
		s.sessions.Close(old.ID)
	}
	one, err := s.sessions.Open(viewer.Name(), viewer, s.Clock.Now())
	if err != nil {
		viewer.Close()
		s.writeSignIn(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	s.Log.Info("signed in", "user", viewer.Name(), "with", how)
	http.SetCookie(w, s.newSessionCookie(one.ID, int(session.MaxAge.Seconds())))
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// The browser does not send the cookie along a redirect that started on another site.
		s.writeStandalonePage(w, r, nil, http.StatusOK, "Signed in", "entered.html", next)
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (s *Server) newSessionCookie(value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(), Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	}
}

// signOut ends the session.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request, one *viewerSession) {
	if !s.checkCSRFToken(w, r, one) {
		return
	}
	s.sessions.Close(one.ID)
	s.Log.Info("signed out", "user", one.UserName)
	http.SetCookie(w, s.newSessionCookie("", -1))
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
}

// findSession returns the session of a request; nil if there is none.
func (s *Server) findSession(r *http.Request) *viewerSession {
	c, err := r.Cookie(s.cookieName())
	if err != nil {
		return nil
	}
	one := s.sessions.Find(c.Value, s.Clock.Now())
	if one != nil && one.Viewer.HasLostAccess() {
		s.sessions.Close(one.ID)
		return nil
	}
	return one
}

// requireSession redirects requests without a session to the sign-in page.
func (s *Server) requireSession(h func(http.ResponseWriter, *http.Request, *viewerSession)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		one := s.findSession(r)
		if one != nil {
			h(w, r, one)
			return
		}
		next := "/"
		if r.Method == http.MethodGet {
			next = r.URL.RequestURI()
		}
		if next == "/" {
			http.Redirect(w, r, "/signin", http.StatusSeeOther)
			return
		}
		http.Redirect(w, r, "/signin?next="+url.QueryEscape(next), http.StatusSeeOther)
	}
}

// checkCSRFToken reports whether a form belongs to the session. If it does not, checkCSRFToken
// sends an error page.
func (s *Server) checkCSRFToken(w http.ResponseWriter, r *http.Request, one *viewerSession) bool {
	if one.HasCSRFToken(r.PostFormValue("csrf-token")) {
		return true
	}
	s.serveProblem(w, r, one, errorPage{
		Status: http.StatusForbidden, Title: "This form is out of date",
		Message: "The form does not belong to the current session. hotspare ignored it.", Remedy: "Go back, reload the page, and try again.",
	})
	return false
}

// remoteAddress returns the address of the client without its port.
func remoteAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// themeCookie contains the theme that the user has chosen.
const themeCookie = "hotspare-look"

// setTheme stores the user's theme: light, dark, or the system setting.
func (s *Server) setTheme(w http.ResponseWriter, r *http.Request) {
	look := r.PostFormValue("theme")
	age := int((365 * 24 * time.Hour).Seconds())
	if look != "light" && look != "dark" {
		look, age = "", -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: themeCookie, Value: look, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, localPath(r.PostFormValue("back")), http.StatusSeeOther)
}

func readTheme(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "light" && c.Value != "dark" {
		return ""
	}
	return c.Value
}
