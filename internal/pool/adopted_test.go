package pool_test

import (
	"testing"

	"hotspare.io/hotspare/internal/pool"
)

// A pool counts and assigns the clusters that users add to it, and does not delete them by its own
// choice: nothing could create them again.
func TestAdoptedClustersAreSparesThatThePoolKeeps(t *testing.T) {
	deleting := with(settings(0, 0), func(s *pool.Settings) { s.Deleting = true })
	for name, c := range map[string]struct {
		set             pool.Settings
		members, claims string
		want            string
	}{
		"a pool of size zero keeps them":                {settings(0, 0), "a:standby+adopted b:standby+adopted", "", ""},
		"a claim resumes one":                           {settings(0, 0), "a:standby+adopted", "x", "start a"},
		"a claim gets one that runs":                    {settings(0, 0), "a:assignable+adopted", "x", "bind x a"},
		"they count toward the size":                    {settings(2, 0), "a:standby+adopted", "", "create"},
		"the pool deletes those that it created":        {settings(1, 0), "a:standby+adopted b:standby", "", "delete b"},
		"they are never stale":                          {settings(1, 0), "a:standby+adopted", "", ""},
		"a broken one stays":                            {settings(0, 0), "a:standby+adopted+timedout", "", ""},
		"a broken one does not delay stale ones":        {settings(1, 0), "a:standby+adopted+timedout b:standby+stale", "", "delete b"},
		"a broken one is replaced and not deleted":      {settings(1, 0), "a:standby+adopted+timedout", "", "create"},
		"a released one leaves the pool":                {settings(0, 0), "a:claimed=x+adopted", "x=a!", "delete a"},
		"one that a user marks leaves the pool":         {settings(0, 0), "a:marked+adopted", "", "delete a"},
		"one leaves with a pool that is being deleted":  {deleting, "a:standby+adopted", "", "delete a"},
		"without a user's protection they are replaced": {settings(0, 0), "a:standby", "", "delete a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool.Decide(pool.Snapshot{Settings: c.set, Members: members(c.members), Claims: claims(c.claims), Now: noon})
			if got := brief(p); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(p.Report.Stale)+len(p.Report.Unversioned) > 0 && c.members != "a:standby+adopted+timedout b:standby+stale" {
				t.Errorf("stale: %v, without a version: %v", p.Report.Stale, p.Report.Unversioned)
			}
		})
	}
}
