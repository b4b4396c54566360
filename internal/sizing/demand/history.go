package demand

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"
)

const (
	// quarter is the length of a bin in seconds, hourBins the number of bins in an hour.
	quarter  = 15 * 60
	hourBins = 4
	// fineDays is the age from which bins become hours.
	fineDays = 28
	// keepDays is the age from which bins are dropped.
	keepDays = 730
	// maxSeen limits the claims that are recognized when they are added again, maxGaps the gaps.
	maxSeen = 4096
	maxGaps = 200
	// maxAhead is how far in the future a claim may seem to be: clocks differ.
	maxAhead = time.Hour
)

// A Bin is the claims of a quarter of an hour, or of an hour if Wide.
type Bin struct {
	// Start is in quarters of an hour since 1970.
	Start int64
	Wide  bool
	// Claims is the number of claims, Late that of those that were not served within the objective,
	// Peak the largest number within one minute.
	Claims, Late, Peak uint32
}

// Begin returns when the bin begins.
func (b Bin) Begin() time.Time { return time.Unix(b.Start*quarter, 0).UTC() }

// Length returns how long it is.
func (b Bin) Length() time.Duration {
	if b.Wide {
		return time.Hour
	}
	return quarter * time.Second
}

// A Gap is a time during which nobody looked.
type Gap struct{ From, To time.Time }

// A History is a record of claims. The zero value is empty. It is stored by MarshalBinary, in at most
// 75,000 bytes, which are 100,000 as base64.
type History struct {
	bins []Bin
	gaps []Gap
	// seen are hashes of the latest claims, in the order in which they were added.
	seen []uint64
	// imported is the quarter of an hour before which claims were imported: nobody knows whether they
	// were late. It is 0 if none were.
	imported int64
	// minute and inMinute count the claims of the current minute, for Peak.
	minute   int64
	inMinute uint32
}

// Bins returns the bins with claims, oldest first.
func (h *History) Bins() []Bin { return slices.Clone(h.bins) }

// Gaps returns the times during which nobody looked, oldest first.
func (h *History) Gaps() []Gap { return slices.Clone(h.gaps) }

// Claims returns the number of recorded claims.
func (h *History) Claims() int {
	n := 0
	for _, b := range h.bins {
		n += int(b.Claims)
	}
	return n
}

// Add records a claim: a name that is its own, such as its UID, when it was created, and whether it
// was late. It returns false if it ignores the claim, because it was recorded before, is in the
// future by more than an hour, or is older than two years.
func (h *History) Add(id string, at time.Time, late bool, now time.Time) bool {
	if at.After(now.Add(maxAhead)) || at.Before(now.AddDate(0, 0, -keepDays)) {
		return false
	}
	key := hashClaim(id)
	if slices.Contains(h.seen, key) {
		return false
	}
	h.seen = append(h.seen, key)
	h.seen = h.seen[max(0, len(h.seen)-maxSeen):]
	h.addToBin(at, late)
	return true
}

// AddImported records claims from before a time, at which recording began, and forgets what was recorded
// of the time before. It returns how many it recorded: not those in the quarter of an hour in which
// recording began, and none that are older than two years. Claims must be in order.
func (h *History) AddImported(claims []time.Time, before, now time.Time) int {
	oldest, end := now.AddDate(0, 0, -keepDays).Unix()/quarter, before.Unix()/quarter
	known := h.bins
	h.bins = nil
	n := 0
	for _, at := range claims {
		if b := at.Unix() / quarter; b >= oldest && b < end {
			h.addToBin(at, false)
			n++
		}
	}
	for _, b := range known {
		if b.Start >= end {
			h.bins = append(h.bins, b)
		}
	}
	h.imported = max(h.imported, end)
	return n
}

// ImportedUntil returns the time before which claims were imported: nobody knows whether they were late.
// It is zero if none were.
func (h *History) ImportedUntil() time.Time {
	if h.imported == 0 {
		return time.Time{}
	}
	return time.Unix(h.imported*quarter, 0).UTC()
}

func hashClaim(id string) uint64 {
	f := fnv.New64a()
	f.Write([]byte(id))
	return f.Sum64()
}

func (h *History) addToBin(at time.Time, late bool) {
	if minute := at.Unix() / 60; minute != h.minute {
		h.minute, h.inMinute = minute, 0
	}
	h.inMinute++
	b := h.binAt(at.Unix() / quarter)
	b.Claims++
	b.Peak = max(b.Peak, h.inMinute)
	if late {
		b.Late++
	}
}

// AddLate records that a claim that was added with late unset was late. At is when it was created.
func (h *History) AddLate(at time.Time) {
	if b := h.binAt(at.Unix() / quarter); b.Late < b.Claims {
		b.Late++
	}
}

// binAt returns the bin that has a quarter of an hour. It adds one if there is none.
func (h *History) binAt(start int64) *Bin {
	i, found := slices.BinarySearchFunc(h.bins, start, func(b Bin, s int64) int { return cmp.Compare(b.Start, s) })
	if found {
		return &h.bins[i]
	}
	if i > 0 && h.bins[i-1].Wide && start < h.bins[i-1].Start+hourBins {
		return &h.bins[i-1]
	}
	h.bins = slices.Insert(h.bins, i, Bin{Start: start})
	return &h.bins[i]
}

// AddGap records that nobody looked from one time to another.
func (h *History) AddGap(from, to time.Time) {
	if !from.Before(to) {
		return
	}
	h.gaps = append(h.gaps, Gap{from.UTC(), to.UTC()})
	slices.SortFunc(h.gaps, func(a, b Gap) int { return a.From.Compare(b.From) })
	merged := h.gaps[:1]
	for _, g := range h.gaps[1:] {
		last := &merged[len(merged)-1]
		switch {
		case g.From.After(last.To):
			merged = append(merged, g)
		case g.To.After(last.To):
			last.To = g.To
		}
	}
	h.gaps = merged[max(0, len(merged)-maxGaps):]
}

// Compact turns old bins into hours, and drops the oldest and those that are in the future by more
// than an hour; it cuts gaps in the same way. Call it before the record is stored and after it was read: a forged record
// may contain any times.
func (h *History) Compact(now time.Time) {
	wideBefore := now.AddDate(0, 0, -fineDays).Unix() / quarter / hourBins * hourBins
	oldest, newest := now.AddDate(0, 0, -keepDays).Unix()/quarter, now.Add(maxAhead).Unix()/quarter
	var out []Bin
	for _, b := range h.bins {
		if b.Start < oldest || b.Start > newest {
			continue
		}
		if b.Start < wideBefore && !b.Wide {
			b.Start, b.Wide = b.Start/hourBins*hourBins, true
		}
		if n := len(out); n > 0 && out[n-1].Start == b.Start {
			out[n-1].merge(b)
			continue
		}
		out = append(out, b)
	}
	h.bins = out
	h.cutGaps(now.AddDate(0, 0, -keepDays).UTC(), now.Add(maxAhead).UTC())
}

// cutGaps keeps the parts of the gaps that lie between two times.
func (h *History) cutGaps(from, to time.Time) {
	var kept []Gap
	for _, g := range h.gaps {
		if g.From.Before(from) {
			g.From = from
		}
		if g.To.After(to) {
			g.To = to
		}
		if g.From.Before(g.To) {
			kept = append(kept, g)
		}
	}
	h.gaps = kept
}

func (b *Bin) merge(o Bin) {
	b.Claims += o.Claims
	b.Late += o.Late
	b.Peak = max(b.Peak, o.Peak)
}
