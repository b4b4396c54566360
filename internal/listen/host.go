package listen

import (
	"net"
	"net/http"
	"strings"
)

// IsLocalHost reports whether the host of a request, with or without a port, is a name of this
// computer that another party cannot redirect, as in DNS rebinding.
func IsLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// RequireLocalHost returns a handler that serves requests for names of this computer and rejects
// others.
func RequireLocalHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsLocalHost(r.Host) {
			http.Error(w, "This server does not serve that host name: use localhost or a loopback address.", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}
