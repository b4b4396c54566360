package fleet

import "testing"

func TestUsageBarsShowSmallShares(t *testing.T) {
	for _, tt := range []struct {
		used, most int
		want       string
	}{
		{0, 0, "-"},
		{0, 10, "░░░░░░░░░░░░"},
		{1, 100, "█░░░░░░░░░░░"},
		{50, 100, "██████░░░░░░"},
		{99, 100, "███████████░"},
		{100, 100, "████████████"},
		{120, 100, "████████████"},
	} {
		if got := drawUsageBar(tt.used, tt.most); got != tt.want {
			t.Errorf("%d of %d: %s, want %s", tt.used, tt.most, got, tt.want)
		}
	}
}
