package base

import (
	"strings"
	"testing"
)

func TestPricesThatCannotBeUsed(t *testing.T) {
	for text, want := range map[string]string{
		"running=1.2,hibernating=0.1, frozen = 0.4": "",
		"running=1.2eur":            `"running=1.2eur" has no price from 0 to 1000000000: write running=1.2`,
		"running=1.2.3":             "has no price",
		"running=12;hibernating=1":  "has no price",
		"running=-1":                "has no price",
		"running=NaN":               "has no price",
		"running=Inf":               "has no price",
		"running":                   "has no price",
		"running=1,running=2":       "running has two prices: keep one",
		"running=1,asleep=2":        `"asleep" is not running, hibernating, frozen, suspended or stopped`,
		"hibernating=0.1":           `"hibernating=0.1" has no price of running clusters above 0`,
		"running=0,hibernating=0.1": "has no price of running clusters above 0",
	} {
		p, set, err := ParsePrices(text)
		switch {
		case want == "" && (err != nil || !set || p.Running != 1.2 || p.Hibernating != 0.1 || p.Frozen == nil || *p.Frozen != 0.4):
			t.Errorf("%q: %+v, %v, %v", text, p, set, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
