package simulate

import (
	"math"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/sizing"
)

// Options are the conditions of a simulation.
type Options struct {
	// Resume and Install are how long clusters take; both are at least a second.
	Resume, Install Duration
	// Sleep is the ladder of depths at which spare clusters sleep; empty for stop alone. ResumeFrom has the durations of
	// resumes from other depths than stop.
	Sleep      pool.Ladder
	ResumeFrom map[string]Duration
	// Destroy is how long a cluster takes to be destroyed.
	Destroy time.Duration
	// MaxSize and MaxConcurrent are the pool's limits; nil means no limit.
	MaxSize, MaxConcurrent *int
	// FailedResumes and FailedInstalls are the shares of resumes and installs that fail.
	FailedResumes, FailedInstalls float64
	Prices                        sizing.Prices
	// From is when counting begins: what happens before is only learned from. To is when it ends.
	From, To time.Time
	// Seed determines all random durations and failures.
	Seed uint64
	// Samples is the number of points in time at which the state is recorded for a chart.
	Samples int
	// Exact makes ReplayAny ask the pool's own decider even where the fast way is equivalent.
	Exact bool
	// Progress, if not nil, is called with the time to which a replay has come, once for each of its minutes.
	Progress func(at time.Time)
}

// Durations returns the durations that a policy computes counts from. Those of shallow depths are known if clusters
// may sleep there.
func (o Options) Durations() sizing.Durations {
	d := sizing.Durations{Resume: o.Resume.P90(), Install: o.Install.P90()}
	for _, rung := range o.Sleep {
		if wake := d.Shallow.Of(cloud.Depth(rung.Depth)); wake != nil {
			*wake = o.resumeFrom(rung.Depth).P90()
		}
	}
	return d
}

// resumeFrom returns how long a resume from a depth takes.
func (o Options) resumeFrom(depth string) Duration {
	if d, ok := o.ResumeFrom[depth]; ok {
		return d
	}
	return o.Resume
}

// A Result is what a simulation has counted between From and To.
type Result struct {
	Claims int `json:"claims"`
	// Immediate is the share of claims that got a running cluster at once.
	Immediate float64 `json:"immediate"`
	// Within is the share that waited at most the objective's maxWait.
	Within float64 `json:"within"`
	Waits  Waits   `json:"waits"`
	// Unserved is the number of these claims that had no cluster 30 days after the end. They are not in Waits.
	Unserved int   `json:"unserved"`
	Hours    Hours `json:"hours"`
	// Resumes, Hibernations and Installs are counts of what was begun.
	Resumes      int `json:"resumes"`
	Hibernations int `json:"hibernations"`
	Installs     int `json:"installs"`
	// Cost is that of the unclaimed clusters at the given prices.
	Cost float64 `json:"cost"`
	// Samples are for a chart.
	Samples []Sample `json:"-"`
}

// Waits are quantiles of the times between a claim and its cluster, in seconds.
type Waits struct {
	P50 float64 `json:"p50Seconds"`
	P90 float64 `json:"p90Seconds"`
	P99 float64 `json:"p99Seconds"`
	Max float64 `json:"maxSeconds"`
}

// Hours are cluster-hours of unclaimed clusters.
type Hours struct {
	// RunningIdle is the time of clusters that run without a claim.
	RunningIdle float64 `json:"runningIdle"`
	Resuming    float64 `json:"resuming"`
	Hibernating float64 `json:"hibernating"`
	Installing  float64 `json:"installing"`
	// Shallow are the hours of Hibernating at shallow depths of sleep.
	Shallow sizing.PerShallowDepth[float64] `json:"shallow,omitzero"`
}

// A Sample is the state at a moment.
type Sample struct {
	At       time.Time
	Running  int
	Resuming int
	Wanted   int
	// Claims is the number of claims from At to the next sample, Waited that of those that got no running cluster at once.
	Claims, Waited int
}

// recorder counts what happens between From and To.
type recorder struct {
	Options
	from, to, last int64
	state          census
	waits          []int64
	// recentWaits are those since the last decision of the policy, whenever the claims have arrived.
	recentWaits []time.Duration
	claims      int
	immediate   int
	unserved    int
	// seconds are the cluster-seconds of each state.
	running, resuming, hibernating, installing int64
	shallow                                    sizing.PerShallowDepth[int64]
	resumes, hibernations, installs            int
	monthStart                                 int64
	// spent is at the prices of the policy's budget, which may differ from those of the result.
	spent        float64
	budgetPrices sizing.Prices
	samples      []Sample
	nextSample   int64
	sampleEvery  int64
	wanted       int
}

// census is the number of unclaimed clusters in each state, of those that hibernate at shallow depths, and of waiting
// claims.
type census struct {
	running, resuming, hibernating, installing, waiting int
	shallow                                             sizing.PerShallowDepth[int]
}

func newRecorder(o Options, p Policy) *recorder {
	r := &recorder{Options: o, from: o.From.Unix(), to: o.To.Unix(), budgetPrices: o.Prices}
	if a, ok := p.(*Auto); ok && a.Given.Limits.Prices != (sizing.Prices{}) {
		r.budgetPrices = a.Given.Limits.Prices
	}
	if o.Samples > 0 {
		r.sampleEvery = max(1, (r.to-r.from)/int64(o.Samples))
		r.nextSample = r.from
	}
	return r
}

// advanceTo counts the time until now, in which the state was as it is.
func (r *recorder) advanceTo(now int64) {
	r.spendUntil(now)
	for r.sampleEvery > 0 && r.nextSample <= now && r.nextSample < r.to {
		r.samples = append(r.samples, Sample{
			At: time.Unix(r.nextSample, 0).UTC(), Running: r.state.running, Resuming: r.state.resuming,
			Wanted: r.wanted,
		})
		r.nextSample += r.sampleEvery
	}
	begin, end := max(r.last, r.from), min(now, r.to)
	if span := end - begin; span > 0 {
		r.running += span * int64(r.state.running)
		r.resuming += span * int64(r.state.resuming)
		r.hibernating += span * int64(r.state.hibernating)
		r.installing += span * int64(r.state.installing)
		r.shallow.Freeze += span * int64(r.state.shallow.Freeze)
		r.shallow.Suspend += span * int64(r.state.shallow.Suspend)
	}
	r.last = now
}

// spendUntil adds up what the current calendar month has cost.
func (r *recorder) spendUntil(now int64) {
	if r.budgetPrices == (sizing.Prices{}) {
		return
	}
	shallow := sizing.PerShallowDepth[float64]{Freeze: float64(r.state.shallow.Freeze), Suspend: float64(r.state.shallow.Suspend)}
	perSecond := (float64(r.state.running+r.state.resuming+r.state.installing)*r.budgetPrices.Running +
		r.budgetPrices.SleepCost(float64(r.state.hibernating), shallow)) / 3600
	if month := beginOfMonth(now); month != r.monthStart {
		r.monthStart, r.spent = month, 0
		r.spent = perSecond * float64(now-max(month, r.last))
		return
	}
	r.spent += perSecond * float64(now-r.last)
}

func beginOfMonth(at int64) int64 {
	t := time.Unix(at, 0).UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).Unix()
}

func (r *recorder) isCounting(now int64) bool { return now >= r.from && now < r.to }

func (r *recorder) addClaim(now int64, immediate bool) {
	if !r.isCounting(now) {
		return
	}
	r.claims++
	if immediate {
		r.immediate++
	}
	if n := len(r.samples); n > 0 {
		r.samples[n-1].Claims++
		if !immediate {
			r.samples[n-1].Waited++
		}
	}
}

// addWait records how long a claim that arrived at a time has waited.
func (r *recorder) addWait(arrived, now int64) {
	if now <= arrived {
		return
	}
	r.recentWaits = append(r.recentWaits, time.Duration(now-arrived)*time.Second)
	if r.isCounting(arrived) {
		r.waits = append(r.waits, now-arrived)
	}
}

// takeRecentWaits returns the waits since the last call. They are valid until the next claim gets a cluster.
func (r *recorder) takeRecentWaits() []time.Duration {
	out := r.recentWaits
	r.recentWaits = r.recentWaits[:0]
	return out
}

func (r *recorder) countEvent(counter *int, now int64) {
	if r.isCounting(now) {
		*counter++
	}
}

// newResult returns the result. MaxWait is that of the objective.
func (r *recorder) newResult(maxWait time.Duration) Result {
	slices.Sort(r.waits)
	out := Result{
		Claims: r.claims, Unserved: r.unserved, Resumes: r.resumes, Hibernations: r.hibernations, Installs: r.installs, Samples: r.samples,
		Hours: Hours{RunningIdle: toHours(r.running), Resuming: toHours(r.resuming), Hibernating: toHours(r.hibernating), Installing: toHours(r.installing)},
	}
	out.Hours.Shallow = sizing.PerShallowDepth[float64]{Freeze: toHours(r.shallow.Freeze), Suspend: toHours(r.shallow.Suspend)}
	h := out.Hours
	out.Cost = (h.RunningIdle+h.Resuming+h.Installing)*r.Prices.Running + r.Prices.SleepCost(h.Hibernating, h.Shallow)
	if r.claims == 0 {
		return out
	}
	out.Immediate = float64(r.immediate) / float64(r.claims)
	late, _ := slices.BinarySearch(r.waits, int64(maxWait/time.Second)+1)
	out.Within = 1 - float64(len(r.waits)-late+r.unserved)/float64(r.claims)
	out.Waits = Waits{P50: r.waitQuantile(0.5), P90: r.waitQuantile(0.9), P99: r.waitQuantile(0.99)}
	if n := len(r.waits); n > 0 {
		out.Waits.Max = float64(r.waits[n-1])
	}
	return out
}

func toHours(seconds int64) float64 { return float64(seconds) / 3600 }

// waitQuantile returns a quantile of the waits of all served claims; most have waited 0 seconds.
func (r *recorder) waitQuantile(q float64) float64 {
	served := r.claims - r.unserved
	i := int(math.Ceil(float64(served)*q)) - 1 - (served - len(r.waits)) // the nearest rank
	if i < 0 || len(r.waits) == 0 {
		return 0
	}
	return float64(r.waits[min(i, len(r.waits)-1)])
}
