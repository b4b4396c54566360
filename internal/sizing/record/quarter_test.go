package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
)

func TestAQuarterHasTheSecondsOfEachState(t *testing.T) {
	h := newHub(t)
	h.clusters = []Cluster{{Name: "a"}, {Name: "b", State: Hibernating}, {Name: "c", State: Claimed}, {Name: "d", State: Hibernating}}
	h.pass(0)
	for range 20 {
		h.pass(time.Minute)
	}
	q := h.t.Quarters
	if len(q) != 2 || q[0].Seconds != 900 || q[1].Seconds != 300 {
		t.Fatalf("%+v", q)
	}
	if q[0].Average(Running) != 1 || q[0].Average(Hibernating) != 2 || q[0].Average(Claimed) != 1 || q[0].Average(Installing) != 0 {
		t.Errorf("%+v", q[0])
	}
	if !q[1].Begin().Equal(noon.Add(QuarterLength)) {
		t.Errorf("it begins at %s", q[1].Begin())
	}
	h.restart(true)
	h.pass(10 * time.Minute)
	if q = h.t.Quarters; len(q) != 3 || q[1].Seconds != 900 {
		t.Errorf("after a restart: %+v", q)
	}
	h.pass(5 * time.Hour) // nobody looked
	q = h.t.Quarters
	if n := len(q); n != 3 {
		t.Errorf("%d quarters after a gap, want none of it: %+v", n, q)
	}
	h.pass(time.Minute)
	if last := h.t.Quarters[len(h.t.Quarters)-1]; last.Seconds != 60 {
		t.Errorf("after the gap: %+v", last)
	}
}

// Whatever happens, quarters are in order, no longer than they can be, and as many as are kept; they are read as
// they were written.
func TestRandomHistoriesOfQuarters(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := newHub(t)
	h.pass(0) // a record is written after the first observation
	for range 3000 {
		h.clusters = nil
		for i := range r.IntN(6) {
			depth := append(cloud.Depths(), "")[r.IntN(4)]
			h.clusters = append(h.clusters, Cluster{Name: fmt.Sprint(i), State: State(r.IntN(int(States))), Depth: depth})
		}
		switch r.IntN(40) {
		case 0:
			h.claim(r.IntN(2) == 0)
		case 1:
			h.claims = nil
		case 2:
			h.pass(time.Duration(r.IntN(300)) * time.Minute)
		case 3:
			h.pass(-time.Duration(r.IntN(3000)) * time.Second)
		case 4:
			if !h.t.IsAhead(h.now) { // a record that ends in the future cannot be read
				h.restart(true)
			}
		}
		h.pass(time.Duration(r.IntN(900)) * time.Second)
		h.t.Note(Note{Pool: sizing.Setting{Running: r.IntN(3), Size: r.IntN(9)}, Computed: true, Forecast: &sizing.Forecast{Mean: r.Float64(), High: 3}}, h.now)
	}
	q := h.t.Quarters
	if len(q) < 100 || len(q) > keptQuarters+1 {
		t.Errorf("%d quarters", len(q))
	}
	for i := range q {
		sum := int64(0)
		for _, n := range q[i].Clusters {
			sum += n
		}
		if q[i].Seconds < 0 || q[i].Seconds > quarterSeconds || sum > 5*q[i].Seconds || i > 0 && q[i].Start <= q[i-1].Start ||
			q[i].Shallow.Freeze+q[i].Shallow.Suspend > q[i].Clusters[Hibernating] {
			t.Fatalf("quarter %d: %+v", i, q[i])
		}
	}
	raw, err := q.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again Quarters
	if err := again.UnmarshalBinary(raw); err != nil {
		t.Fatal(err)
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= meanUnit })
	if diff := cmp.Diff(q, again, near); diff != "" {
		t.Error(diff)
	}
}

func TestTheLargestQuartersFitIntoTheLimit(t *testing.T) {
	var q Quarters
	for i := range keptQuarters {
		one := Quarter{Start: int64(i), Seconds: quarterSeconds, Waiting: maxClusters, Noted: true, Waits: Waits{}}
		for s := range one.Clusters {
			one.Clusters[s] = maxClusters * quarterSeconds
		}
		for w := range maxWaitIndex + 1 {
			one.Waits[w] = maxClusters
		}
		q = append(q, one)
	}
	raw, err := q.MarshalBinary()
	if err != nil || len(raw) > maxQuartersBytes {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	var again Quarters
	if err := again.UnmarshalBinary(raw); err != nil || len(again) < keptQuarters/5 || again[len(again)-1].Start != keptQuarters-1 {
		t.Errorf("%d quarters, %v", len(again), err)
	}
}

// An older version has written fewer numbers of each quarter, a newer one more.
func TestQuartersOfOtherVersionsAreRead(t *testing.T) {
	for name, fields := range map[string]int{"an older one": 3, "a newer one": 40} {
		raw := []byte{quartersVersion}
		raw = binary.AppendUvarint(raw, uint64(fields))
		raw = binary.AppendUvarint(raw, 2)
		for i := range 2 {
			raw = binary.AppendUvarint(raw, uint64(1000-999*i))
			for range fields {
				raw = binary.AppendUvarint(raw, 7)
			}
			raw = Waits{0: 5}.encode(raw)
		}
		var q Quarters
		if err := q.UnmarshalBinary(raw); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(q) != 2 || q[1].Start != 1001 || q[1].Seconds != 7 || q[1].Clusters[Running] != 7 || q[1].Waits.Claims() != 5 {
			t.Errorf("%s: %+v", name, q)
		}
	}
	h := newHub(t)
	h.pass(0)
	h.pass(time.Hour)
	binaryData, data := h.save()
	delete(binaryData, QuartersKey)
	if r, problem, err := Read(binaryData, data, h.now); err != nil || problem != nil || len(r.Quarters) != 0 {
		t.Errorf("a record without quarters: %v, %v", problem, err)
	}
	binaryData[QuartersKey] = []byte{9, 1, 2}
	if r, problem, err := Read(binaryData, data, h.now); err != nil || problem == nil || r == nil || !r.Since.Equal(noon) {
		t.Errorf("unreadable quarters: %v, %v", problem, err)
	}
	late := Quarters{{Start: h.now.Add(time.Hour).Unix() / quarterSeconds}}
	binaryData[QuartersKey], _ = late.MarshalBinary() // it cannot fail
	if r, problem, err := Read(binaryData, data, h.now); err != nil || problem == nil || len(r.Quarters) != 0 {
		t.Errorf("quarters from the future: %v, %v", problem, err)
	}
}

// No bytes, however broken, make it panic, take much memory, or give numbers that cannot be.
func TestForgedQuartersDoNoHarm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := newHub(t)
	h.clusters = []Cluster{{Name: "a"}, {Name: "b", State: Hibernating}}
	for range 500 {
		h.claim(r.IntN(2) == 0)
		h.pass(7 * time.Minute)
	}
	good, err := h.t.Quarters.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for range 3000 {
		raw := slices.Clone(good[:len(good)-r.IntN(2)*r.IntN(len(good))])
		for range r.IntN(3) {
			raw[r.IntN(len(raw))] = byte(r.Uint32())
		}
		var q Quarters
		if err := q.UnmarshalBinary(raw); err != nil {
			if len(q) > 0 {
				t.Fatalf("%x was half read", raw)
			}
			continue
		}
		read++
		for i := range q {
			if q[i].Seconds > quarterSeconds || q[i].Average(Running) > maxClusters || q[i].Waits.Quantile(1) < 0 {
				t.Fatalf("%+v", q[i])
			}
		}
		q.addSpan(h.now, h.now.Add(time.Hour), census{})
		if again, err := q.MarshalBinary(); err != nil || q.UnmarshalBinary(again) != nil {
			t.Fatal("what was read cannot be written again")
		}
	}
	if read < 100 {
		t.Errorf("only %d were read: the test checks too little", read)
	}
}

func TestWaitsAreExactToATenth(t *testing.T) {
	for seconds := 1; seconds < 1_000_000; seconds += 1 + seconds/7 {
		wait := time.Duration(seconds) * time.Second
		if got := waitAt(waitIndex(wait)); math.Abs((got-wait).Seconds()) > max(0.1*wait.Seconds(), 1) || got <= 0 {
			t.Errorf("%s counts as %s", wait, got)
		}
	}
	w := Waits{}
	for i := range 100 {
		w.AddClaim(Claim{Created: noon, Running: noon.Add(time.Duration(i) * time.Minute), AtOnce: i < 60})
	}
	if w.Claims() != 100 || w.AtOnce() != 60 || w.Quantile(0.5) != 0 || w.Quantile(0.6) != 0 || w.Quantile(0.9) < 80*time.Minute || w.Quantile(1) < 90*time.Minute {
		t.Errorf("%v: p50 %s, p90 %s, longest %s", w, w.Quantile(0.5), w.Quantile(0.9), w.Quantile(1))
	}
	if (Waits{}).Quantile(0.5) != 0 {
		t.Error("no claims have waited")
	}
}

func TestOutcomesOfClaimsAreOfTheQuarterInWhichTheyWereCreated(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	h.claim(true)
	h.claim(false)
	h.claim(false)
	h.pass(time.Minute)
	if q := h.t.Quarters; q[0].Waiting != 2 {
		t.Errorf("%+v", q)
	}
	h.pass(20 * time.Minute)
	h.claims[1].Running = noon.Add(21 * time.Minute)
	h.pass(time.Minute)
	h.claims = h.claims[:2]
	h.pass(time.Minute)
	if q := h.t.Quarters; q[0].Waits.AtOnce() != 1 || q[0].Waits.Claims() != 2 || q[0].Unserved != 1 || q[1].Waits.Claims() != 0 {
		t.Errorf("%+v", q)
	}
}

func TestADecisionIsNotedInItsQuarter(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	first := &sizing.Forecast{Mean: 1.5, Low: 0, High: 4}
	n := Note{
		Pool: sizing.Setting{Running: 3, Size: 10}, Recommended: sizing.Setting{Running: 2, Size: 8}, Static: sizing.Setting{Running: 5, Size: 10},
		Computed: true, Forecast: first,
	}
	h.t.Note(n, h.now)
	h.pass(10 * time.Minute)
	n.Recommended.Running, n.Computed, n.Forecast = 1, false, &sizing.Forecast{Mean: 9}
	h.t.Note(n, h.now)
	want := Quarter{
		Start: noon.Unix() / quarterSeconds, Seconds: 600, Noted: true, Forecast: first,
		Pool: sizing.Setting{Running: 3, Size: 10}, Recommended: sizing.Setting{Running: 1, Size: 8}, Static: sizing.Setting{Running: 5, Size: 10},
	}
	if diff := cmp.Diff(Quarters{want}, h.t.Quarters); diff != "" {
		t.Errorf("the settings at the end, and the forecast at the beginning: %s", diff)
	}
	h.pass(50 * time.Minute)
	h.t.Note(Note{}, h.now)
	c := h.t.Compared
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(&Compared{Since: noon, Pool: Hours{3, 7}, Recommended: Hours{7.0 / 6, 41.0 / 6}, Static: Hours{5, 5}}, c, near); diff != "" {
		t.Error(diff)
	}
	h.restart(true)
	if diff := cmp.Diff(c, h.t.Compared, near); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	h.pass(40 * 24 * time.Hour)
	h.t.Note(Note{}, h.now)
	if h.t.Compared != nil {
		t.Errorf("in another month: %+v", h.t.Compared)
	}
}

func TestARecordIsSavedSoonAfterTheClustersHaveChanged(t *testing.T) {
	h := newHub(t)
	h.now = noon.Add(5 * time.Minute)
	saves := 0
	for i := range 120 {
		h.clusters = nil
		if i >= 40 && i < 80 {
			h.clusters = []Cluster{{Name: "a"}}
		}
		h.pass(time.Minute)
		if h.t.NeedsSave(h.now) {
			h.t.MarkSaved(h.now)
			saves++
		}
	}
	if saves < 4 || saves > 8 {
		t.Errorf("%d saves in two hours with two changes", saves)
	}
}
