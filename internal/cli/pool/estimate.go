package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/pool/estimate"
	"hotspare.io/hotspare/internal/pool/facts"
)

const estimateLong = `Work out how large a pool should be: size, runningCount and limits, for claims that
come at some rate. It is taken that claims come at random, each by itself; if many come
together, say at nine in the morning, give the rate of that hour.

With a POOL, how long an install and a resume take is what its clusters took. Without,
no hub is needed, and --install and --resume say it. If you do not know how long a resume
takes, leave --resume out: then it is taken to be as long as an install, so that you get
the runningCount of a pool that does without stand-by clusters.`

// estimateOptions is what pool estimate is asked.
type estimateOptions struct {
	estimate.Demand
	atOnce, spare float64 // in percent
	// unknownResume is set when nobody says how long a resume takes.
	unknownResume bool
}

func (a commands) estimateCommand() *cobra.Command {
	q := &estimateOptions{}
	cmd := &cobra.Command{
		Use:   "estimate [POOL] --every TIME",
		Short: "Work out how large a pool should be for claims that come at some rate",
		Long:  estimateLong,
		Example: `  hotspare pool estimate --every 15m --install 40m
  hotspare pool estimate --every 15m --install 40m --resume 5m
  hotspare pool estimate dev --every 15m --at-once 95 --held 8h`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return base.RequireOneName("pool")(cmd, args)
		},
		ValidArgsFunction: a.CompletePools,
	}
	f := cmd.Flags()
	f.DurationVar(&q.Every, "every", 0, "mean time between two claims")
	f.DurationVar(&q.Install, "install", 0, "how long an install takes (default: what the clusters of POOL took)")
	f.DurationVar(&q.Resume, "resume", 0, "how long a resume takes (default: what the clusters of POOL took, else as long as an install)")
	f.DurationVar(&q.Destroy, "destroy", 0, "how long destroying a cluster takes")
	f.DurationVar(&q.Held, "held", 0, "how long a claim keeps its cluster, for maxSize (0: not known)")
	f.Float64Var(&q.atOnce, "at-once", 90, "percentage of claims that are to get a cluster that runs")
	f.Float64Var(&q.spare, "spare", 99, "percentage of claims that need not wait for an install")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.Every <= 0 {
			return base.UsageErrorFor(errors.New("say how often claims come: --every 15m is four an hour"), cmd)
		}
		if len(args) == 0 {
			if q.Install <= 0 || q.Resume < 0 {
				return base.UsageErrorFor(errors.New("say how long things take, by --install and, if you know it, --resume, or name a pool whose clusters tell"), cmd)
			}
			return a.runPoolEstimate(q)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			if err := a.measureDurations(ctx, h, args[0], q); err != nil {
				return err
			}
			return a.runPoolEstimate(q)
		})(cmd, args)
	}
	return cmd
}

// measureDurations takes from a pool's clusters what the flags do not say.
func (a commands) measureDurations(ctx context.Context, h *base.Hub, name string, q *estimateOptions) error {
	p, err := a.GetPool(ctx, h, name)
	if err != nil {
		return err
	}
	s, err := h.ReadSnapshot(ctx, h.Namespace)
	if err != nil {
		return err
	}
	var installs, resumes []time.Duration
	for i := range s.SelectPool(p).Clusters.Items {
		m := facts.ReadMember(&s.SelectPool(p).Clusters.Items[i], a.Clock.Now())
		if m.InstallTook > 0 {
			installs = append(installs, m.InstallTook)
		}
		if m.ResumeTook > 0 {
			resumes = append(resumes, m.ResumeTook)
		}
	}
	q.Install, q.Resume = cmp.Or(q.Install, medianDuration(installs)), cmp.Or(q.Resume, medianDuration(resumes))
	if q.Install == 0 {
		return fmt.Errorf("pool %s has no cluster yet that tells how long an install takes: say it by --install", name)
	}
	return nil
}

// medianDuration is the middle one of some; 0 of none.
func medianDuration(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (a commands) runPoolEstimate(q *estimateOptions) error {
	q.AtOnce, q.Spare = q.atOnce/100, q.spare/100
	if q.unknownResume = q.Resume == 0; q.unknownResume {
		q.Resume = q.Install
	}
	e, err := estimate.RecommendSize(q.Demand)
	switch {
	case errors.Is(err, estimate.ErrShare):
		return base.NewUsageError(errors.New("--at-once and --spare are percentages above 0 and below 100: nothing serves all claims at once, ever"))
	case errors.Is(err, estimate.ErrTime):
		return base.NewUsageError(errors.New("times are above 0"))
	case err != nil:
		return err
	}
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(e)
	case base.AsName:
		return base.NewUsageError(errors.New("an estimate has no name: leave out -o name"))
	default:
		return a.writeEstimate(a.Stdout, q, e)
	}
}

func (a commands) writeEstimate(w io.Writer, q *estimateOptions, e estimate.Recommendation) error {
	d := q.Demand
	about := base.NewTable()
	about.AddRow("Claims", fmt.Sprintf("one every %s", duration.HumanDuration(d.Every)))
	about.AddRow("Install", fmt.Sprintf("%s, in which %.3g claims come on average", duration.HumanDuration(d.Install), d.Install.Seconds()/d.Every.Seconds()))
	if q.unknownResume {
		about.AddRow("Resume", "not known: taken to be as long as an install; with --resume fewer have to run")
		about.AddRow("On average", fmt.Sprintf("runningCount %.0f just keeps up: claims within an install, rounded up", math.Ceil(d.Install.Seconds()/d.Every.Seconds())))
	} else {
		about.AddRow("Resume", fmt.Sprintf("%s, in which %.3g claims come on average", duration.HumanDuration(d.Resume), d.Resume.Seconds()/d.Every.Seconds()))
	}
	t := base.NewTable("SETTING", "AT LEAST", "WITH IT")
	t.AddRow("runningCount", base.FormatNumber(e.RunningCount), formatPercent(e.AtOnce)+" of the claims get a cluster at once")
	t.AddRow("size", base.FormatNumber(e.Size), formatPercent(e.Spare)+" of the claims wait for no install")
	t.AddRow("maxConcurrent", base.FormatNumber(e.MaxConcurrent), "99% of the time no install waits for another; no limit is as good")
	if e.MaxSize > 0 {
		t.AddRow("maxSize", base.FormatNumber(e.MaxSize), "99% of the time there is room, with claims that last "+duration.HumanDuration(d.Held))
	}
	return a.WriteSections(w, about, t)
}

// formatPercent rounds down: it promises.
func formatPercent(share float64) string { return fmt.Sprintf("%g%%", math.Floor(share*1000)/10) }
