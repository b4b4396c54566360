// Package page computes the content of the console's pages: from objects and the current time it
// returns values that templates print as they are. It is pure.
package page

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// A Moment is a time that pages show relative to now.
type Moment struct {
	At time.Time
	// Kind is Ago or Until. The browser uses it to keep the text current.
	Kind string
	// Text is the text at the time of rendering.
	Text string
}

// Kinds of Moments.
const (
	Ago   = "ago"
	Until = "until"
)

// PastMoment returns a time in the past.
func PastMoment(at, now time.Time) Moment {
	return Moment{At: at.UTC(), Kind: Ago, Text: duration.HumanDuration(max(0, now.Sub(at)))}
}

// FutureMoment returns a time that is expected in the future. It may have passed.
func FutureMoment(at, now time.Time) Moment {
	m := Moment{At: at.UTC(), Kind: Until}
	if left := at.Sub(now); left >= 0 {
		m.Text = "in " + duration.HumanDuration(left)
	} else {
		m.Text = duration.HumanDuration(-left) + " ago"
	}
	return m
}

// Exact returns the time in full, for a tooltip.
func (m Moment) Exact() string { return m.At.Format("2006-01-02 15:04:05 UTC") }

// Stamp returns the time in RFC 3339.
func (m Moment) Stamp() string { return m.At.Format(time.RFC3339) }

// Zero reports whether the time is unset.
func (m Moment) Zero() bool { return m.At.IsZero() }

// Count is a number of objects of one kind.
type Count struct {
	What string
	N    int
}

// A PhaseSegment is a segment of a bar whose length is 100.
type PhaseSegment struct {
	What        string
	From, Width float64
}

// newPhaseSegments returns a segment for each count.
func newPhaseSegments(counts []Count) []PhaseSegment {
	all := 0
	for _, c := range counts {
		all += c.N
	}
	var out []PhaseSegment
	from := 0.0
	for _, c := range counts {
		width := 100 * float64(c.N) / float64(all)
		out = append(out, PhaseSegment{c.What, from, width})
		from += width
	}
	return out
}

// A Problem is a condition or a state that needs attention.
type Problem struct {
	// NeedsAction is set if a person must act. Otherwise the problem may resolve itself.
	NeedsAction bool
	// Object is the kind and name of the object, such as "pool default/dev".
	Object string
	// Title is the problem in a few words. Message is a sentence that says what to do.
	Title, Message string
	// Since is when the problem started; zero if that is unknown.
	Since Moment
	// Link is the page with more information; empty if there is none.
	Link string
}

// FormatCount returns "1 cluster" or "2 clusters".
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// RegionLink returns the page of a FleetRegion.
func RegionLink(namespace, name string) string { return "/fleet/" + namespace + "/" + name }

// PoolLink returns the page of a pool.
func PoolLink(namespace, name string) string { return "/pools/" + namespace + "/" + name }
