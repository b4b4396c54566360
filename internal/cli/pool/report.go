package pool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/poolcharts"
	"hotspare.io/hotspare/internal/plot"
	"hotspare.io/hotspare/internal/pool/demandfacts"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/policy"
	"hotspare.io/hotspare/internal/sizing/record"
	"hotspare.io/hotspare/internal/sizing/report"
)

const reportLong = `Show how the claims on pools were served, what their unclaimed clusters cost, and how well the
demand was predicted.

The numbers are from the record of claims, which the hub keeps of each pool that has a
PoolPolicy: claims of two years, everything else of eight days. Without a PoolPolicy the report
has the claims and clusters that exist now. Costs need prices: those of --prices, or of the
PoolPolicy, or else those that hotspare has estimated, which the report says.`

const reportExample = `  hotspare pool report
  hotspare pool report ci --since 1d
  hotspare pool report ci --prices running=1.2,hibernating=0.1 -o json
  hotspare pool report ci --plot ci.png`

// reportOptions are the flags of pool report.
type reportOptions struct {
	since, prices, plot string
	everywhere          bool

	span   time.Duration
	priced sizing.Prices
}

func (a commands) reportCommand() *cobra.Command {
	q := &reportOptions{}
	cmd := &cobra.Command{
		Use: "report [POOL]", Short: "Show how claims were served, and what pools cost",
		Long: reportLong, Example: reportExample, ValidArgsFunction: a.CompletePools,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return base.RequireOneName("pool")(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.since, "since", "7d", "how far the report goes back, such as 7d or 12h")
	f.StringVar(&q.prices, "prices", "", "prices of a cluster-hour, such as running=1.2,hibernating=0.1,frozen=0.4 (default: those of the PoolPolicy, set or estimated)")
	f.StringVar(&q.plot, "plot", "", "write charts of the pool to this .svg or .png file")
	base.AddAllNamespacesFlag(cmd, &q.everywhere)
	for _, name := range []string{"since", "prices"} {
		base.MustSucceed(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.checkReport(q, args); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error { return a.runReport(ctx, h, q, args) })(cmd, args)
	}
	return cmd
}

// checkReport parses the flags.
func (a commands) checkReport(q *reportOptions, args []string) (err error) {
	if a.Flags.Output == base.AsName {
		return errors.New("a report has no name: omit -o name")
	}
	if q.span, err = parseSince(q.since); err != nil {
		return err
	}
	if q.priced, _, err = base.ParsePrices(q.prices); err != nil {
		return err
	}
	if q.plot == "" {
		return nil
	}
	if len(args) == 0 {
		return errors.New("--plot draws one pool: name it, as in pool report POOL --plot FILE.svg")
	}
	if _, err := plot.FormatOf(q.plot); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}

// parseSince parses a duration, or a number of days such as 7d.
func parseSince(text string) (time.Duration, error) {
	span, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		span = time.Duration(min(max(n, -1), 10_000) * float64(24*time.Hour))
	}
	const most = 731 * 24 * time.Hour
	if err != nil || span < record.QuarterLength || span > most {
		return 0, fmt.Errorf("--since %q is not a duration from 15m to 731d: write one such as 7d or 12h", text)
	}
	return span, nil
}

// PoolReport is the output for programs. Fields may be added, but never changed or removed.
type PoolReport struct {
	Namespace string `json:"namespace"`
	Pool      string `json:"pool"`
	// Source is record, or objects if the hub has no record of the pool.
	Source string `json:"source"`
	report.Report
	// Month is nil without a record.
	Month *report.Month `json:"month,omitempty"`
	// EstimatedPrices are set if the costs are computed from them.
	EstimatedPrices *v1alpha1.EstimatedPrices `json:"estimatedPrices,omitempty"`
	// Now has the clusters that exist now by state, Waiting the claims that wait for one.
	Now     map[string]int `json:"now"`
	Waiting int            `json:"waiting"`
	// Missing says what the report lacks, and how to get it.
	Missing []string `json:"missing"`

	record *record.Record
	zone   *time.Location
	// noEstimate says why hotspare has not estimated prices; empty if it has, or has not tried to.
	noEstimate string
}

// ReportList is the output for programs.
type ReportList struct {
	Pools []*PoolReport `json:"pools"`
}

func (a commands) runReport(ctx context.Context, h *base.Hub, q *reportOptions, args []string) error {
	namespace := base.ListNamespace(h, q.everywhere)
	var pools []hivev1.ClusterPool
	if len(args) == 1 {
		p, err := a.GetPool(ctx, h, args[0])
		if err != nil {
			return err
		}
		pools, namespace = []hivev1.ClusterPool{*p}, p.Namespace
	}
	s, err := h.ReadSnapshot(ctx, namespace)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		pools = s.Pools.Items
	}
	list := ReportList{Pools: []*PoolReport{}}
	for i := range pools {
		r, err := a.newReport(ctx, h, q, &pools[i], s)
		if err != nil {
			return err
		}
		list.Pools = append(list.Pools, r)
	}
	if q.plot != "" {
		if err := a.plotReport(q, list.Pools[0]); err != nil {
			return err
		}
	}
	if a.Flags.Output != base.AsTable && a.Flags.Output != "" {
		return a.PrintEncoded(list)
	}
	if len(list.Pools) == 0 {
		return a.ReportEmptyList("pools", h, q.everywhere, "pool create dev --size 2")
	}
	return a.writeReports(a.Stdout, list)
}

// newReport reads what the hub knows of a pool.
func (a commands) newReport(ctx context.Context, h *base.Hub, q *reportOptions, p *hivev1.ClusterPool, s *base.HubSnapshot) (*PoolReport, error) {
	now := a.Clock.Now()
	key := client.ObjectKeyFromObject(p)
	objects := demandfacts.NewObjects(key, s.Clusters.Items, s.Claims.Items, now)
	out := &PoolReport{
		Namespace: p.Namespace, Pool: p.Name, Source: "record", Now: countStates(objects), Waiting: objects.Waiting, Missing: []string{}, zone: time.UTC,
	}
	o := report.Options{From: now.Add(-q.span), To: now, Prices: q.priced}
	hasPolicy, err := a.readReportPolicy(ctx, h, out, &o)
	if err != nil {
		return nil, err
	}
	out.record, err = base.ReadRecord(ctx, h, key, now)
	switch {
	case errors.Is(err, base.ErrNoRecord):
		out.Source, out.EstimatedPrices = "objects", nil // it has no costs
		out.Report = report.FromObjects(objects, o.From)
		out.Missing = append(out.Missing, a.describeNoRecord(p.Name, hasPolicy))
		return out, nil
	case err != nil:
		return nil, err
	}
	out.Report = report.New(out.record, o)
	month := report.NewMonth(&out.record.Details, o.Prices, now)
	out.Month = &month
	if o.Prices == (sizing.Prices{}) {
		out.Missing = append(out.Missing, out.describeNoPrices())
	}
	if kept := now.Add(-record.KeptSpan); out.From.Before(kept) {
		out.Missing = append(out.Missing, "waits, cluster-hours and forecasts before "+kept.UTC().Format(time.DateOnly)+": they are kept for eight days")
	}
	if out.ComputedHours == 0 {
		out.Missing = append(out.Missing, "computed counts: they need a week and 20 claims, and the time that a resume and an install take;"+
			" until then your own setting is recommended")
	}
	return out, nil
}

// describeNoPrices says that costs are missing, and why hotspare has not estimated prices if it has tried to.
func (r *PoolReport) describeNoPrices() string {
	text := "costs: set spec.prices of the PoolPolicy, or use --prices running=1.2,hibernating=0.1"
	if r.noEstimate != "" {
		text += "; " + r.noEstimate
	}
	return text
}

func (a commands) describeNoRecord(pool string, hasPolicy bool) string {
	if hasPolicy {
		return "the record: the PoolPolicy has recorded nothing yet; repeat the command in a few minutes, and check condition RecordUsable of the PoolPolicy"
	}
	return fmt.Sprintf("the record, with cluster-hours, costs and deleted claims: create a PoolPolicy %s with an empty spec,"+
		" which changes nothing, and repeat the command in a few days", pool)
}

// readReportPolicy sets what the policy of a pool says, and reports whether there is one. Prices of flags take
// precedence.
func (a commands) readReportPolicy(ctx context.Context, h *base.Hub, r *PoolReport, o *report.Options) (bool, error) {
	var p v1alpha1.PoolPolicy
	err := h.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Pool}, &p)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the PoolPolicy of pool %s: %w", r.Pool, err)
	case p.Unreadable != "":
		return true, nil
	}
	parsed, faults := policy.Parse(p.Spec, policy.HubDefaults.WithEstimate(p.Status.EstimatedPrices))
	if len(faults) > 0 {
		r.Missing = append(r.Missing, "the objective and the prices of the PoolPolicy: spec."+faults[0].Error())
		return true, nil
	}
	r.zone, o.Promised = parsed.Zone, parsed.Objective.Share
	if o.Prices != (sizing.Prices{}) {
		return true, nil
	}
	o.Prices = parsed.Limits.Prices
	switch {
	case parsed.HasEstimatedPrices():
		r.EstimatedPrices = parsed.Estimate
	case parsed.Estimate != nil:
		r.noEstimate = parsed.Estimate.Basis
	}
	return true, nil
}

func countStates(o record.Objects) map[string]int {
	out := map[string]int{}
	for s := record.State(0); s < record.States; s++ {
		out[s.String()] = 0
	}
	for _, c := range o.Clusters {
		out[c.State.String()]++
	}
	return out
}

// plotStep returns the time of one step of a chart: a quarter of an hour, an hour or days, so that a chart shows the whole
// time in at most some hundred steps.
func plotStep(span time.Duration) time.Duration {
	const most = 800
	switch {
	case span <= 36*time.Hour:
		return record.QuarterLength
	case span <= most*time.Hour:
		return time.Hour
	default:
		day := 24 * time.Hour
		return max(1, (span+most*day-1)/(most*day)) * day
	}
}

// plotReport writes the charts of a pool.
func (a commands) plotReport(q *reportOptions, r *PoolReport) error {
	if r.record == nil {
		return fmt.Errorf("there is nothing to draw: %s", strings.Join(r.Missing, "; "))
	}
	step := plotStep(r.To.Sub(r.From))
	points := report.NewPoints(r.record, r.From, r.To, step, r.zone)
	c := plot.Chart{Title: "Pool " + r.Namespace + "/" + r.Pool, Axis: plot.Axis{Step: step, Steps: len(points), Zone: r.zone}}
	if len(points) > 0 {
		c.Begin = points[0].At
	}
	var words []string
	for _, one := range poolcharts.New(points, r.zone) {
		c.Panels = append(c.Panels, one.Panel)
		words = append(words, one.Title+": "+one.Summary)
	}
	c.Description = strings.Join(words, " ")
	return base.WriteChart(q.plot, c)
}
