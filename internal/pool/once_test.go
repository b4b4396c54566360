package pool_test

import (
	"testing"

	"hotspare.io/hotspare/internal/pool"
)

// Names that are recorded and not seen yet count wherever clusters are counted.
func TestPendingNamesTakeUpEveryLimit(t *testing.T) {
	three := func(s *pool.Settings) { s.Size = 3 }
	for name, set := range map[string]pool.Settings{
		"maxSize":       with(with(settings(0, 0), three), func(s *pool.Settings) { s.MaxSize = ptr(2) }),
		"maxConcurrent": with(with(settings(0, 0), three), func(s *pool.Settings) { s.MaxConcurrent = ptr(2) }),
		"the platform":  with(with(settings(0, 0), three), func(s *pool.Settings) { s.Room = ptr(2) }),
	} {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: set, Pending: []string{"a", "b"}, Now: noon}
			if got := brief(pool.Decide(s)); got != "complete creation a, complete creation b" {
				t.Errorf("two of two are recorded, and it does %q", got)
			}
			s.Pending = s.Pending[1:]
			if got := brief(pool.Decide(s)); got != "complete creation b, create" {
				t.Errorf("one of two is recorded, and it does %q", got)
			}
		})
	}
}

// What is broken goes first: a pool that loses a stale cluster beside it may have none left.
func TestStaleAndBrokenClustersAreNotReplacedTogether(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"in a pool without limits":        {settings(2, 0), "a:standby b:standby+stale c:broken", "", "delete c"},
		"in one that is full":             {with(settings(2, 0), func(s *pool.Settings) { s.MaxSize = ptr(3) }), "a:standby b:standby+stale c:broken", "", "delete c"},
		"while the broken one goes":       {settings(2, 0), "a:standby b:standby+stale c:deleting", "", ""},
		"then it is the stale one's turn": {settings(2, 0), "a:standby b:standby+stale", "", "delete b"},
	})
}

// A claim that was given two clusters, by two processes, is told of one: the older.
func TestAClaimIsToldOfOneClusterInAPass(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"two clusters name it":              {settings(0, 0), "a:claimed=x b:claimed=x", "x", "bind x a"},
		"and a third is free":               {settings(1, 1), "a:claimed=x b:claimed=x c:assignable", "x", "bind x a"},
		"the other goes when it was told":   {settings(0, 0), "a:claimed=x b:claimed=x", "x=a", "delete b"},
		"one names it, and it names one":    {settings(0, 0), "a:assignable b:claimed=x", "x=a", "bind x a, delete b"},
		"nor one cluster to two, in a pass": {settings(1, 1), "a:assignable", "x y", "bind x a, create, create"},
	})
}
