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

	"hotspare.io/hotspare/internal/console/see"
)

const (
	// gap is between two versions of a page, at least.
	gap = 500 * time.Millisecond
	// slow is how often a page is made again though nothing has changed: some of it
	// depends on the time, and on rights. It also tells that the connection is there.
	slow = 10 * time.Second
)

// live sends the main part of the page in the query's path, whenever it has changed from
// what the browser has seen.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	out := &stream{w: w, ctl: http.NewResponseController(w), clock: s.Clock}
	one := s.session(r)
	l, inner := s.findLive(r)
	if one == nil || l == nil {
		out.begin()
		out.say("bye", "", nil) // the browser loads the page again, and is told why there
		return
	}
	seen := r.URL.Query().Get("seen")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		seen = last
	}
	if !s.lives.add(one.Name) {
		http.Error(w, "You have too many live pages: close some.", http.StatusTooManyRequests)
		return
	}
	defer s.lives.drop(one.Name)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-s.life.Done():
		case <-ctx.Done():
		}
	}()
	err := s.follow(ctx, out, one, l, inner, seen)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Log.V(1).Info("a live page ended", "path", inner.URL.Path, "why", err.Error())
	}
}

// mostLive bounds the live pages of a person, in all sessions.
const mostLive = 40

// lives counts live pages, by person.
type lives struct {
	mu sync.Mutex
	of map[string]int
}

// add counts one more, if there may be one.
func (l *lives) add(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]int{}
	}
	if l.of[name] >= mostLive {
		return false
	}
	l.of[name]++
	return true
}

func (l *lives) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[name]--; l.of[name] == 0 {
		delete(l.of, name)
	}
}

// findLive is the page that a live one follows.
func (s *Server) findLive(r *http.Request) (*leaf, *http.Request) {
	u, err := url.Parse(local(r.URL.Query().Get("path")))
	if err != nil {
		return nil, nil
	}
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, u.RequestURI(), nil)
	if err != nil {
		return nil, nil
	}
	return s.find(inner)
}

// follow sends a page whenever it has changed, until ctx ends or the session does.
func (s *Server) follow(ctx context.Context, out *stream, one *sess, l *leaf, r *http.Request, seen string) error {
	tick := s.Clock.NewTicker(slow)
	defer tick.Stop()
	// The server's limit is for a request, and this one lasts.
	if err := out.ctl.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	out.begin()
	of, leave := s.renders.join(one.Name)
	defer leave()
	key := one.ID + " " + r.URL.RequestURI() // a session's forms have its mark
	for out.err == nil {
		if s.sessions.Find(one.ID, s.Clock.Now()) == nil || one.Who.Lost() {
			out.say("bye", "", nil)
			return out.err
		}
		f, changed, err := s.renders.live(ctx, of, key, one.Who.Changed, func() (*frame, error) { return s.frame(ctx, one, l, r) })
		switch {
		case errors.Is(err, see.ErrUnknown):
			s.sessions.Close(one.ID)
			out.say("bye", "", nil)
			return out.err
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			// The page itself may be gone, or the hub may not answer: the browser keeps
			// what it has, and says so.
			out.say("stale", "", []byte(plain(err)))
			seen = ""
		case f.Digest != seen:
			seen = f.Digest
			out.say("main", seen, []byte(f.Main))
		default:
			out.say("same", "", nil) // a browser that hears nothing for long says so
		}
		if err := s.rest(ctx, changed, tick.C()); err != nil {
			return err
		}
	}
	return out.err
}

// rest waits until there is something new, and not too soon.
func (s *Server) rest(ctx context.Context, changed <-chan struct{}, tick <-chan time.Time) error {
	pause := s.Clock.NewTimer(gap)
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

// stream writes server-sent events. After a mistake it does nothing.
type stream struct {
	w     http.ResponseWriter
	ctl   *http.ResponseController
	clock interface{ Now() time.Time }
	err   error
}

// begin says what is to come.
func (o *stream) begin() {
	head := o.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no") // a proxy that gathers answers would keep it all
	o.comment("live")
}

// say sends an event.
func (o *stream) say(event, id string, data []byte) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", event)
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	for line := range bytes.SplitSeq(bytes.ReplaceAll(data, []byte("\r"), nil), []byte("\n")) {
		fmt.Fprintf(&b, "data: %s\n", line)
	}
	b.WriteByte('\n')
	o.send(b.Bytes())
}

// comment sends what browsers do not show.
func (o *stream) comment(text string) { o.send([]byte(": " + text + "\n\n")) }

func (o *stream) send(raw []byte) {
	if o.err != nil {
		return
	}
	// The server's limit is for a whole answer, and this one has no end.
	if err := o.ctl.SetWriteDeadline(o.clock.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		o.err = err
		return
	}
	if _, err := o.w.Write(raw); err != nil {
		o.err = err
		return
	}
	if err := o.ctl.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		o.err = err
	}
}
