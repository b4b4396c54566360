// Package retention decides which bundles of diagnostics are deleted. It is a decider: it has no client and no
// clock.
package retention

import (
	"cmp"
	"slices"
	"time"
)

// Bundle is a stored bundle.
type Bundle struct {
	// Name identifies the bundle.
	Name string
	// Cluster identifies the cluster that it is about.
	Cluster string
	// At is when it was written, Size the number of its bytes.
	At   time.Time
	Size int64
}

// Limits bound what is kept. A limit of 0 is none.
type Limits struct {
	MaxAge time.Duration
	// MaxSize is the total number of bytes.
	MaxSize int64
}

// DefaultLimits are those of a hub that sets no others.
var DefaultLimits = Limits{MaxAge: 7 * 24 * time.Hour, MaxSize: 1 << 30}

// Snapshot is what is stored.
type Snapshot struct {
	Now     time.Time
	Bundles []Bundle
	Limits  Limits
}

// Plan lists the bundles to delete, in order.
type Plan struct{ Delete []Bundle }

// Decide deletes every bundle that is older than MaxAge. If the others exceed MaxSize, it deletes the oldest of
// them until they do not: first those of clusters that have a newer one, so that many bundles of one cluster push
// out none of another.
func Decide(s Snapshot) Plan {
	bundles := slices.Clone(s.Bundles)
	slices.SortFunc(bundles, func(a, b Bundle) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
	var (
		p       Plan
		kept    []Bundle
		total   int64
		newest  = map[string]string{}
		tooLate = func(b Bundle) bool { return s.Limits.MaxAge > 0 && s.Now.Sub(b.At) > s.Limits.MaxAge }
	)
	for _, b := range bundles {
		if tooLate(b) {
			p.Delete = append(p.Delete, b)
			continue
		}
		kept = append(kept, b)
		total += b.Size
		newest[b.Cluster] = b.Name
	}
	for _, last := range []bool{false, true} {
		for _, b := range kept {
			if s.Limits.MaxSize <= 0 || total <= s.Limits.MaxSize {
				return p
			}
			if (newest[b.Cluster] == b.Name) == last {
				p.Delete = append(p.Delete, b)
				total -= b.Size
			}
		}
	}
	return p
}
