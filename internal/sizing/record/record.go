// Package record keeps what was seen of a pool: its claims, how long its clusters took, and the hours
// that unclaimed clusters have cost. A Record fits into a ConfigMap; a Tracker keeps it up to date.
// It is pure.
//
// Whoever may write the ConfigMap can forge a record. Therefore nothing in it is trusted: Decode
// refuses what is not a record, and whatever it accepts leads to a recommendation at worst, within
// the limits of the policy.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/demand"
)

const (
	// ClaimsKey is the key of the claims of a record in the binaryData of a ConfigMap.
	ClaimsKey = "claims"
	// DetailsKey is the key of the rest of a record in the data of a ConfigMap.
	DetailsKey = "details.json"
	// QuartersKey is the key of the quarters of an hour of a record in the binaryData of a ConfigMap. It may
	// be missing: versions before it do not write it.
	QuartersKey = "quarters"
	// SetAsidePrefix begins the keys under which an unreadable record is kept.
	SetAsidePrefix = "set-aside-"
	// keptDurations is how many durations of each kind are kept.
	keptDurations = 100
	// maxAhead is how far in the future a record may seem to end: clocks differ.
	maxAhead = time.Hour
	// maxDuration is the longest duration that counts.
	maxDuration = 30 * 24 * time.Hour
	// maxMonthHours limits the cluster-hours of a month.
	maxMonthHours = 31 * 24 * maxClusters
)

// ConfigMapName returns the name of the ConfigMap with the record of a pool. A name of a pool has no dot, so
// no other pool has this name.
func ConfigMapName(pool string) string { return pool + ".demand" }

// A Record is what was seen of a pool.
type Record struct {
	Demand demand.History
	// Quarters are those of the last eight days. Charts and reports need them; nothing is decided by them.
	Quarters Quarters
	Details
}

// Details is a record without its claims.
type Details struct {
	// Since is when recording began, Until the last time that is recorded.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Resumes and Installs are the last ones, oldest first.
	Resumes  Durations `json:"resumes,omitempty"`
	Installs Durations `json:"installs,omitempty"`
	// ShallowResumes are the last ones from shallow depths of sleep; Resumes are from stop alone.
	ShallowResumes sizing.PerShallowDepth[Durations] `json:"shallowResumes,omitzero"`
	// Month is the current month in UTC, such as 2026-03, RunningHours and HibernatingHours the
	// cluster-hours of unclaimed clusters since it began.
	Month            string  `json:"month,omitempty"`
	RunningHours     float64 `json:"runningHours,omitempty"`
	HibernatingHours float64 `json:"hibernatingHours,omitempty"`
	// ShallowHours are those of HibernatingHours at shallow depths of sleep.
	ShallowHours sizing.PerShallowDepth[float64] `json:"shallowHours,omitzero"`
	// Compared is what several settings would have cost in this month; nil before the first was seen.
	Compared *Compared `json:"compared,omitempty"`
	// RefusedDepths is when the platform has last put a cluster to sleep more deeply than at that depth, although the
	// cluster should sleep there.
	RefusedDepths sizing.PerShallowDepth[time.Time] `json:"refusedDepths,omitzero"`
	// Outcomes are those of the last claims; nil before the first one.
	Outcomes *Outcomes `json:"outcomes,omitempty"`
	// SetAside is why an earlier record was set aside; empty if none was.
	SetAside string `json:"setAside,omitempty"`
}

// Outcomes are how many claims were served within an objective.
type Outcomes struct {
	Share float64 `json:"share"`
	// MaxWait is in seconds.
	MaxWait float64 `json:"maxWait,omitempty"`
	sizing.Outcomes
}

// Hours are cluster-hours of unclaimed clusters.
type Hours struct {
	Running     float64 `json:"running"`
	Hibernating float64 `json:"hibernating"`
}

// Cost returns what the hours cost. Clusters hibernate at depth stop.
func (h Hours) Cost(p sizing.Prices) float64 {
	return h.Running*p.Running + p.SleepCost(h.Hibernating, sizing.PerShallowDepth[float64]{})
}

// AddSetting adds the hours of a pool that has exactly the counts of a setting.
func (h *Hours) AddSetting(s sizing.Setting, hours float64) {
	running := min(s.Running, s.Size)
	h.Running += hours * float64(running)
	h.Hibernating += hours * float64(s.Size-running)
}

// Compared has the hours of three settings in the same time: those of the pool itself, those that were
// recommended, and those that a person has chosen last.
type Compared struct {
	// Since is when counting began: the beginning of the month, or later.
	Since       time.Time `json:"since"`
	Pool        Hours     `json:"pool"`
	Recommended Hours     `json:"recommended"`
	Static      Hours     `json:"static"`
}

// A Duration is how long an operation of a cluster took.
type Duration struct {
	Cluster string    `json:"cluster"`
	At      time.Time `json:"at"`
	// Seconds is 0 if it failed.
	Seconds int64 `json:"seconds,omitempty"`
	Failed  bool  `json:"failed,omitempty"`
}

// Durations are those of one kind of operation.
type Durations []Duration

// Quantile returns a quantile of those that succeeded; 0 if none has.
func (d Durations) Quantile(q float64) time.Duration {
	var all []int64
	for _, one := range d {
		if !one.Failed {
			all = append(all, one.Seconds)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	i := int(math.Ceil(q*float64(len(all)))) - 1
	return time.Duration(all[min(max(i, 0), len(all)-1)]) * time.Second
}

// Failed returns how many have failed.
func (d Durations) Failed() int {
	n := 0
	for _, one := range d {
		if one.Failed {
			n++
		}
	}
	return n
}

// add adds one that is not recorded yet, and drops the oldest.
func (d *Durations) add(one Duration) bool {
	if slices.ContainsFunc(*d, func(o Duration) bool { return o.Cluster == one.Cluster && o.At.Equal(one.At) }) {
		return false
	}
	if len(*d) == keptDurations && !one.At.After((*d)[0].At) {
		return false
	}
	*d = append(*d, one)
	slices.SortStableFunc(*d, func(a, b Duration) int { return a.At.Compare(b.At) })
	*d = slices.Clone((*d)[max(0, len(*d)-keptDurations):])
	return true
}

// recentDurations is how many of the last operations of a kind sizes are computed from: so a jump counts after a few.
const recentDurations = 30

// last returns the last n.
func (d Durations) last(n int) Durations { return d[max(len(d)-n, 0):] }

// Measured returns the durations that sizes are computed from, of the last operations of each kind. While no resume was seen, it is taken to
// last as long as an install, which includes a start: a pool all of whose clusters run would otherwise
// never learn it. A duration of 0 is not known.
func (d *Details) Measured() sizing.Durations {
	const q = 0.9
	out := sizing.Durations{Resume: d.Resumes.last(recentDurations).Quantile(q), Install: d.Installs.last(recentDurations).Quantile(q)}
	for _, depth := range sizing.ShallowDepths() {
		*out.Shallow.Of(depth) = d.ShallowResumes.Of(depth).last(recentDurations).Quantile(q)
	}
	if out.Resume == 0 {
		out.Resume = out.Install
	}
	return out
}

// refusalMemory is how long a depth that was refused is not tried again: machines, images and quotas change.
const refusalMemory = 24 * time.Hour

// RecentlyRefused returns at which depths the platform has lately not put a cluster to sleep that should sleep there.
func (d *Details) RecentlyRefused(now time.Time) sizing.PerShallowDepth[bool] {
	var out sizing.PerShallowDepth[bool]
	for _, depth := range sizing.ShallowDepths() {
		at := *d.RefusedDepths.Of(depth)
		*out.Of(depth) = !at.IsZero() && now.Sub(at) < refusalMemory && !at.After(now.Add(maxAhead))
	}
	return out
}

// Spent returns what the unclaimed clusters have cost since the month of now began.
func (d *Details) Spent(p sizing.Prices, now time.Time) float64 {
	if d.Month != monthOf(now) {
		return 0
	}
	return d.RunningHours*p.Running + p.SleepCost(d.HibernatingHours, d.ShallowHours)
}

func monthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// Encode returns the record as the two values of a ConfigMap.
func (r *Record) Encode(now time.Time) (claims []byte, details string, err error) {
	r.Demand.Compact(now)
	if claims, err = r.Demand.MarshalBinary(); err != nil {
		return nil, "", fmt.Errorf("encoding the claims: %w", err)
	}
	raw, err := json.Marshal(r.Details)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the details: %w", err)
	}
	return claims, string(raw), nil
}

// Write returns the record as the two maps of a ConfigMap, which Read reads.
func (r *Record) Write(now time.Time) (binaryData map[string][]byte, data map[string]string, err error) {
	claims, details, err := r.Encode(now)
	if err != nil {
		return nil, nil, err
	}
	r.Quarters.trim(now)
	quarters, err := r.Quarters.MarshalBinary()
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the quarters of an hour: %w", err)
	}
	return map[string][]byte{ClaimsKey: claims, QuartersKey: quarters}, map[string]string{DetailsKey: details}, nil
}

// ErrFuture is the error of a record that ends in the future: the clock of this machine or of the one
// that wrote it is wrong. The record itself is whole.
var ErrFuture = errors.New("it ends in the future")

// Read reads a record from the two maps of a ConfigMap. Quarters that cannot be read are left out: problem
// says why, and the rest is whole.
func Read(binaryData map[string][]byte, data map[string]string, now time.Time) (r *Record, problem, err error) {
	if r, err = Decode(binaryData[ClaimsKey], data[DetailsKey], now); err != nil {
		return nil, nil, err
	}
	if err := r.Quarters.UnmarshalBinary(binaryData[QuartersKey]); err != nil {
		return r, fmt.Errorf("its key %s: %w", QuartersKey, err), nil
	}
	if !r.Quarters.fitsUntil(r.Until) {
		r.Quarters = nil
		return r, fmt.Errorf("its key %s: it ends after the record, at %s", QuartersKey, r.Until.UTC().Format(time.RFC3339)), nil
	}
	r.Quarters.trim(now)
	return r, nil, nil
}

// Decode reads what Encode has returned. The error says what is wrong with it.
func Decode(claims []byte, details string, now time.Time) (*Record, error) {
	r := &Record{}
	if err := json.Unmarshal([]byte(details), &r.Details); err != nil {
		return nil, fmt.Errorf("its key %s is not a record: %w", DetailsKey, err)
	}
	if err := r.Demand.UnmarshalBinary(claims); err != nil {
		return nil, fmt.Errorf("its key %s: %w", ClaimsKey, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("its key %s: %w", DetailsKey, err)
	}
	if r.Until.After(now.Add(maxAhead)) {
		return nil, fmt.Errorf("%w, at %s", ErrFuture, r.Until.UTC().Format(time.RFC3339))
	}
	r.Demand.Compact(now)
	return r, nil
}

// isPlausible reports whether the hours are numbers of at least 0.
func (c *Compared) isPlausible() bool {
	if c == nil {
		return true
	}
	for _, h := range []Hours{c.Pool, c.Recommended, c.Static} {
		if sum := h.Running + h.Hibernating; h.Running < 0 || h.Hibernating < 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return false
		}
	}
	return true
}

// check refuses values that this package does not write.
func (d *Details) check() error {
	hours := d.RunningHours + d.HibernatingHours
	if !d.Compared.isPlausible() {
		d.Compared = nil // nothing is decided by it
	}
	if d.Outcomes != nil && !d.Outcomes.IsPlausible() {
		d.Outcomes = nil // as if no outcome were known
	}
	switch {
	case d.Since.IsZero() || d.Until.Before(d.Since):
		return fmt.Errorf("until %s is before since %s", d.Until.UTC().Format(time.RFC3339), d.Since.UTC().Format(time.RFC3339))
	case d.RunningHours < 0 || d.HibernatingHours < 0 || math.IsNaN(hours) || hours > maxMonthHours:
		return fmt.Errorf("its hours of the month are not numbers from 0 to %d", maxMonthHours)
	}
	if !isPart(d.ShallowHours, d.HibernatingHours) {
		d.ShallowHours = sizing.PerShallowDepth[float64]{} // they cost what they cost at stop
	}
	for _, all := range []Durations{d.Resumes, d.Installs, d.ShallowResumes.Freeze, d.ShallowResumes.Suspend} {
		if err := all.checkUntil(d.Until); err != nil {
			return err
		}
	}
	for _, depth := range sizing.ShallowDepths() {
		if at := d.RefusedDepths.Of(depth); at.After(d.Until.Add(maxGap)) {
			*at = time.Time{} // as if it had not been refused
		}
	}
	return nil
}

// isPart reports whether the hours at shallow depths can be among all hours of sleep.
func isPart(shallow sizing.PerShallowDepth[float64], all float64) bool {
	sum := shallow.Freeze + shallow.Suspend
	return shallow.Freeze >= 0 && shallow.Suspend >= 0 && sum <= all*(1+1e-9)
}

// checkUntil refuses durations that a record until a moment cannot have.
func (d Durations) checkUntil(until time.Time) error {
	if len(d) > keptDurations {
		return fmt.Errorf("it has more than %d durations", keptDurations)
	}
	for _, one := range d {
		if one.Seconds < 0 || one.Seconds > int64(maxDuration/time.Second) || !one.Failed && one.Seconds == 0 {
			return fmt.Errorf("%d seconds of cluster %q is not a duration", one.Seconds, one.Cluster)
		}
		if one.At.After(until.Add(maxGap)) {
			return fmt.Errorf("a duration of cluster %q is from %s, after the end of the record", one.Cluster, one.At.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
