package pool_test

import (
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/pool"
)

// A spare of another version of its recipe is replaced like one of another version of the pool.
func TestClustersOfAnOlderRecipeAreReplaced(t *testing.T) {
	with := func(recipe string) pool.Settings {
		s := settings(2, 0)
		s.Recipe = recipe
		return s
	}
	checkDecisions(t, map[string]decision{
		"one at a time":                       {with("1-new"), "a:standby+oldrecipe b:standby+oldrecipe", "", "delete a"},
		"one of the same version stays":       {with("1-new"), "a:standby+recipe b:standby+recipe", "", ""},
		"one that records no version stays":   {with("1-new"), "a:standby b:standby", "", ""},
		"while the version is unknown, none":  {with(""), "a:standby+oldrecipe b:standby+oldrecipe", "", ""},
		"a claimed one stays":                 {with("1-new"), "a:claimed=x+oldrecipe b:standby c:standby", "x=a", ""},
		"one that is being created goes, too": {with("1-new"), "a:installing+sleep+oldrecipe b:standby", "", "delete a"},
	})
	p := pool.Decide(pool.Snapshot{Settings: with("1-new"), Members: members("a:standby+oldrecipe b:standby"), Now: noon})
	if len(p.Steps) == 0 || !strings.Contains(p.Steps[0].String(), "its recipe, ClusterClass or template has changed") {
		t.Errorf("the plan is %v, want the reason", p.Steps)
	}
}
