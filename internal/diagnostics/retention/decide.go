// Package retention decides which bundles of diagnostics are deleted. It is a decider: it has no client and no
// clock.
package retention

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// bundleName is the form of names of bundles, such as c-gate-20260301T120000Z-0a1b2c3d.tar.gz. The part after the last
// dash identifies the cluster, and that before the time is the kind of the failure.
var bundleName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*-[a-zA-Z0-9]+\.tar\.gz$`)

// onRequest is the kind of the bundles that users request.
const onRequest = "release"

// IsBundleName reports whether a name is one of a bundle: a store neither writes nor deletes anything else.
func IsBundleName(name string) bool { return bundleName.MatchString(name) }

// NewBundle returns a stored bundle. Its name must be one of a bundle.
func NewBundle(name string, at time.Time, size int64) Bundle {
	parts := strings.Split(strings.TrimSuffix(name, ".tar.gz"), "-")
	n := len(parts)
	return Bundle{Name: name, Cluster: parts[n-1], OnRequest: n >= 4 && parts[n-3] == onRequest, At: at, Size: size}
}

// Bundle is a stored bundle.
type Bundle struct {
	// Name identifies the bundle.
	Name string
	// Cluster identifies the cluster that it is about.
	Cluster string
	// OnRequest is set if a user requested it, at the release of a claim.
	OnRequest bool
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
// out none of another. Of the bundles that were requested, it first deletes the oldest until they have at most half
// of MaxSize, so that users who release many clusters do not push out the bundles of failures.
func Decide(s Snapshot) Plan {
	var p Plan
	young := p.deleteOld(s)
	if s.Limits.MaxSize <= 0 {
		return p
	}
	requested, others := splitRequested(young)
	requested = p.deleteOldest(requested, s.Limits.MaxSize/2)
	p.deleteOldest(sortByAge(slices.Concat(requested, others)), s.Limits.MaxSize)
	return p
}

func sortByAge(bundles []Bundle) []Bundle {
	slices.SortFunc(bundles, func(a, b Bundle) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
	return bundles
}

func splitRequested(bundles []Bundle) (requested, others []Bundle) {
	for _, b := range bundles {
		if b.OnRequest {
			requested = append(requested, b)
		} else {
			others = append(others, b)
		}
	}
	return requested, others
}

// deleteOld deletes the bundles that are older than MaxAge, and returns the others, the oldest first.
func (p *Plan) deleteOld(s Snapshot) []Bundle {
	var kept []Bundle
	for _, b := range sortByAge(slices.Clone(s.Bundles)) {
		if s.Limits.MaxAge > 0 && s.Now.Sub(b.At) > s.Limits.MaxAge {
			p.Delete = append(p.Delete, b)
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// deleteOldest deletes the oldest of sorted bundles until the others have at most limit bytes, and returns these.
func (p *Plan) deleteOldest(bundles []Bundle, limit int64) []Bundle {
	var total int64
	newest := map[string]string{}
	for _, b := range bundles {
		total += b.Size
		newest[b.Cluster] = b.Name
	}
	for _, last := range []bool{false, true} {
		var kept []Bundle
		for _, b := range bundles {
			if total > limit && (newest[b.Cluster] == b.Name) == last {
				p.Delete = append(p.Delete, b)
				total -= b.Size
				continue
			}
			kept = append(kept, b)
		}
		bundles = kept
	}
	return bundles
}
