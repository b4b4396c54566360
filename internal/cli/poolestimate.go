package cli

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

func (a *app) poolEstimateCommand() *cobra.Command {
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
			return requireOneName("pool")(cmd, args)
		},
		ValidArgsFunction: a.completePools,
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
			return usageErrorFor(errors.New("say how often claims come: --every 15m is four an hour"), cmd)
		}
		if len(args) == 0 {
			if q.Install <= 0 || q.Resume < 0 {
				return usageErrorFor(errors.New("say how long things take, by --install and, if you know it, --resume, or name a pool whose clusters tell"), cmd)
			}
			return a.runPoolEstimate(q)
		}
		return a.withHub(func(ctx context.Context, h *hub, args []string) error {
			if err := a.measureDurations(ctx, h, args[0], q); err != nil {
				return err
			}
			return a.runPoolEstimate(q)
		})(cmd, args)
	}
	return cmd
}

// measureDurations takes from a pool's clusters what the flags do not say.
func (a *app) measureDurations(ctx context.Context, h *hub, name string, q *estimateOptions) error {
	p, err := a.getPool(ctx, h, name)
	if err != nil {
		return err
	}
	s, err := h.readSnapshot(ctx, h.namespace)
	if err != nil {
		return err
	}
	var installs, resumes []time.Duration
	for i := range s.selectPool(p).clusters.Items {
		m := facts.ReadMember(&s.selectPool(p).clusters.Items[i], a.Clock.Now())
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

func (a *app) runPoolEstimate(q *estimateOptions) error {
	q.AtOnce, q.Spare = q.atOnce/100, q.spare/100
	if q.unknownResume = q.Resume == 0; q.unknownResume {
		q.Resume = q.Install
	}
	e, err := estimate.RecommendSize(q.Demand)
	switch {
	case errors.Is(err, estimate.ErrShare):
		return NewUsageError(errors.New("--at-once and --spare are percentages above 0 and below 100: nothing serves all claims at once, ever"))
	case errors.Is(err, estimate.ErrTime):
		return NewUsageError(errors.New("times are above 0"))
	case err != nil:
		return err
	}
	switch a.flags.output {
	case asJSON, asYAML:
		return a.printEncoded(e)
	case asName:
		return NewUsageError(errors.New("an estimate has no name: leave out -o name"))
	default:
		return a.writeEstimate(a.Stdout, q, e)
	}
}

func (a *app) writeEstimate(w io.Writer, q *estimateOptions, e estimate.Recommendation) error {
	d := q.Demand
	about := newTable()
	about.addRow("Claims", fmt.Sprintf("one every %s", duration.HumanDuration(d.Every)))
	about.addRow("Install", fmt.Sprintf("%s, in which %.3g claims come on average", duration.HumanDuration(d.Install), d.Install.Seconds()/d.Every.Seconds()))
	if q.unknownResume {
		about.addRow("Resume", "not known: taken to be as long as an install; with --resume fewer have to run")
		about.addRow("On average", fmt.Sprintf("runningCount %.0f just keeps up: claims within an install, rounded up", math.Ceil(d.Install.Seconds()/d.Every.Seconds())))
	} else {
		about.addRow("Resume", fmt.Sprintf("%s, in which %.3g claims come on average", duration.HumanDuration(d.Resume), d.Resume.Seconds()/d.Every.Seconds()))
	}
	t := newTable("SETTING", "AT LEAST", "WITH IT")
	t.addRow("runningCount", formatNumber(e.RunningCount), formatPercent(e.AtOnce)+" of the claims get a cluster at once")
	t.addRow("size", formatNumber(e.Size), formatPercent(e.Spare)+" of the claims wait for no install")
	t.addRow("maxConcurrent", formatNumber(e.MaxConcurrent), "99% of the time no install waits for another; no limit is as good")
	if e.MaxSize > 0 {
		t.addRow("maxSize", formatNumber(e.MaxSize), "99% of the time there is room, with claims that last "+duration.HumanDuration(d.Held))
	}
	return a.writeSections(w, about, t)
}

// formatPercent rounds down: it promises.
func formatPercent(share float64) string { return fmt.Sprintf("%g%%", math.Floor(share*1000)/10) }
