package poolcharts

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/plot"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
	"hotspare.io/hotspare/internal/sizing/report"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// newPoints returns two days: nobody looked in the first hour.
func newPoints() []report.Point {
	out := make([]report.Point, 48)
	for i := range out {
		p := &out[i]
		p.At = monday.Add(time.Duration(i) * time.Hour)
		if i == 0 {
			continue
		}
		p.Known, p.Noted, p.Claims, p.Judged = true, true, 2, 2
		p.Clusters[record.Running], p.Clusters[record.Hibernating], p.Clusters[record.Claimed] = 1, 3, 7
		p.Recommended = sizing.Setting{Running: 2, Size: 4}
		p.Forecast, p.Seen, p.Compared = &sizing.Forecast{Mean: 1.5, High: 3 - i%2*2}, 2, i < 47
		if i == 5 {
			p.Waited, p.LongestWait = 1, 4*time.Minute
		}
	}
	return out
}

func TestEachChartHasWordsAndATable(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	charts := New(newPoints(), berlin)
	for _, c := range charts {
		var layers []string
		for _, l := range c.Layers {
			if len(l.Values) != 48 {
				t.Errorf("%s: layer %s has %d values", c.ID, l.Name, len(l.Values))
			}
			layers = append(layers, l.Name)
		}
		got = append(got, c.ID+": "+strings.Join(layers, ", ")+": "+c.Summary)
		if len(c.Table.Rows) != maxRows {
			t.Errorf("%s: %d rows", c.ID, len(c.Table.Rows))
		}
		for _, row := range c.Table.Rows {
			if len(row) != len(c.Table.Head) {
				t.Errorf("%s: row %v below %v", c.ID, row, c.Table.Head)
			}
		}
	}
	want := []string{
		"clusters: running idle, hibernating, recommended to run: On average 4 clusters had no claim, and 1 of them ran idle.",
		"claims: claims, that waited: 94 claims, 1 of them waited for a running cluster.",
		"waits: longest wait: The longest wait of a claim that was served was 4m0s.",
		"forecast: expected in 9 of 10 hours, expected, seen: 50% of the hours had as many claims as the band of 90% says.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Mon 2 Mar 01:00", "1", "3", "2"}, charts[0].Table.Rows[0]); diff != "" {
		t.Errorf("the average of what is known: %s", diff)
	}
	if diff := cmp.Diff([]string{"Mon 2 Mar 05:00", "4", "1"}, charts[1].Table.Rows[2]); diff != "" {
		t.Errorf("the sum: %s", diff)
	}
	if diff := cmp.Diff([]string{"Mon 2 Mar 05:00", "0–2", "1.5", "2"}, charts[3].Table.Rows[2]); diff != "" {
		t.Errorf("the average band: %s", diff)
	}
	if !math.IsNaN(charts[0].Layers[0].Values[0]) || charts[0].Layers[0].Kind != plot.Stack {
		t.Error("a time in which nobody looked is not a gap")
	}
}

// Claims wait, and none was served yet: that is to be seen. Of a claim from before the record, nobody knows whether it waited.
func TestClaimsThatWaitNow(t *testing.T) {
	points := newPoints()
	points[0].Claims = 5
	points[40].Waiting, points[40].Claims = 3, 5 // three of them wait
	c := New(points, time.UTC)[1]
	const want = "102 claims. The waits of 94 are known, 1 of them waited for a running cluster. At most 3 waited at the same time."
	if c.Summary != want {
		t.Errorf("%s\nwant %s", c.Summary, want)
	}
	if n := len(c.Layers); n != 3 || c.Layers[2].Name != "waiting at the same time" || c.Layers[2].Values[40] != 3 || !math.IsNaN(c.Layers[1].Values[0]) {
		t.Errorf("%d layers: %+v", n, c.Layers)
	}
	if got := c.Table.Rows[0]; got[1] != "7" || got[2] != "0" {
		t.Errorf("the first row: %v", got)
	}
}

func TestNothingWasRecorded(t *testing.T) {
	charts := New(make([]report.Point, 4), time.UTC)
	if len(charts) != 2 || charts[0].Summary != "Nothing was recorded in this time." {
		t.Errorf("%+v", charts)
	}
	if got := New(nil, time.UTC); len(got) != 2 {
		t.Errorf("%d charts of no points", len(got))
	}
}

func TestNumbersForPeople(t *testing.T) {
	for got, want := range map[string]string{
		FormatWait(0): "0s", FormatWait(304.2): "5m4s", FormatWait(7380): "2h3m",
		FormatMoney(1234.56): "1235", FormatMoney(-3.2): "-3.20", FormatShare(0.9999): "99.9%", FormatShare(1): "100%",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
