package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// versionTimeout is how long status waits for a hub to say which version it is.
const versionTimeout = 5 * time.Second

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "status",
		Short:             "Show the hub, its pools, clusters and claims",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              a.withHub(a.runStatus),
	}
}

// statusReport is what status tells, of all namespaces.
type statusReport struct {
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
	clusterstate.Tally
}

func (a *app) runStatus(ctx context.Context, h *hub, _ []string) error {
	soon, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	version, err := h.fetchVersion(soon)
	if err != nil {
		return fmt.Errorf("asking the hub at %s which version it is: %w", h.url, err)
	}
	s, err := h.readSnapshot(ctx, "")
	if err != nil {
		return err
	}
	r := newStatusReport(s, a.Clock.Now())
	r.URL, r.Version, r.Metrics, r.Console = h.url, version, a.readMetricsURL(), a.readConsoleURL()
	switch a.flags.output {
	case asJSON, asYAML:
		return a.printEncoded(r)
	case asName:
		return a.printNames(&s.pools)
	default:
		return a.writeStatusReport(a.Stdout, r, s)
	}
}

func newStatusReport(s *hubSnapshot, now time.Time) statusReport {
	r := statusReport{Clusters: map[string]int{}, Pools: []poolReport{}}
	for i := range s.clusters.Items {
		r.Clusters[clusterstate.OfCluster(&s.clusters.Items[i])]++
	}
	for i := range s.claims.Items {
		switch clusterstate.OfClaim(&s.claims.Items[i]) {
		case clusterstate.Waiting:
			r.Waiting++
		case clusterstate.Releasing:
		default:
			r.Served++
		}
	}
	for i := range s.pools.Items {
		p := &s.pools.Items[i]
		r.Pools = append(r.Pools, poolReport{
			Namespace: p.Namespace, Name: p.Name, Size: p.Spec.Size, Plan: p.Status.Plan, Tally: s.selectPool(p).countMembers(p, now),
		})
	}
	return r
}

func (a *app) writeStatusReport(w io.Writer, r statusReport, s *hubSnapshot) error {
	top := newTable()
	top.addRow("Hub", fmt.Sprintf("%s, Kubernetes %s, answers", r.URL, r.Version))
	if r.Metrics != "" {
		top.addRow("Metrics", r.Metrics)
	}
	if r.Console != "" {
		top.addRow("Console", r.Console+", opened by: "+a.formatCommand("console"))
	}
	top.addRow("Clusters", r.describeClusters())
	top.addRow("Claims", fmt.Sprintf("%d waiting, %d served", r.Waiting, r.Served))
	if err := top.writeTo(w, nil); err != nil {
		return err
	}
	if len(r.Pools) == 0 {
		_, err := fmt.Fprintf(w, "\nNo pools yet. Make one with:\n  %s\n", a.formatCommand("pool create dev --size 2"))
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return a.buildPoolTable(s, true).writeTo(w, a.paletteFor(w))
}

func (r statusReport) describeClusters() string {
	var parts []string
	for _, state := range clusterstate.ClusterStates {
		if n := r.Clusters[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(state)))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
