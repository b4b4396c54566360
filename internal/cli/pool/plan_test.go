package pool

import (
	"testing"
	"time"

	"hotspare.io/hotspare/internal/explain/poolforecast"
	"hotspare.io/hotspare/internal/pool"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestManyCreationsAreOneLine(t *testing.T) {
	f := manifestForecast{Forecast: poolforecast.Forecast{Plan: pool.Decide(pool.Snapshot{Settings: pool.Settings{Size: 2_000_000}, Now: now})}}
	if rows := BuildStepTable(f.Forecast).Rows; len(rows) != 1 || rows[0][0] != "create 10000 clusters: size is 2000000" {
		t.Errorf("got %v", rows)
	}
}
