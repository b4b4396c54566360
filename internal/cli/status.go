package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/standing"
)

// patience is how long status waits for a hub to say which version it is.
const patience = 5 * time.Second

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "status",
		Short:             "Show the hub, its pools, clusters and claims",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              a.on(a.status),
	}
}

// report is what status tells, of all namespaces.
type report struct {
	URL      string         `json:"url"`
	Version  string         `json:"version"`
	Metrics  string         `json:"metrics,omitempty"`
	Console  string         `json:"console,omitempty"`
	Clusters map[string]int `json:"clusters"`
	Served   int            `json:"served"`
	Waiting  int            `json:"waiting"`
	Pools    []poolReport   `json:"pools"`
}

type poolReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
	Plan      string `json:"plan,omitempty"`
	standing.Tally
}

func (a *app) status(ctx context.Context, h *hub, _ []string) error {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	version, err := h.version(soon)
	if err != nil {
		return fmt.Errorf("asking the hub at %s which version it is: %w", h.url, err)
	}
	s, err := h.see(ctx, "")
	if err != nil {
		return err
	}
	r := newReport(s, a.Clock.Now())
	r.URL, r.Version, r.Metrics, r.Console = h.url, version, a.metricsURL(), a.consoleURL()
	switch a.flags.output {
	case asJSON, asYAML:
		return a.encode(r)
	case asName:
		return a.names(&s.pools)
	default:
		return a.writeReport(a.Stdout, r, s)
	}
}

func newReport(s *scene, now time.Time) report {
	r := report{Clusters: map[string]int{}, Pools: []poolReport{}}
	for i := range s.clusters.Items {
		r.Clusters[standing.Cluster(&s.clusters.Items[i])]++
	}
	for i := range s.claims.Items {
		switch standing.Claim(&s.claims.Items[i]) {
		case standing.Waiting:
			r.Waiting++
		case standing.Releasing:
		default:
			r.Served++
		}
	}
	for i := range s.pools.Items {
		p := &s.pools.Items[i]
		r.Pools = append(r.Pools, poolReport{
			Namespace: p.Namespace, Name: p.Name, Size: p.Spec.Size, Plan: p.Status.Plan, Tally: s.of(p).tally(p, now),
		})
	}
	return r
}

func (a *app) writeReport(w io.Writer, r report, s *scene) error {
	top := newTable()
	top.add("Hub", fmt.Sprintf("%s, Kubernetes %s, answers", r.URL, r.Version))
	if r.Metrics != "" {
		top.add("Metrics", r.Metrics)
	}
	if r.Console != "" {
		top.add("Console", r.Console+", opened by: "+a.next("console"))
	}
	top.add("Clusters", r.clustersInWords())
	top.add("Claims", fmt.Sprintf("%d waiting, %d served", r.Waiting, r.Served))
	if err := top.write(w, nil); err != nil {
		return err
	}
	if len(r.Pools) == 0 {
		_, err := fmt.Fprintf(w, "\nNo pools yet. Make one with:\n  %s\n", a.next("pool create dev --size 2"))
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return a.poolTable(s, true).write(w, a.palette(w))
}

func (r report) clustersInWords() string {
	var parts []string
	for _, state := range standing.ClusterStates {
		if n := r.Clusters[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(state)))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
