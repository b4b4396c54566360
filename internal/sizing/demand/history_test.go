package demand

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTheOrderOfClaimsDoesNotMatter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	times := make([]time.Time, 500)
	for i := range times {
		times[i] = now.Add(-time.Duration(r.IntN(3600*24*40)) * time.Second).In(time.FixedZone("x", r.IntN(36000)))
	}
	record := func() []Bin {
		var h History
		for _, i := range r.Perm(len(times)) {
			h.Add(fmt.Sprint(i), times[i], i%7 == 0, now)
			h.Add(fmt.Sprint(i), times[i], i%7 == 0, now) // again
		}
		h.Compact(now)
		if h.Claims() != len(times) {
			t.Errorf("%d claims, want %d", h.Claims(), len(times))
		}
		bins := h.Bins()
		for i := range bins {
			bins[i].Peak = 0 // depends on the order
		}
		return bins
	}
	if diff := cmp.Diff(record(), record()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsIgnored(t *testing.T) {
	var h History
	for name, c := range map[string]struct {
		at   time.Time
		want bool
	}{
		"now":                {now, true},
		"clocks differ":      {now.Add(30 * time.Minute), true},
		"tomorrow":           {now.AddDate(0, 0, 1), false},
		"three years ago":    {now.AddDate(-3, 0, 0), false},
		"almost two years":   {now.AddDate(0, 0, -729), true},
		"before the epoch":   {time.Unix(-1e9, 0), false},
		"the zero time":      {time.Time{}, false},
		"far, far in future": {time.Unix(1<<40, 0), false},
	} {
		if got := h.Add(name, c.at, false, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if h.Add("now", now, false, now) {
		t.Error("the same claim was counted twice")
	}
}

func TestTwoBusyYearsFitIntoTheLimit(t *testing.T) {
	var h History
	for at := now.AddDate(0, 0, -730); at.Before(now); at = at.Add(15 * time.Minute) {
		b := h.binAt(at.Unix() / quarter)
		b.Claims, b.Late, b.Peak = 1000, 3, 20
		if at.Unix()%(86400*30) == 0 {
			h.Compact(at)
		}
	}
	for i := range maxSeen {
		h.Add(fmt.Sprint(i), now, false, now)
	}
	h.Compact(now)
	raw, err := h.MarshalBinary()
	if err != nil || len(raw) > maxBytes {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	var again History
	if err := again.UnmarshalBinary(raw); err != nil {
		t.Fatal(err)
	}
	if first := again.Bins()[0].Begin(); first.After(now.AddDate(0, 0, -365)) {
		t.Errorf("the record begins at %s: less than a year", first)
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	var h, again History
	for i := range 300 {
		h.Add(fmt.Sprint(i), now.Add(-time.Duration(i*i)*time.Minute), i%5 == 0, now)
	}
	h.AddGap(now.Add(-3*time.Hour), now.Add(-2*time.Hour))
	h.AddGap(now.Add(-150*time.Minute), now.Add(-time.Hour))
	h.AddGap(now, now)
	h.Compact(now)
	raw, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.UnmarshalBinary(raw); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h.Bins(), again.Bins()); diff != "" {
		t.Error(diff)
	}
	if want := []Gap{{now.Add(-3 * time.Hour), now.Add(-time.Hour)}}; !cmp.Equal(again.Gaps(), want) {
		t.Errorf("gaps %v, want %v", again.Gaps(), want)
	}
	if again.Add("0", now, true, now) {
		t.Error("a claim from before was counted again")
	}
}

// No bytes, however broken, make it panic or take much memory.
func TestBrokenRecordsAreRefused(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var h History
	for i := range 100 {
		h.Add(fmt.Sprint(i), now.Add(-time.Duration(i)*time.Hour), false, now)
	}
	good, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		raw := append([]byte{}, good[:r.IntN(len(good)+1)]...)
		for range r.IntN(4) {
			if len(raw) > 0 {
				raw[r.IntN(len(raw))] = byte(r.Uint32())
			}
		}
		var again History
		if again.UnmarshalBinary(raw) != nil && len(again.Bins()) > 0 {
			t.Fatalf("%x was half read", raw)
		}
		again.Compact(now)
	}
	for _, raw := range [][]byte{nil, {}, {9}, good[:len(good)-1], append(append([]byte{}, good...), 0)} {
		if (&History{}).UnmarshalBinary(raw) == nil {
			t.Errorf("%x was read", raw)
		}
	}
}

func TestAPeakIsTheMostClaimsOfAMinute(t *testing.T) {
	var h History
	for i := range 10 {
		h.Add(fmt.Sprint(i), now.Add(time.Duration(i/4)*time.Minute), false, now)
	}
	if b := h.Bins(); len(b) != 1 || b[0].Peak != 4 || b[0].Claims != 10 {
		t.Errorf("%+v", b)
	}
}

func TestImportedClaimsReplaceWhatWasRecordedBefore(t *testing.T) {
	var h History
	began := now.Add(-time.Hour - 7*time.Minute) // within a quarter of an hour
	h.Add("existed", began.Add(-3*time.Hour), true, now)
	h.Add("in the quarter", began.Add(-time.Minute), false, now)
	h.Add("recorded", began.Add(20*time.Minute), true, now)
	imported := []time.Time{
		now.AddDate(-3, 0, 0), began.AddDate(0, 0, -40), began.Add(-3 * time.Hour), began.Add(-2 * time.Hour), began.Add(-time.Minute), began.Add(20 * time.Minute),
	}
	if n := h.AddImported(imported, began, now); n != 3 {
		t.Errorf("%d imported, want 3", n)
	}
	late := 0
	for _, b := range h.Bins() {
		late += int(b.Late)
	}
	if h.Claims() != 5 || late != 1 {
		t.Errorf("%d claims, %d late", h.Claims(), late)
	}
	if until := h.ImportedUntil(); until.After(began) || began.Sub(until) >= 15*time.Minute {
		t.Errorf("imported until %s", until)
	}
	if h.Add("recorded", began.Add(20*time.Minute), true, now) {
		t.Error("a claim that was recorded is recorded again")
	}
	h.Compact(now)
	raw, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again History
	if err := again.UnmarshalBinary(raw); err != nil || !again.ImportedUntil().Equal(h.ImportedUntil()) {
		t.Errorf("%v: imported until %s", err, again.ImportedUntil())
	}
	if diff := cmp.Diff(h.Bins(), again.Bins()); diff != "" {
		t.Error(diff)
	}
	if !(&History{}).ImportedUntil().IsZero() {
		t.Error("claims of an empty history were imported")
	}
}
