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
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/pool/sizeestimate"
)

const estimateLong = `Estimate the size, runningCount and limits of a pool for a given rate of claims. The
estimate assumes that claims arrive at random and independently. If many arrive together,
for example at nine in the morning, use the rate of that hour.

With a POOL, the durations of an install and a resume are measured from its clusters.
Without a POOL, no hub is needed: set them with --install and --resume. If you do not
know how long a resume takes, omit --resume: the estimate then uses the duration of an
install, which gives the runningCount of a pool without standby clusters.`

// estimateOptions are the flags of pool estimate.
type estimateOptions struct {
	sizeestimate.Demand
	atOnce, spare float64 // in percent
	// unknownResume is set when the duration of a resume is unknown.
	unknownResume bool
}

func (a commands) estimateCommand() *cobra.Command {
	q := &estimateOptions{}
	cmd := &cobra.Command{
		Use:   "estimate [POOL] --every TIME",
		Short: "Estimate the size of a pool for a rate of claims",
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
	f.DurationVar(&q.Install, "install", 0, "duration of an install (default: measured from the clusters of POOL)")
	f.DurationVar(&q.Resume, "resume", 0, "duration of a resume (default: measured from the clusters of POOL, else the duration of an install)")
	f.DurationVar(&q.Destroy, "destroy", 0, "duration of the destruction of a cluster")
	f.DurationVar(&q.Held, "held", 0, "how long a claim keeps its cluster, for maxSize (0: unknown)")
	f.Float64Var(&q.atOnce, "at-once", 90, "percentage of claims that must get a running cluster")
	f.Float64Var(&q.spare, "spare", 99, "percentage of claims that must not wait for an install")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.Every <= 0 {
			return base.UsageErrorFor(errors.New("specify how often claims arrive: --every 15m is four an hour"), cmd)
		}
		if len(args) == 0 {
			if q.Install <= 0 || q.Resume < 0 {
				return base.UsageErrorFor(errors.New("specify --install and, if you know it, --resume, or a pool to measure them from"), cmd)
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

// measureDurations measures the durations that the flags do not set from a pool's clusters.
func (a commands) measureDurations(ctx context.Context, h *base.Hub, name string, q *estimateOptions) error {
	p, err := a.GetPool(ctx, h, name)
	if err != nil {
		return err
	}
	s, err := h.ReadSnapshot(ctx, h.Namespace)
	if err != nil {
		return err
	}
	var members []pool.Member
	for i := range s.SelectPool(p).Clusters.Items {
		members = append(members, facts.ReadMember(&s.SelectPool(p).Clusters.Items[i], a.Clock.Now()))
	}
	install, resume := findMedians(members)
	q.Install, q.Resume = cmp.Or(q.Install, install), cmp.Or(q.Resume, resume)
	if q.Install == 0 {
		return fmt.Errorf("pool %s has no installed cluster yet to measure the duration of an install: specify --install", name)
	}
	return nil
}

// findMedians returns the median durations of installs and of resumes from depth stop, at which most clusters sleep; 0 if there is none.
func findMedians(members []pool.Member) (install, resume time.Duration) {
	var installs, resumes []time.Duration
	for _, m := range members {
		if m.InstallTook > 0 {
			installs = append(installs, m.InstallTook)
		}
		if m.ResumeTook > 0 && cmp.Or(m.ResumedFrom, pool.DepthStop) == pool.DepthStop {
			resumes = append(resumes, m.ResumeTook)
		}
	}
	return medianDuration(installs), medianDuration(resumes)
}

// medianDuration returns the median; 0 for an empty list.
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
	e, err := sizeestimate.RecommendSize(q.Demand)
	switch {
	case errors.Is(err, sizeestimate.ErrShare):
		return base.NewUsageError(errors.New("--at-once and --spare must be percentages above 0 and below 100: no pool can serve every claim at once"))
	case errors.Is(err, sizeestimate.ErrTime):
		return base.NewUsageError(errors.New("durations must be positive"))
	case err != nil:
		return err
	}
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(e)
	case base.AsName:
		return base.NewUsageError(errors.New("an estimate has no name: omit -o name"))
	default:
		return a.writeEstimate(a.Stdout, q, e)
	}
}

func (a commands) writeEstimate(w io.Writer, q *estimateOptions, e sizeestimate.Recommendation) error {
	d := q.Demand
	about := base.NewTable()
	about.AddRow("Claims", fmt.Sprintf("one every %s", duration.HumanDuration(d.Every)))
	about.AddRow("Install", fmt.Sprintf("%s, in which %.3g claims arrive on average", duration.HumanDuration(d.Install), d.Install.Seconds()/d.Every.Seconds()))
	if q.unknownResume {
		about.AddRow("Resume", "unknown: assumed to take as long as an install; set --resume to get a lower runningCount")
		about.AddRow("On average", fmt.Sprintf("runningCount %.0f just keeps up: the number of claims during an install, rounded up", math.Ceil(d.Install.Seconds()/d.Every.Seconds())))
	} else {
		about.AddRow("Resume", fmt.Sprintf("%s, in which %.3g claims arrive on average", duration.HumanDuration(d.Resume), d.Resume.Seconds()/d.Every.Seconds()))
	}
	t := base.NewTable("SETTING", "AT LEAST", "WITH IT")
	t.AddRow("runningCount", base.FormatNumber(e.RunningCount), formatPercent(e.AtOnce)+" of the claims get a cluster at once")
	t.AddRow("size", base.FormatNumber(e.Size), formatPercent(e.Spare)+" of the claims do not wait for an install")
	t.AddRow("maxConcurrent", base.FormatNumber(e.MaxConcurrent), "99% of the time no install waits for another; no limit works as well")
	if e.MaxSize > 0 {
		t.AddRow("maxSize", base.FormatNumber(e.MaxSize), "99% of the time there is room, if claims last "+duration.HumanDuration(d.Held))
	}
	return a.WriteSections(w, about, t)
}

// formatPercent rounds down, so that the estimate does not promise too much.
func formatPercent(share float64) string { return fmt.Sprintf("%g%%", math.Floor(share*1000)/10) }
