// Package page is what the console's pages show, made of what there is: objects and a
// time in, values out that templates print as they are. It is pure.
package page

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// A Moment is a time that pages tell by how far away it is.
type Moment struct {
	At time.Time
	// Kind is Ago or Until; a browser keeps the words up to date by it.
	Kind string
	// Text are those of when the page was made.
	Text string
}

// Kinds of Moments.
const (
	Ago   = "ago"
	Until = "until"
)

// PastMoment is a moment that has been.
func PastMoment(at, now time.Time) Moment {
	return Moment{At: at.UTC(), Kind: Ago, Text: duration.HumanDuration(max(0, now.Sub(at)))}
}

// FutureMoment is a moment that is to come, or should have come.
func FutureMoment(at, now time.Time) Moment {
	m := Moment{At: at.UTC(), Kind: Until}
	if left := at.Sub(now); left >= 0 {
		m.Text = "in " + duration.HumanDuration(left)
	} else {
		m.Text = duration.HumanDuration(-left) + " ago"
	}
	return m
}

// Exact is the moment for those who want to know.
func (m Moment) Exact() string { return m.At.Format("2006-01-02 15:04:05 UTC") }

// Stamp is the moment for programs.
func (m Moment) Stamp() string { return m.At.Format(time.RFC3339) }

// Zero reports whether there is no such moment.
func (m Moment) Zero() bool { return m.At.IsZero() }

// Count is how many there are of something.
type Count struct {
	What string
	N    int
}

// A Stretch is a part of a bar that is 100 long.
type PhaseSegment struct {
	What        string
	From, Width float64
}

// newPhaseSegments has a stretch for each count.
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

// A Trouble is something that is not as it should be.
type Problem struct {
	// NeedsAction is set when it wants a person; otherwise it may pass by itself.
	NeedsAction bool
	// Object it is: "pool default/dev".
	Object string
	// Title it is, in a word or two, and Why in a sentence with what to do.
	Title, Message string
	// Since is when it began; zero when nobody knows.
	Since Moment
	// Link is the page that tells more; empty without one.
	Link string
}

// FormatCount is "1 cluster", "2 clusters".
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// RegionLink is the page of a FleetRegion.
func RegionLink(namespace, name string) string { return "/fleet/" + namespace + "/" + name }

// PoolLink is the page of a pool.
func PoolLink(namespace, name string) string { return "/pools/" + namespace + "/" + name }
