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
	// maxScrapes is how many may go on at a time: each reads all pools.
	maxScrapes = 4
	// requestTimeout is how long a client may take to ask, and a shutdown to end.
	requestTimeout = 5 * time.Second
)

// NewHandler serves what the sources have. It asks nobody who they are: whoever
// serves it beyond one machine puts a guard before it, as hotspare-manager does. Where
// a part cannot be read, the rest is served.
func NewHandler(sources ...prometheus.Gatherer) http.Handler {
	h := promhttp.HandlerFor(prometheus.Gatherers(sources), promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		ErrorLog:            scrapeErrorLog{},
		MaxRequestsInFlight: maxScrapes,
	})
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, h)
	return mux
}

// NewServer serves h on l as a part of a manager.
func NewServer(l net.Listener, h http.Handler) *manager.Server {
	limit := requestTimeout
	return &manager.Server{
		Name:            "metrics",
		Listener:        l,
		Server:          &http.Server{Handler: h, ReadHeaderTimeout: requestTimeout},
		ShutdownTimeout: &limit,
	}
}

// scrapeErrorLog go to the log.
type scrapeErrorLog struct{}

// Println logs what went wrong with a scrape.
func (scrapeErrorLog) Println(v ...any) {
	log.Log.WithName("metrics").Info("a scrape was incomplete", "trouble", v)
}
