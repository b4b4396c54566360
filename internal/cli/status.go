package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/up/containersrecord"
)

// versionTimeout is the maximum time to wait for the version of the hub.
const versionTimeout = 15 * time.Second

func (a commands) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "status",
		Short:             "Show the hub, its pools, clusters and claims",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              a.WithHub(a.runStatus),
	}
}

// statusReport is the output of status, for all namespaces.
type statusReport struct {
	URL      string         `json:"url"`
	Version  string         `json:"version"`
	Metrics  string         `json:"metrics,omitempty"`
	Console  string         `json:"console,omitempty"`
	Clusters map[string]int `json:"clusters"`
	Served   int            `json:"served"`
	Waiting  int            `json:"waiting"`
	Pools    []poolReport   `json:"pools"`
	// Containers is whether new local clusters run the containers of pods; nil unless the hub is a hotspare up on
	// this computer.
	Containers *bool `json:"containers,omitempty"`
	// ContainersObstacle is why they do not, and what to do about it.
	ContainersObstacle string `json:"containersObstacle,omitempty"`
}

type poolReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
	Plan      string `json:"plan,omitempty"`
	clusterstate.Tally
}

func (a commands) runStatus(ctx context.Context, h *base.Hub, _ []string) error {
	soon, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	version, err := h.FetchVersion(soon)
	if err != nil {
		return fmt.Errorf("reading the version of the hub at %s: %w", h.URL, err)
	}
	s, err := h.ReadSnapshot(ctx, "")
	if err != nil {
		return err
	}
	r := newStatusReport(s, a.Clock.Now())
	r.URL, r.Version, r.Metrics, r.Console = h.URL, version, a.ReadMetricsURL(), a.readConsoleURL()
	if containers, found := a.readContainersRecord(); found {
		r.Containers, r.ContainersObstacle = new(containers.Obstacle == ""), containers.Obstacle
	}
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(r)
	case base.AsName:
		return a.PrintNames(&s.Pools)
	default:
		return a.writeStatusReport(a.Stdout, r, s)
	}
}

// readContainersRecord returns what the hub has recorded about containers; false unless the hub is a hotspare up
// that has local clusters.
func (a commands) readContainersRecord() (containersrecord.Record, bool) {
	dir := a.HubDataDir()
	if dir == "" {
		return containersrecord.Record{}, false
	}
	return containersrecord.Read(dir)
}

func newStatusReport(s *base.HubSnapshot, now time.Time) statusReport {
	r := statusReport{Clusters: map[string]int{}, Pools: []poolReport{}}
	for i := range s.Clusters.Items {
		r.Clusters[clusterstate.OfCluster(&s.Clusters.Items[i])]++
	}
	for i := range s.Claims.Items {
		switch clusterstate.OfClaim(&s.Claims.Items[i]) {
		case clusterstate.Waiting:
			r.Waiting++
		case clusterstate.Releasing:
		default:
			r.Served++
		}
	}
	for i := range s.Pools.Items {
		p := &s.Pools.Items[i]
		r.Pools = append(r.Pools, poolReport{
			Namespace: p.Namespace, Name: p.Name, Size: p.Spec.Size, Plan: p.Status.Plan, Tally: s.SelectPool(p).CountMembers(p, now),
		})
	}
	return r
}

func (a commands) writeStatusReport(w io.Writer, r statusReport, s *base.HubSnapshot) error {
	top := base.NewTable()
	top.AddRow("Hub", fmt.Sprintf("%s, Kubernetes %s, reachable", r.URL, r.Version))
	if r.Metrics != "" {
		top.AddRow("Metrics", r.Metrics)
	}
	if r.Console != "" {
		top.AddRow("Console", r.Console+", open it with: "+a.FormatCommand("console"))
	}
	if r.Containers != nil {
		top.AddRow("Containers", containersrecord.Record{Obstacle: r.ContainersObstacle}.String())
	}
	top.AddRow("Clusters", r.describeClusters())
	top.AddRow("Claims", fmt.Sprintf("%d waiting, %d served", r.Waiting, r.Served))
	if err := top.WriteTo(w, nil); err != nil {
		return err
	}
	if len(r.Pools) == 0 {
		_, err := fmt.Fprintf(w, "\nNo pools yet. Create one with:\n  %s\n", a.FormatCommand("pool create dev --size 2"))
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return a.BuildPoolTable(s, true).WriteTo(w, a.PaletteFor(w))
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
