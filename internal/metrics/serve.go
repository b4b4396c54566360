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

// Path is the URL path at which metrics are served.
const Path = "/metrics"

const (
	// maxScrapes is the maximum number of concurrent scrapes: each one reads all pools.
	maxScrapes = 4
	// requestTimeout limits how long a client may take to send a request, and how long a shutdown
	// may take.
	requestTimeout = 5 * time.Second
)

// NewHandler serves the metrics of sources. It does not authenticate clients: a server that is
// reachable from other machines must do so, as hotspare-manager does. If a part cannot be read, the
// rest is served.
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

// NewServer returns a manager runnable that serves h on l.
func NewServer(l net.Listener, h http.Handler) *manager.Server {
	limit := requestTimeout
	return &manager.Server{
		Name:            "metrics",
		Listener:        l,
		Server:          &http.Server{Handler: h, ReadHeaderTimeout: requestTimeout},
		ShutdownTimeout: &limit,
	}
}

// scrapeErrorLog writes scrape errors to the log.
type scrapeErrorLog struct{}

// Println logs a scrape error.
func (scrapeErrorLog) Println(v ...any) {
	log.Log.WithName("metrics").Info("scrape was incomplete", "error", v)
}
