package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"hotspare.io/hotspare/internal/console/userclient"
)

const (
	// minRefreshDelay is the minimum time between two versions of a page.
	minRefreshDelay = 500 * time.Millisecond
	// refreshInterval is how often a page is rendered even without a change, because some content
	// depends on the time and on permissions. It also shows the browser that the connection works.
	refreshInterval = 10 * time.Second
)

// serveLivePage sends the main part of the page in the query's path each time that it differs from
// the version in the browser.
func (s *Server) serveLivePage(w http.ResponseWriter, r *http.Request) {
	out := &eventStream{w: w, ctl: http.NewResponseController(w), clock: s.Clock}
	one := s.findSession(r)
	l, inner := s.findLivePage(r)
	if one == nil || l == nil {
		out.sendHeader()
		out.sendEvent("bye", "", nil) // the browser reloads the page, which shows the reason
		return
	}
	seen := r.URL.Query().Get("seen")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		seen = last
	}
	if !s.livePages.addPage(one.UserName) {
		http.Error(w, "You have too many pages open: close some.", http.StatusTooManyRequests)
		return
	}
	defer s.livePages.removePage(one.UserName)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-s.life.Done():
		case <-ctx.Done():
		}
	}()
	err := s.streamPage(ctx, out, one, l, inner, seen)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Log.V(1).Info("a live page ended with an error", "path", inner.URL.Path, "why", err.Error())
	}
}

// maxLivePages bounds the live pages of a user in all sessions.
const maxLivePages = 40

// livePageCounts counts live pages by user.
type livePageCounts struct {
	mu     sync.Mutex
	counts map[string]int
}

// addPage counts one more page, unless the user has reached the limit.
func (l *livePageCounts) addPage(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	if l.counts[name] >= maxLivePages {
		return false
	}
	l.counts[name]++
	return true
}

func (l *livePageCounts) removePage(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts[name]--; l.counts[name] == 0 {
		delete(l.counts, name)
	}
}

// findLivePage returns the page that a live stream follows.
func (s *Server) findLivePage(r *http.Request) (*pageRoute, *http.Request) {
	u, err := url.Parse(localPath(r.URL.Query().Get("path")))
	if err != nil {
		return nil, nil
	}
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, u.RequestURI(), nil)
	if err != nil {
		return nil, nil
	}
	return s.findPage(inner)
}

// streamPage sends a page each time that it changes, until ctx or the session ends.
func (s *Server) streamPage(ctx context.Context, out *eventStream, one *viewerSession, l *pageRoute, r *http.Request, seen string) error {
	tick := s.Clock.NewTicker(refreshInterval)
	defer tick.Stop()
	// The server's read timeout is for a single request, and this one stays open.
	if err := out.ctl.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	out.sendHeader()
	of, leave := s.renders.acquireRenderer(one.UserName)
	defer leave()
	key := one.ID + " " + r.URL.RequestURI() // forms contain the session's CSRF token
	for out.err == nil {
		if s.sessions.Find(one.ID, s.Clock.Now()) == nil || one.Viewer.HasLostAccess() {
			out.sendEvent("bye", "", nil)
			return out.err
		}
		f, changed, err := s.renders.renderLive(ctx, of, key, one.Viewer.ChangeSignal, func() (*pageData, error) { return s.buildPageData(ctx, one, l, r) })
		switch {
		case errors.Is(err, userclient.ErrUnknown):
			s.sessions.Close(one.ID)
			out.sendEvent("bye", "", nil)
			return out.err
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			// The page's object may have been deleted, or the hub may not respond: the browser
			// keeps the page and reports the error.
			out.sendEvent("stale", "", []byte(describeError(err)))
			seen = ""
		case f.Digest != seen:
			seen = f.Digest
			out.sendEvent("main", seen, []byte(f.Main))
		default:
			out.sendEvent("same", "", nil) // a browser reports a lost connection if it receives nothing for long
		}
		if err := s.waitForChange(ctx, changed, tick.C()); err != nil {
			return err
		}
	}
	return out.err
}

// waitForChange waits for a change or a tick, and at least minRefreshDelay.
func (s *Server) waitForChange(ctx context.Context, changed <-chan struct{}, tick <-chan time.Time) error {
	pause := s.Clock.NewTimer(minRefreshDelay)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C():
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-tick:
	}
	return nil
}

// eventStream writes server-sent events. After an error it writes nothing more.
type eventStream struct {
	w     http.ResponseWriter
	ctl   *http.ResponseController
	clock interface{ Now() time.Time }
	err   error
}

// sendHeader sends the headers of the stream.
func (s *eventStream) sendHeader() {
	head := s.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no") // a proxy that buffers responses would delay every event
	s.sendComment("live")
}

// sendEvent sends an event.
func (s *eventStream) sendEvent(event, id string, data []byte) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", event)
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	for line := range bytes.SplitSeq(bytes.ReplaceAll(data, []byte("\r"), nil), []byte("\n")) {
		fmt.Fprintf(&b, "data: %s\n", line)
	}
	b.WriteByte('\n')
	s.sendBytes(b.Bytes())
}

// sendComment sends a comment, which browsers ignore.
func (s *eventStream) sendComment(text string) { s.sendBytes([]byte(": " + text + "\n\n")) }

func (s *eventStream) sendBytes(raw []byte) {
	if s.err != nil {
		return
	}
	// The server's write timeout is for a whole response, and this one has no end.
	if err := s.ctl.SetWriteDeadline(s.clock.Now().Add(clientTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
		return
	}
	if _, err := s.w.Write(raw); err != nil {
		s.err = err
		return
	}
	if err := s.ctl.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
	}
}
