package console

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hotspare.io/hotspare/internal/loopback"
)

// policy lets pages load what this server serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guard keeps out what no page of ours asks for, and tells browsers to do so.
func (s *Server) guard(h http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.problem(w, r, nil, problem{
			Status: http.StatusForbidden, Title: "Another site sent this",
			Why:    "The request came from a page of another site, and nothing was done.",
			Remedy: "Do it from the console's own page.",
		})
	}))
	inner := cross.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		if s.Secure {
			head.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !s.serves(r.Host) {
			// A name that somebody else can point at this computer, as in DNS rebinding.
			http.Error(w, "This console is not served at "+name(r.Host)+
				". Use the address that hotspare console prints; of hotspare-manager, name this one with --console-host.", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		inner.ServeHTTP(w, r)
	})
}

// serves reports whether browsers may reach the console by a name.
func (s *Server) serves(host string) bool {
	n := name(host)
	return loopback.IsLocalHost(host) || slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.EqualFold(h, n) })
}

// name is a host without its port.
func name(host string) string {
	if n, _, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(n)
	}
	return strings.ToLower(host)
}

// How often one address may fail to sign in: so many times at once, then once in pause.
const (
	tries = 10
	pause = 6 * time.Second
	// mostFailing bounds the memory of addresses.
	mostFailing = 4096
)

// failures slows down who guesses tokens.
type failures struct {
	mu sync.Mutex
	of map[string]*failing
}

type failing struct {
	n    int
	from time.Time
}

// wait is how long somebody has to wait before the next try; 0: not at all.
func (f *failures) wait(who string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of[who]
	if one == nil {
		return 0
	}
	one.cool(now)
	if one.n < tries {
		return 0
	}
	return one.from.Add(pause).Sub(now)
}

// add counts a failure.
func (f *failures) add(who string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string]*failing{}
	}
	one := f.of[who]
	if one == nil {
		if len(f.of) >= mostFailing {
			clear(f.of)
		}
		one = &failing{from: now}
		f.of[who] = one
	}
	one.cool(now)
	one.n++
}

// cool forgets a failure for each pause that has gone by.
func (f *failing) cool(now time.Time) {
	gone := int(now.Sub(f.from) / pause)
	if gone <= 0 {
		return
	}
	f.n = max(0, f.n-gone)
	f.from = f.from.Add(time.Duration(gone) * pause)
}

// forget forgets those that have not failed for long.
func (f *failures) forget(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for who, one := range f.of {
		if one.cool(now); one.n == 0 {
			delete(f.of, who)
		}
	}
}
