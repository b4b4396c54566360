package pool_test

import (
	"testing"

	"hotspare.io/hotspare/internal/pool"
)

// oneAtATime are settings of a pool with maxConcurrent 1.
func oneAtATime(size, running int) pool.Settings {
	return with(settings(size, running), func(s *pool.Settings) { s.MaxConcurrent = ptr(1) })
}

func deleted(s pool.Settings) pool.Settings {
	return with(s, func(s *pool.Settings) { s.Deleting = true })
}

type decision struct {
	set     pool.Settings
	members string
	claims  string
	want    string
}

func checkDecisions(t *testing.T, tests map[string]decision) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: tc.set, Members: members(tc.members), Claims: claims(tc.claims), Now: noon}
			if got := brief(pool.Decide(s)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestNoDeletionWaitsForAnInstall(t *testing.T) {
	frozen := with(settings(0, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(0) })
	checkDecisions(t, map[string]decision{
		"an unwanted install is deleted in its own place": {oneAtATime(0, 0), "a:installing", "", "delete a"},
		"so is a stale one":                                     {oneAtATime(1, 0), "a:installing+sleep+stale", "", "delete a"},
		"its successor waits until it is gone":                  {oneAtATime(1, 0), "a:deleting", "", ""},
		"a marked install is deleted in its own place":          {oneAtATime(1, 0), "a:installing+sleep+marked", "", "delete a"},
		"a surplus cluster waits for the install that is going": {oneAtATime(0, 0), "a:installing+sleep b:standby", "", "delete a"},
		"a released cluster does not wait for an install":       {oneAtATime(1, 0), "a:installing+sleep b:claimed=x", "x=b!", "delete b"},
		"nor does a marked one":                                 {oneAtATime(1, 0), "a:installing+sleep b:marked", "", "delete b"},
		"released clusters are deleted maxConcurrent at a time": {oneAtATime(1, 0), "a:installing+sleep b:claimed=x c:claimed=y", "x=b! y=c!", "delete b"},
		"a released cluster waits for another deletion":         {oneAtATime(0, 0), "a:deleting b:claimed=x", "x=b!", ""},
		"a broken one waits for an install":                     {oneAtATime(2, 0), "a:installing+sleep b:broken c:standby", "", ""},
		"a deleted pool deletes everything at once":             {deleted(oneAtATime(3, 0)), "a:installing b:standby c:broken d:marked", "", "delete d, delete a, delete b, delete c"},
		"… and the clusters of its released claims":             {deleted(oneAtATime(3, 0)), "a:deleting b:claimed=x", "x=b!", "delete b"},
		"… also when it was frozen":                             {deleted(frozen), "a:installing b:standby", "", "delete a, delete b"},
		"a frozen pool deletes nothing":                         {frozen, "a:installing+sleep b:claimed=x c:marked", "x=b!", ""},
		"nothing is created in place of an install that goes":   {oneAtATime(1, 0), "a:installing+sleep+stale b:claimed=x", "x=b!", "delete b, delete a"},
	})
}

func TestInstallsThatLeadNowhereAreReplacedWhileClaimsWait(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"a stale one that cannot begin":                 {settings(1, 1), "a:installing+run+stale+stuck b:installing+run+stale+stuck", "x", "delete b, delete a"},
		"… with maxConcurrent 1":                        {oneAtATime(1, 1), "a:installing+run+stale+stuck", "x", "delete a"},
		"… in a full pool":                              {with(settings(1, 1), func(s *pool.Settings) { s.MaxSize = ptr(1) }), "a:installing+run+stale+stuck", "x", "delete a"},
		"a stale one whose last attempt failed":         {settings(0, 0), "a:installing+run+stale+failing", "x", "delete a"},
		"a stale one that makes progress is kept":       {settings(0, 0), "a:installing+run+stale", "x", ""},
		"… if a claim waits for it":                     {settings(0, 0), "a:installing+run+stale b:resuming=1m", "x", "delete a"},
		"a current one that cannot begin is kept":       {settings(0, 0), "a:installing+run+stuck", "x", ""},
		"a stale one is kept while none can be created": {with(settings(0, 0), func(s *pool.Settings) { s.Blocked = "no image set" }), "a:installing+run+stale+stuck", "x", ""},
	})
}
