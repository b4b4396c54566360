// Package simulate contains the command that replays recorded claims on a pool, to compare settings.
package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/plot"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing"
)

type commands struct{ *base.App }

const long = `Replay recorded claims against a simulated pool, and print how long they wait and what the
clusters cost. The simulation runs the pool's own decider on a simulated clock: two years take
seconds. It changes nothing, and needs no hub to replay a trace.

With --from-hub it replays the claims that the hub has recorded of a pool with a PoolPolicy, with
the durations of resumes and installs that were measured there and the limits and depths of sleep
of the pool, unless you specify others. Policy auto is then that PoolPolicy, and its objective,
time zone and prices apply to all policies.

A trace is a CSV file. Its header names the columns: created is the time of each claim, and the
optional held_seconds is how long the claim kept its cluster.

Policies:
  auto             size the pool by what was seen so far, as a PoolPolicy does
  static:N         keep N clusters running
  schedule:FILE    a running count for hours of the week
  FILE.yaml        auto, with an objective, limits, a budget and a calendar

The command compares each policy with the best static setting and the best weekly schedule in
hindsight: the cheapest ones that serve the same share of the claims, chosen with knowledge of
the whole trace.

The policy learns from the first part of the trace (--train); results cover the rest.
docs/sizing.md describes the files.`

const example = `  hotspare simulate --trace claims.csv --resume 5m --install 40m
  hotspare simulate --trace claims.csv --policy auto --policy static:3 --prices running=1.2,hibernating=0.1
  hotspare simulate --from-hub ci --policy auto --policy static:3
  hotspare simulate --trace claims.csv --policy policy.yaml --plot running.svg -o json`

// options are the flags.
type options struct {
	trace, fromHub, resume, install, destroy, prices, from, to, zone, plot string
	sleep, resumeFreeze, resumeSuspend                                     string
	policies                                                               []string
	atOnce, train                                                          float64
	maxWait                                                                time.Duration
	maxSize, maxConcurrent                                                 int
	failedResumes, failedInstalls                                          float64
	seed                                                                   uint64
	exact, noHindsight                                                     bool
	// own is the policy that auto means; nil for one with the flags alone. ownPrices are its prices, used if prices is
	// empty.
	own       *policyFile
	ownPrices sizing.Prices
}

// NewCommand returns the command.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	q := &options{}
	cmd := &cobra.Command{
		Use: "simulate --trace FILE | --from-hub POOL", Short: "Replay recorded claims against a simulated pool, to compare settings",
		Long: long, Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&q.trace, "trace", "", "CSV file of claims, or - for standard input")
	f.StringVar(&q.fromHub, "from-hub", "", "replay the record that the hub has of this pool, instead of --trace")
	f.StringVar(&q.resume, "resume", "5m", "duration of a resume, or its median and 90th percentile: 5m,8m")
	f.StringVar(&q.sleep, "sleep", "", "depths at which spare clusters sleep, such as freeze:1,stop (default: stop)")
	f.StringVar(&q.resumeFreeze, "resume-freeze", "1s", "duration of a resume from depth freeze, as for --resume")
	f.StringVar(&q.resumeSuspend, "resume-suspend", "1m", "duration of a resume from depth suspend, as for --resume")
	f.StringVar(&q.install, "install", "40m", "duration of an install, or its median and 90th percentile")
	f.StringVar(&q.destroy, "destroy", "0s", "duration of the destruction of a cluster, for --max-size and --max-concurrent")
	f.StringArrayVar(&q.policies, "policy", []string{"auto"}, "auto, static:N, schedule:FILE or FILE.yaml; may be repeated")
	f.Float64Var(&q.atOnce, "at-once", 99, "percentage of claims that must not wait longer than --max-wait")
	f.DurationVar(&q.maxWait, "max-wait", 0, "how long these claims may wait for a running cluster (0: not at all)")
	f.StringVar(&q.prices, "prices", "", "prices of a cluster-hour, such as running=1.2,hibernating=0.1; frozen, suspended and stopped for clusters that hibernate at these depths")
	f.Float64Var(&q.train, "train", 0.25, "fraction of the trace that is used only for learning, from 0 to 0.95")
	f.StringVar(&q.from, "from", "", "time at which the results begin, such as 2026-03-01T00:00:00Z (instead of --train)")
	f.StringVar(&q.to, "to", "", "time at which the results end (default: end of the trace)")
	f.StringVar(&q.zone, "time-zone", "UTC", "time zone of the hours of the week, such as Europe/Berlin")
	f.IntVar(&q.maxSize, "max-size", -1, "maxSize of the pool (-1: no limit)")
	f.IntVar(&q.maxConcurrent, "max-concurrent", -1, "maxConcurrent of the pool (-1: no limit)")
	f.Float64Var(&q.failedResumes, "failed-resumes", 0, "percentage of resumes that hang")
	f.Float64Var(&q.failedInstalls, "failed-installs", 0, "percentage of installs that fail")
	f.Uint64Var(&q.seed, "seed", 1, "seed of random durations and failures")
	f.StringVar(&q.plot, "plot", "", "write a chart of the first policy to this .svg or .png file")
	f.BoolVar(&q.exact, "exact", false, "ask the pool's decider at each event, even where a faster way is equivalent")
	f.BoolVar(&q.noHindsight, "no-hindsight", false, "omit the best settings in hindsight")
	for _, name := range []string{"sleep", "resume", "resume-freeze", "resume-suspend", "install", "destroy", "prices", "from", "to", "time-zone"} {
		base.MustSucceed(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("from-hub", a.CompletePools))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case q.trace == "" && q.fromHub == "":
			return base.UsageErrorFor(errors.New("specify the recorded claims with --trace FILE.csv, or a pool of the hub with --from-hub POOL"), cmd)
		case q.trace != "" && q.fromHub != "":
			return base.UsageErrorFor(errors.New("--trace and --from-hub are two sources of claims: use one of them"), cmd)
		case q.fromHub != "":
			return a.runFromHub(cmd, q)
		}
		return a.run(q, func() (simulate.Trace, error) { return a.ReadTrace(q.trace) })
	}
	return cmd
}

// run replays the trace that read returns.
func (a commands) run(q *options, read func() (simulate.Trace, error)) error {
	if a.Flags.Output == base.AsName {
		return base.NewUsageError(errors.New("a simulation has no name: omit -o name"))
	}
	s, err := q.parse()
	if err != nil {
		return base.NewUsageError(err)
	}
	if s.trace, err = read(); err != nil {
		return err
	}
	if err := s.chooseSpan(q); err != nil {
		return base.NewUsageError(err)
	}
	s.progress = newProgress(a.App)
	s.options.Progress = s.progress.noteTime
	report, err := s.replay(q)
	s.progress.closeView()
	if err != nil {
		return err
	}
	if q.plot != "" {
		if err := writeChart(q.plot, s, report); err != nil {
			return err
		}
	}
	for _, n := range report.Notes {
		fmt.Fprintf(a.Stderr, "note: %s\n", n)
	}
	if a.Flags.Output != base.AsTable && a.Flags.Output != "" {
		return a.PrintEncoded(report)
	}
	return a.writeReport(a.Stdout, report)
}

// study is a parsed call of the command.
type study struct {
	trace   simulate.Trace
	options simulate.Options
	share   float64
	maxWait time.Duration
	zone    *time.Location
	priced  bool
	notes   []string
	// own is what auto means.
	own policyFile
	// progress is shown while the study takes long.
	progress *progress
}

func (o *options) parse() (*study, error) {
	s := &study{share: o.atOnce / 100, maxWait: o.maxWait, options: simulate.Options{Seed: o.seed, Exact: o.exact, Samples: chartSamples}}
	var err error
	if s.options.Resume, err = simulate.ParseDuration(o.resume); err != nil {
		return nil, fmt.Errorf("--resume %q is not a duration: %w", o.resume, err)
	}
	if err := o.parseSleep(s); err != nil {
		return nil, err
	}
	if s.options.Install, err = simulate.ParseDuration(o.install); err != nil {
		return nil, fmt.Errorf("--install %q is not a duration: %w", o.install, err)
	}
	if s.options.Destroy, err = time.ParseDuration(o.destroy); err != nil || s.options.Destroy < 0 {
		return nil, fmt.Errorf("--destroy %q is not a duration: write one such as 10m", o.destroy)
	}
	if err := o.checkNumbers(); err != nil {
		return nil, err
	}
	s.options.FailedResumes, s.options.FailedInstalls = o.failedResumes/100, o.failedInstalls/100
	if o.maxSize >= 0 {
		s.options.MaxSize = &o.maxSize
	}
	if o.maxConcurrent >= 0 {
		s.options.MaxConcurrent = &o.maxConcurrent
	}
	if s.zone, err = time.LoadLocation(o.zone); err != nil || o.zone == "Local" {
		return nil, fmt.Errorf("--time-zone %q is not a time zone: use a name from the IANA database, such as Europe/Berlin", o.zone)
	}
	if o.plot != "" {
		if _, err := plot.FormatOf(o.plot); err != nil {
			return nil, fmt.Errorf("--plot: %w", err)
		}
	}
	if s.options.Prices, s.priced, err = base.ParsePrices(o.prices); err != nil {
		return nil, err
	}
	s.useOwnPolicy(o)
	return s, nil
}

// useOwnPolicy makes the policy that was read from the hub the one that auto means.
func (s *study) useOwnPolicy(o *options) {
	if o.own == nil {
		return
	}
	s.own = *o.own
	s.notes = append(s.notes, "auto is the PoolPolicy of the pool; its objective, time zone and prices, and the limits and depths of sleep of the pool, "+
		"apply, except where a flag sets another value")
	if !s.priced && o.ownPrices.Running > 0 {
		s.options.Prices, s.priced = o.ownPrices, true
	}
}

// parseSleep parses the flags about depths of sleep.
func (o *options) parseSleep(s *study) error {
	var err error
	if s.options.Sleep, err = pool.ParseLadder(o.sleep); err != nil {
		return fmt.Errorf("--sleep %q is not a ladder of depths: %w", o.sleep, err)
	}
	s.options.ResumeFrom = map[string]simulate.Duration{}
	for _, f := range []struct{ flag, depth, text string }{
		{"--resume-freeze", pool.DepthFreeze, o.resumeFreeze}, {"--resume-suspend", pool.DepthSuspend, o.resumeSuspend},
	} {
		if s.options.ResumeFrom[f.depth], err = simulate.ParseDuration(f.text); err != nil {
			return fmt.Errorf("%s %q is not a duration: %w", f.flag, f.text, err)
		}
	}
	return nil
}

// checkNumbers checks the ranges of the flags that are numbers.
func (o *options) checkNumbers() error {
	switch {
	case !(o.atOnce > 0 && o.atOnce < 100): // also if it is no number
		return fmt.Errorf("--at-once %g is not above 0 and below 100: no pool can serve every claim at once; 99.9 is possible", o.atOnce)
	case o.maxWait < 0:
		return fmt.Errorf("--max-wait %s is negative: use 0 or more", o.maxWait)
	case !(o.train >= 0 && o.train <= 0.95):
		return fmt.Errorf("--train %g is not from 0 to 0.95: 0.25 learns from the first quarter of the time", o.train)
	case !(o.failedResumes >= 0 && o.failedResumes < 100 && o.failedInstalls >= 0 && o.failedInstalls < 100):
		return errors.New("--failed-resumes and --failed-installs must be percentages from 0 to below 100")
	case o.maxSize < -1 || o.maxConcurrent < -1:
		return errors.New("--max-size and --max-concurrent must be 0 or more, or -1 for no limit")
	}
	return nil
}

const chartSamples = 900

// chooseSpan sets the times between which the results are counted.
func (s *study) chooseSpan(q *options) error {
	begin, end := s.trace.Begin(), s.trace.End().Add(time.Second)
	s.options.From, s.options.To = begin.Add(time.Duration(q.train*float64(end.Sub(begin)))).Truncate(time.Second), end
	for _, l := range []struct {
		flag, text string
		at         *time.Time
	}{{"--from", q.from, &s.options.From}, {"--to", q.to, &s.options.To}} {
		if l.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, l.text)
		if err != nil {
			return fmt.Errorf("%s %q is not a time: write one such as 2026-03-01T00:00:00Z", l.flag, l.text)
		}
		*l.at = at.UTC()
	}
	if s.options.To.After(end.Add(maxAfterTrace)) {
		return fmt.Errorf("--to %s is more than %d days after the end of the trace, %s: use an earlier time", q.to, int(maxAfterTrace.Hours()/24), end.Format(time.RFC3339))
	}
	if !s.hasClaims(s.options.From, s.options.To) {
		return fmt.Errorf("no claim is between %s and %s: the trace begins at %s and ends at %s", s.options.From.Format(time.RFC3339),
			s.options.To.Format(time.RFC3339), begin.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	if len(s.trace.Claims) == 1 {
		s.options.From = begin
		s.notes = append(s.notes, "the trace has one claim: there is nothing to learn from")
	}
	return nil
}

// maxAfterTrace is how long after the last claim a simulation may end.
const maxAfterTrace = 366 * 24 * time.Hour

// hasClaims reports whether the trace has claims from one time to another.
func (s *study) hasClaims(from, to time.Time) bool {
	return slices.ContainsFunc(s.trace.Claims, func(c simulate.Claim) bool { return c.Arrived >= from.Unix() && c.Arrived < to.Unix() })
}

// writeChart writes a chart of the first policy.
func writeChart(path string, s *study, r Report) error {
	first := r.Policies[0]
	c := simulate.NewChart(first.Samples)
	c.Title = fmt.Sprintf("%s: clusters that run without a claim", first.Policy)
	c.Description = fmt.Sprintf("%d claims from %s to %s. %s of them got a running cluster at once. Clusters ran %.0f hours without a claim.",
		first.Claims, s.options.From.Format(time.DateOnly), s.options.To.Format(time.DateOnly), formatShare(first.Immediate), first.Hours.RunningIdle)
	c.Zone = s.zone
	return base.WriteChart(path, c)
}
