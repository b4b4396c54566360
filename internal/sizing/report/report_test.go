package report

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

var near = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })

// newRecord returns the record of two days: a cluster runs and two hibernate, three are recommended to run, and an
// hour has one claim at 15 minutes past. Every fourth waits five minutes.
func newRecord() *record.Record {
	t := record.NewTracker(nil)
	var claims []record.Claim
	clusters := []record.Cluster{{Name: "a"}, {Name: "b", State: record.Hibernating}, {Name: "c", State: record.Hibernating}}
	for i := range 2*24*60 + 1 {
		now := noon.Add(time.Duration(i) * time.Minute)
		if i%60 == 15 {
			c := record.Claim{ID: now.String(), Created: now, Running: now, AtOnce: true}
			if i/60%4 == 0 {
				c.AtOnce, c.Running = false, now.Add(5*time.Minute)
			}
			claims = append(claims, c)
		}
		t.Observe(record.Objects{Now: now, Claims: claims, Clusters: clusters}, sizing.Objective{Share: 0.99}, "UTC")
		f := &sizing.Forecast{Mean: 2, Low: 1, High: 3}
		if i >= 24*60 {
			f.Low = 2
		}
		t.Note(record.Note{
			Pool: sizing.Setting{Running: 1, Size: 3}, Recommended: sizing.Setting{Running: 3, Size: 3}, Static: sizing.Setting{Running: 2, Size: 4},
			Computed: i >= 24*60, Forecast: f,
		}, now)
	}
	return &t.Record
}

func TestAReportOfTwoDays(t *testing.T) {
	got := New(newRecord(), Options{From: noon.AddDate(0, 0, -7), To: noon.AddDate(0, 0, 9), Prices: sizing.Prices{Running: 10, Hibernating: 1}, Promised: 0.99})
	want := Report{
		From: noon, To: noon.AddDate(0, 0, 2), ObservedHours: 48,
		Claims:        Claims{Total: 48, Served: 48, AtOnce: 36, AtOnceShare: 0.75, P90: 304, P99: 304, Max: 304},
		Hours:         Hours{RunningIdle: 48, Hibernating: 96},
		Costs:         &Costs{Total: 576, Running: 480, Hibernating: 96, SavedByHibernating: 96 * 9, CouldSave: -48 * 18, SavedByPolicy: 48 * 10},
		Coverage:      &Coverage{Promised: 0.99, Seen: 0.75},
		ComputedHours: 24,
		Forecast:      &Forecast{Forecasts: 189, Within: 96, Expected: 2, Seen: 1},
	}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error(diff)
	}
}

func TestAReportIsOfItsTimeOnly(t *testing.T) {
	r := newRecord()
	got := New(r, Options{From: noon.Add(6 * time.Hour), To: noon.Add(12 * time.Hour)})
	if got.ObservedHours != 6 || got.Claims.Total != 6 || got.Claims.Served != 6 || got.Hours.RunningIdle != 6 || got.Costs != nil || got.Coverage != nil {
		t.Errorf("%+v", got)
	}
	if got := New(&record.Record{}, Options{From: noon, To: noon.Add(time.Hour)}); got.Claims.Total != 0 || got.Forecast != nil {
		t.Errorf("an empty record: %+v", got)
	}
}

func TestAMonth(t *testing.T) {
	r := newRecord()
	p := sizing.Prices{Running: 10, Hibernating: 1}
	got := NewMonth(&r.Details, p, noon.AddDate(0, 0, 2))
	want := Month{
		Month: "2026-03", RunningHours: 48, HibernatingHours: 96, ComparedSince: noon,
		Costs: &Costs{Total: 576, Running: 480, Hibernating: 96, SavedByHibernating: 864, CouldSave: -48 * 18, SavedByPolicy: 480},
	}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error(diff)
	}
	if got := NewMonth(&r.Details, p, noon.AddDate(0, 1, 0)); got.RunningHours != 0 || got.Costs != nil {
		t.Errorf("the next month: %+v", got)
	}
	if got := NewMonth(&r.Details, sizing.Prices{}, noon); math.Abs(got.RunningHours-48) > 1e-6 || got.Costs != nil {
		t.Errorf("without prices: %+v", got)
	}
}

func TestCostsByDepthOfSleep(t *testing.T) {
	tr := record.NewTracker(nil)
	clusters := []record.Cluster{{Name: "a", State: record.Hibernating, Depth: cloud.DepthFreeze}, {Name: "b", State: record.Hibernating}}
	for i := range 61 {
		tr.Observe(record.Objects{Now: noon.Add(time.Duration(i) * time.Minute), Clusters: clusters}, sizing.Objective{Share: 0.99}, "UTC")
	}
	frozen := 4.0
	p := sizing.Prices{Running: 10, Hibernating: 1, Frozen: &frozen}
	want := &Costs{Total: 5, Hibernating: 5, Shallow: sizing.PerShallowDepth[float64]{Freeze: 4}, SavedByHibernating: 15}
	got := New(&tr.Record, Options{From: noon, To: noon.Add(time.Hour), Prices: p})
	if diff := cmp.Diff(want, got.Costs, near); diff != "" || got.Hours.Shallow.Freeze != 1 {
		t.Errorf("%+v\n%s", got.Hours, diff)
	}
	month := NewMonth(&tr.Details, p, noon.Add(time.Hour))
	if diff := cmp.Diff(want, month.Costs, near); diff != "" || math.Abs(tr.Spent(p, noon.Add(time.Hour))-5) > 1e-6 {
		t.Errorf("a month: %s", diff)
	}
}

func TestPointsOfAChart(t *testing.T) {
	r := newRecord()
	p := NewPoints(r, noon.Add(-time.Hour), noon.AddDate(0, 0, 2), time.Hour, time.UTC)
	if len(p) != 49 {
		t.Fatalf("%d points", len(p))
	}
	if p[0].Known || p[0].Noted || p[0].Claims != 0 {
		t.Errorf("before the record: %+v", p[0])
	}
	q := p[1]
	if !q.Known || q.Clusters[record.Running] != 1 || q.Clusters[record.Hibernating] != 2 || q.Claims != 1 || q.Waited != 1 || q.LongestWait != 304*time.Second ||
		q.Recommended.Running != 3 || q.Forecast == nil || q.Seen != 1 || !q.Compared {
		t.Errorf("the first hour: %+v", q)
	}
	if last := p[48]; !last.Known || last.Waited != 0 {
		t.Errorf("the last hour: %+v", last)
	}
	for _, one := range NewPoints(r, noon, noon.Add(2*time.Hour), record.QuarterLength, time.UTC) {
		if (one.Claims == 1) != (one.At.Minute() == 15) {
			t.Errorf("%s has %d claims", one.At, one.Claims)
		}
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	daily := NewPoints(r, noon.AddDate(0, 0, -2), noon.AddDate(0, 0, 2), 24*time.Hour, newYork)
	claims := 0
	for _, one := range daily {
		claims += one.Claims
		if one.At.In(newYork).Hour() != 0 || one.Forecast != nil {
			t.Errorf("a day: %+v", one)
		}
	}
	total := New(r, Options{From: noon.AddDate(0, 0, -2), To: noon.AddDate(0, 0, 2)}).Claims.Total
	if len(daily) != 5 || claims != total {
		t.Errorf("%d days with %d claims, and the report has %d", len(daily), claims, total)
	}
	for _, one := range NewPoints(r, time.Date(2026, 3, 8, 17, 0, 0, 0, time.UTC), noon.AddDate(0, 0, 20), 48*time.Hour, newYork) { // clocks go forward that day
		if one.At.In(newYork).Format("15:04") != "00:00" {
			t.Errorf("a day begins at %s", one.At.In(newYork))
		}
	}
	if got := NewPoints(r, noon, noon.AddDate(0, 0, -1), time.Hour, time.UTC); len(got) != 0 {
		t.Errorf("a time that ends before it begins: %d points", len(got))
	}
	if got := NewPoints(r, noon, noon.AddDate(9, 0, 0), time.Hour, time.UTC); len(got) != 1000 {
		t.Errorf("nine years: %d points", len(got))
	}
}

func TestWithoutARecordTheClaimsThatExistCount(t *testing.T) {
	got := FromObjects(record.Objects{Now: noon, Claims: []record.Claim{
		{Created: noon.Add(-time.Minute), Running: noon, AtOnce: true},
		{Created: noon.Add(-time.Hour), Running: noon.Add(-50 * time.Minute)},
		{Created: noon.Add(-time.Minute)},
		{Created: noon.Add(-48 * time.Hour), Running: noon},
	}}, noon.Add(-24*time.Hour))
	if got.Claims.Total != 3 || got.Claims.Served != 2 || got.Claims.AtOnce != 1 || got.Claims.Max < 550 {
		t.Errorf("%+v", got)
	}
}
