package pool_test

import (
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

// What an install fails for may have been mended under the same name. What works is left alone.
func TestInstallsThatFailAreReplacedWhenTheirSourcesChange(t *testing.T) {
	with := func(sources string) pool.Settings {
		s := settings(1, 0)
		s.Sources = sources
		return s
	}
	blocked := with("newer")
	blocked.Blocked = "the Secret is broken"
	checkDecisions(t, map[string]decision{
		"an attempt failed":                      {with("newer"), "a:installing+sleep+failing+older", "", "delete a"},
		"it cannot begin":                        {with("newer"), "a:installing+sleep+stuck+older", "", "delete a"},
		"… though a claim waits":                 {with("newer"), "a:installing+sleep+stuck+older b:standby", "x", "start b, delete a"},
		"… and nothing has changed":              {with("older"), "a:installing+sleep+stuck+older", "", ""},
		"… and it does not say what it is of":    {with("newer"), "a:installing+sleep+stuck", "", ""},
		"… and nobody knows what there is":       {with(""), "a:installing+sleep+stuck+older", "", ""},
		"… and what there is now cannot be used": {blocked, "a:installing+sleep+stuck+older", "", ""},
		"… and somebody has paused it":           {with("newer"), "a:installing+sleep+stuck+older+paused", "", ""},
		"it gets on":                             {with("newer"), "a:installing+sleep+older", "", ""},
		"it is installed":                        {with("newer"), "a:standby+older", "", ""},
		"it is claimed":                          {with("newer"), "a:claimed=x+older b:standby", "x=a", ""},
	})
	p := pool.Decide(pool.Snapshot{Settings: with("older"), Members: members("a:installing+sleep+failing+older"), Now: noon})
	if p.Next != 30*time.Second {
		t.Errorf("they are looked at again after %s", p.Next)
	}
}
