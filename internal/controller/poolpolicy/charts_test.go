package poolpolicy_test

import (
	"testing"
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing/record"
)

func priced(s *v1alpha1.PoolPolicySpec) {
	asleep := v1alpha1.Decimal("0.1")
	s.Prices = &v1alpha1.PolicyPrices{Running: "1", Hibernating: &asleep}
}

// readRecord reads the record that the controller has saved.
func (h *hub) readRecord() *record.Record {
	h.Helper()
	cm := h.record()
	if cm == nil {
		h.Fatal("there is no record")
	}
	r, problem, err := record.Read(cm.BinaryData, cm.Data, h.clock.Now())
	if err != nil || problem != nil {
		h.Fatal(problem, err)
	}
	return r
}

func TestWhatChartsNeedIsRecordedAndSurvivesARestart(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend, priced), newCluster("a"))
	h.work(8)
	h.run(2 * time.Hour)
	h.restart()
	h.run(2 * time.Hour)
	r := h.readRecord()
	seconds, at, noted, forecasts := int64(0), int64(0), 0, 0
	for i := range r.Quarters {
		q := &r.Quarters[i]
		seconds += q.Seconds
		at += q.Waits.AtOnce()
		if q.Average(record.Running) < 1 && q.Seconds > 0 {
			t.Fatalf("a cluster ran all the time: %+v", q)
		}
		if q.Noted {
			noted++
			want(t, "the pool", q.Pool.Size, 8)
		}
		if q.Forecast != nil {
			forecasts++
		}
	}
	if hours := seconds / 3600; hours < 8*24-1 || hours > 8*24+1 || at < 40 || noted < 8*24 || forecasts < 10 {
		t.Errorf("%d hours, %d claims served at once, %d notes, %d forecasts", hours, at, noted, forecasts)
	}
	st := h.policy().Status
	if f := st.Forecast; f == nil || f.High < f.Low || f.Compared == 0 || f.Within == "" {
		t.Errorf("forecast %+v", f)
	}

	m := st.Month
	if m == nil || m.Month != h.clock.Now().Format("2006-01") || m.Cost == "" || m.RunningHours == "0" || m.CouldSave == "" {
		t.Errorf("month %+v", m)
	}
}

func TestUnreadableChartDataDoesNotCostTheClaims(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend), newCluster("a"))
	h.work(2)
	claims := h.readRecord().Demand.Claims()
	cm := h.record()
	cm.BinaryData[record.QuartersKey] = []byte("broken")
	if err := h.Update(h.Context(), cm); err != nil {
		t.Fatal(err)
	}
	h.restart()
	h.run(2 * time.Hour)
	r := h.readRecord()
	want(t, "claims", r.Demand.Claims(), claims)
	want(t, "RecordUsable", h.says(v1alpha1.PolicyRecordUsable), "True Recorded")
	if n := len(r.Quarters); n < 7 || n > 10 {
		t.Errorf("%d quarters after two hours", n)
	}
}

// An earlier version writes the two keys that it knows, and keeps the third.
func TestAnEarlierVersionKeepsTheChartData(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend), newCluster("a"))
	h.run(3 * time.Hour)
	cm := h.record()
	h.restart()
	h.clock.SetTime(h.clock.Now().Add(6 * time.Hour)) // the earlier version ran meanwhile
	r, _, err := record.Read(cm.BinaryData, cm.Data, h.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	r.Until = h.clock.Now().UTC()
	claims, details, err := r.Encode(h.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey] = claims, details
	if err := h.Update(h.Context(), cm); err != nil {
		t.Fatal(err)
	}
	h.run(2 * time.Hour)
	again := h.readRecord()
	first, last := again.Quarters[0], again.Quarters[len(again.Quarters)-1]
	if !first.Begin().Equal(monday) || last.Begin().Before(monday.Add(10*time.Hour)) || len(again.Quarters) > 25 {
		t.Errorf("%d quarters from %s to %s, want a gap", len(again.Quarters), first.Begin(), last.Begin())
	}
}
