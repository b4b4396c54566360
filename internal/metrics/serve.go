package metrics

import (
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Path is where metrics are served.
const Path = "/metrics"

const (
	// scrapes is how many may go on at a time: each reads all pools.
	scrapes = 4
	// patience is how long a client may take to ask, and a shutdown to end.
	patience = 5 * time.Second
)

// Handler serves what the sources have. It asks nobody who they are: whoever
// serves it beyond one machine puts a guard before it, as hotspare-manager does. Where
// a part cannot be read, the rest is served.
func Handler(sources ...prometheus.Gatherer) http.Handler {
	h := promhttp.HandlerFor(prometheus.Gatherers(sources), promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		ErrorLog:            complaints{},
		MaxRequestsInFlight: scrapes,
	})
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, h)
	return mux
}

// Server serves h on l as a part of a manager.
func Server(l net.Listener, h http.Handler) *manager.Server {
	limit := patience
	return &manager.Server{
		Name:            "metrics",
		Listener:        l,
		Server:          &http.Server{Handler: h, ReadHeaderTimeout: patience},
		ShutdownTimeout: &limit,
	}
}

// complaints go to the log.
type complaints struct{}

// Println logs what went wrong with a scrape.
func (complaints) Println(v ...any) {
	log.Log.WithName("metrics").Info("a scrape was incomplete", "trouble", v)
}
