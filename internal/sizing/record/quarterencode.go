package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

const (
	// quartersVersion is the first byte. A format that older versions cannot read has another one.
	quartersVersion = 1
	// maxQuartersBytes limits the size: the oldest quarters are left out of a larger one.
	maxQuartersBytes = 100_000
	// maxFields limits the numbers of a quarter that a later version may have added.
	maxFields = 64
	// meanUnit is the unit of the expected claims.
	meanUnit = 1e-3
)

// Flags of a quarter.
const (
	flagNoted = 1 << iota
	flagComputed
	flagForecast
)

// errQuarters is the error of bytes that are no quarters.
var errQuarters = errors.New("these bytes are not a record of quarters of an hour")

// fields returns the numbers of a quarter in the order in which they are stored. A later version may append
// others; this one skips what it does not know.
func (q *Quarter) fields() []uint64 {
	flags, f := uint64(0), sizing.Forecast{}
	if q.Noted {
		flags |= flagNoted
	}
	if q.Computed {
		flags |= flagComputed
	}
	if q.Forecast != nil {
		flags |= flagForecast
		f = *q.Forecast
	}
	out := []uint64{uint64(q.Seconds)}
	for _, n := range q.Clusters {
		out = append(out, uint64(n))
	}
	return append(out, uint64(q.Waiting), uint64(q.Unserved), flags,
		uint64(q.Pool.Running), uint64(q.Pool.Size), uint64(q.Recommended.Running), uint64(q.Recommended.Size),
		uint64(q.Static.Running), uint64(q.Static.Size), uint64(math.Round(f.Mean/meanUnit)), uint64(f.Low), uint64(f.High),
		uint64(q.Shallow.Freeze), uint64(q.Shallow.Suspend))
}

// setFields is the reverse of fields. It reports whether the numbers can be those of a quarter.
func (q *Quarter) setFields(n []uint64) bool {
	for _, v := range n {
		if v > maxClusters*uint64(quarterSeconds) {
			return false
		}
	}
	q.Seconds = int64(n[0])
	if q.Seconds > quarterSeconds {
		return false
	}
	for s := range q.Clusters {
		if q.Clusters[s] = int64(n[1+s]); q.Clusters[s] > q.Seconds*maxClusters {
			return false
		}
	}
	n = n[1+len(q.Clusters):]
	q.Waiting, q.Unserved = int64(n[0]), int64(n[1])
	q.Noted, q.Computed = n[2]&flagNoted != 0, n[2]&flagComputed != 0
	q.Pool, q.Recommended, q.Static = newSetting(n[3:]), newSetting(n[5:]), newSetting(n[7:])
	if n[2]&flagForecast != 0 {
		q.Forecast = &sizing.Forecast{Mean: float64(n[9]) * meanUnit, Low: int(n[10]), High: int(n[11])}
	}
	if freeze, suspend := int64(n[12]), int64(n[13]); freeze+suspend <= q.Clusters[Hibernating] {
		q.Shallow = sizing.PerShallowDepth[int64]{Freeze: freeze, Suspend: suspend}
	}
	return true
}

func newSetting(n []uint64) sizing.Setting {
	return sizing.Setting{Running: int(n[0]), Size: int(n[1])}
}

// MarshalBinary returns the quarters, without the oldest if they would be too large.
func (q Quarters) MarshalBinary() ([]byte, error) {
	for drop := 0; ; drop += max(1, (len(q)-drop)/20) {
		if out := q[min(drop, len(q)):].encode(); len(out) <= maxQuartersBytes || drop >= len(q) {
			return out, nil
		}
	}
}

func (q Quarters) encode() []byte {
	out := []byte{quartersVersion}
	out = binary.AppendUvarint(out, uint64(len((&Quarter{}).fields())))
	out = binary.AppendUvarint(out, uint64(len(q)))
	last := int64(0)
	for i := range q {
		out = binary.AppendUvarint(out, uint64(q[i].Start-last))
		last = q[i].Start
		for _, n := range q[i].fields() {
			out = binary.AppendUvarint(out, n)
		}
		out = q[i].Waits.encode(out)
	}
	return out
}

func (w Waits) encode(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(w)))
	for i := range maxWaitIndex + 1 {
		if n, found := w[i]; found {
			out = binary.AppendUvarint(out, uint64(i))
			out = binary.AppendUvarint(out, uint64(n))
		}
	}
	return out
}

// numbers reads numbers until the first error.
type numbers struct {
	left []byte
	bad  bool
}

// next returns the next number, which must not be above a limit.
func (r *numbers) next(limit uint64) uint64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 || v > limit {
		r.bad, r.left = true, nil
		return 0
	}
	r.left = r.left[n:]
	return v
}

// UnmarshalBinary reads what MarshalBinary has returned, by this version or another one. After an error q is
// empty.
func (q *Quarters) UnmarshalBinary(data []byte) error {
	*q = nil
	if len(data) == 0 {
		return nil
	}
	if data[0] != quartersVersion {
		return fmt.Errorf("version %d of the format is not known: %w", data[0], errQuarters)
	}
	r := numbers{left: data[1:]}
	stored := r.next(maxFields)
	known := len((&Quarter{}).fields())
	var out Quarters
	last := int64(0)
	for range r.next(min(2*keptQuarters, uint64(len(data)))) {
		o := Quarter{Start: last + int64(r.next(1<<40))}
		n := make([]uint64, max(known, int(stored)))
		for i := range stored {
			n[i] = r.next(math.MaxInt64)
		}
		o.Waits = r.waits()
		if r.bad || !o.setFields(n) || len(out) > 0 && o.Start <= last {
			return fmt.Errorf("reading %d bytes: %w", len(data), errQuarters)
		}
		last = o.Start
		out = append(out, o)
	}
	if r.bad || len(r.left) > 0 {
		return fmt.Errorf("reading %d bytes: %w", len(data), errQuarters)
	}
	*q = slices.Clip(out)
	return nil
}

func (r *numbers) waits() Waits {
	var out Waits
	for range r.next(maxWaitIndex + 1) {
		if out == nil {
			out = Waits{}
		}
		i := int(r.next(maxWaitIndex))
		out[i] = min(out[i]+int64(r.next(maxClusters)), maxClusters)
	}
	return out
}

// fitsUntil reports whether the quarters can be those of a record that ends at a time.
func (q Quarters) fitsUntil(until time.Time) bool {
	return len(q) == 0 || q[len(q)-1].Start <= until.Unix()/quarterSeconds
}
