package console

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hotspare.io/hotspare/internal/listen"
)

// contentSecurityPolicy allows pages to load files of this server only.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guardRequests rejects cross-origin requests and unknown hosts, and sets the security headers of
// responses.
func (s *Server) guardRequests(h http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serveProblem(w, r, nil, errorPage{
			Status: http.StatusForbidden, Title: "Request from another site",
			Message: "The request came from a page of another site. hotspare ignored it.",
			Remedy:  "Repeat the action on the console's own page.",
		})
	}))
	inner := cross.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", contentSecurityPolicy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		if s.Secure {
			head.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !s.isAllowedHost(r.Host) {
			// Another party can make a name of theirs resolve to this computer, as in DNS
			// rebinding.
			http.Error(w, "This console is not served at "+hostWithoutPort(r.Host)+
				". Use the address that hotspare console prints. If hotspare-manager serves the console, allow this host with --console-host.", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		inner.ServeHTTP(w, r)
	})
}

// isAllowedHost reports whether the console serves requests for a host name.
func (s *Server) isAllowedHost(host string) bool {
	n := hostWithoutPort(host)
	return listen.IsLocalHost(host) || slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.EqualFold(h, n) })
}

// hostWithoutPort returns a host in lower case without its port.
func hostWithoutPort(host string) string {
	if n, _, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(n)
	}
	return strings.ToLower(host)
}

// maxTokenChecks is how many tokens the hub checks for the console at the same time.
const maxTokenChecks = 8

// The limits of failed sign-ins from one address: maxFailures in a row are answered at once, then one for each
// failureDecay.
const (
	maxFailures  = 10
	failureDecay = 6 * time.Second
	// maxTrackedAddresses bounds the memory for addresses.
	maxTrackedAddresses = 4096
)

// failures counts failed sign-ins by address, to slow down attempts to guess a token.
type failures struct {
	mu        sync.Mutex
	byAddress map[string]*failureCount
}

type failureCount struct {
	n    int
	from time.Time
}

// recordFailure counts a failed attempt, and returns how long its answer must wait; 0 if it need not wait.
func (f *failures) recordFailure(who string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byAddress == nil {
		f.byAddress = map[string]*failureCount{}
	}
	one := f.byAddress[who]
	if one == nil {
		if len(f.byAddress) >= maxTrackedAddresses {
			clear(f.byAddress)
		}
		one = &failureCount{from: now}
		f.byAddress[who] = one
	}
	one.decayFailures(now)
	if one.n = min(one.n+1, maxFailures+1); one.n <= maxFailures {
		return 0
	}
	return one.from.Add(failureDecay).Sub(now)
}

// decayFailures removes one failure for each failureDecay that has passed.
func (f *failureCount) decayFailures(now time.Time) {
	intervals := int(now.Sub(f.from) / failureDecay)
	if intervals <= 0 {
		return
	}
	f.n = max(0, f.n-intervals)
	f.from = f.from.Add(time.Duration(intervals) * failureDecay)
}

// removeDecayed drops the addresses that have no failures left.
func (f *failures) removeDecayed(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for who, one := range f.byAddress {
		if one.decayFailures(now); one.n == 0 {
			delete(f.byAddress, who)
		}
	}
}
