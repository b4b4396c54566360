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
	// SetAsidePrefix begins the keys under which an unreadable record is kept.
	SetAsidePrefix = "set-aside-"
	// keptDurations is how many durations of each kind are kept.
	keptDurations = 100
	// maxAhead is how far in the future a record may seem to end: clocks differ.
	maxAhead = time.Hour
	// maxDuration is the longest duration that counts.
	maxDuration = 30 * 24 * time.Hour
)

// ConfigMapName returns the name of the ConfigMap with the record of a pool. A name of a pool has no dot, so
// no other pool has this name.
func ConfigMapName(pool string) string { return pool + ".demand" }

// A Record is what was seen of a pool.
type Record struct {
	Demand demand.History
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
	// Month is the current month in UTC, such as 2026-03, RunningHours and HibernatingHours the
	// cluster-hours of unclaimed clusters since it began.
	Month            string  `json:"month,omitempty"`
	RunningHours     float64 `json:"runningHours,omitempty"`
	HibernatingHours float64 `json:"hibernatingHours,omitempty"`
	// SetAside is why an earlier record was set aside; empty if none was.
	SetAside string `json:"setAside,omitempty"`
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

// Measured returns the durations that sizes are computed from. While no resume was seen, it is taken to
// last as long as an install, which includes a start: a pool all of whose clusters run would otherwise
// never learn it. A duration of 0 is not known.
func (d *Details) Measured() sizing.Durations {
	const q = 0.9
	out := sizing.Durations{Resume: d.Resumes.Quantile(q), Install: d.Installs.Quantile(q)}
	if out.Resume == 0 {
		out.Resume = out.Install
	}
	return out
}

// Spent returns what the unclaimed clusters have cost since the month of now began.
func (d *Details) Spent(p sizing.Prices, now time.Time) float64 {
	if d.Month != monthOf(now) {
		return 0
	}
	return d.RunningHours*p.Running + d.HibernatingHours*p.Hibernating
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

// ErrFuture is the error of a record that ends in the future: the clock of this machine or of the one
// that wrote it is wrong. The record itself is whole.
var ErrFuture = errors.New("it ends in the future")

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
	return r, nil
}

// check refuses values that this package does not write.
func (d *Details) check() error {
	hours := d.RunningHours + d.HibernatingHours
	switch {
	case d.Since.IsZero() || d.Until.Before(d.Since):
		return fmt.Errorf("until %s is before since %s", d.Until.UTC().Format(time.RFC3339), d.Since.UTC().Format(time.RFC3339))
	case len(d.Resumes) > keptDurations || len(d.Installs) > keptDurations:
		return fmt.Errorf("it has more than %d durations", keptDurations)
	case d.RunningHours < 0 || d.HibernatingHours < 0 || math.IsNaN(hours) || math.IsInf(hours, 0):
		return fmt.Errorf("its hours are not numbers of at least 0")
	}
	for _, one := range slices.Concat(d.Resumes, d.Installs) {
		if one.Seconds < 0 || one.Seconds > int64(maxDuration/time.Second) || !one.Failed && one.Seconds == 0 {
			return fmt.Errorf("%d seconds of cluster %q is not a duration", one.Seconds, one.Cluster)
		}
	}
	return nil
}
