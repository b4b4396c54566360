package sizing

import (
	"math"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
)

func TestADepthWithoutAPriceCostsWhatHibernatingDoes(t *testing.T) {
	frozen, free := 0.5, 0.0
	for name, c := range map[string]struct {
		prices Prices
		want   [3]float64
	}{
		"one price":        {Prices{Running: 1, Hibernating: 0.1}, [3]float64{0.1, 0.1, 0.1}},
		"one that differs": {Prices{Running: 1, Hibernating: 0.1, Frozen: &frozen}, [3]float64{0.5, 0.1, 0.1}},
		"one that is free": {Prices{Running: 1, Hibernating: 0.1, Suspended: &frozen, Stopped: &free}, [3]float64{0.1, 0.5, 0}},
	} {
		for i, depth := range cloud.Depths() {
			if got := c.prices.AtDepth(depth); got != c.want[i] {
				t.Errorf("%s: %s costs %g, want %g", name, depth, got, c.want[i])
			}
		}
		want := 2*c.want[0] + 3*c.want[1] + 5*c.want[2]
		if got := c.prices.SleepCost(10, PerShallowDepth[float64]{Freeze: 2, Suspend: 3}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: ten hours cost %g, want %g", name, got, want)
		}
	}
}
