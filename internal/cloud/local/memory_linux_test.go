package local

import "testing"

func TestParseMeminfo(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:       24683556 kB\nMemFree: 1 kB\nMemAvailable:       2048 kB\n": 2 << 20,
		"MemTotal: 1 kB\n": Unlimited,
		"":                 Unlimited,
	} {
		if got := parseMeminfo(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
