package pool_test

import (
	"testing"

	"hotspare.io/hotspare/internal/pool"
)

func TestPlacesOfWaitingClaims(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"a stand-by is woken although an older cluster is being installed": {settings(2, 0), "a:installing+run b:standby", "x", "start b, hibernate a, create"},
		"one that resumes keeps its place when an older install goes on":   {settings(2, 0), "a:installing+sleep b:resuming=1m", "x", "create"},
		"one that resumes comes before an older stand-by":                  {settings(2, 0), "a:standby b:resuming=1m", "x", "create"},
		"a spare that resumes serves the claim, and another becomes spare": {settings(2, 1), "a:standby b:resuming=1m", "x", "start a, create"},
		"installs serve the claims that no installed cluster serves":       {settings(1, 0), "a:installing+sleep b:standby", "x y", "start a, start b, create"},
		"an install that cannot begin holds no spare's place":              {settings(2, 1), "a:installing+run+stuck b:standby", "", "start b"},
		"a spare stays awake until the older one that is installed is up":  {settings(2, 1), "a:installing+run b:assignable", "", ""},
		"… and is put to sleep then":                                       {settings(2, 1), "a:assignable b:assignable", "", "hibernate b"},
		"… and a spare that resumes is not interrupted":                    {settings(2, 1), "a:installing+run b:resuming=1m", "", ""},
		"surplus: what a claim waits for goes last":                        {settings(0, 0), "a:standby b:resuming=1m", "x", "delete a"},
		"surplus: what struggles goes first":                               {settings(1, 0), "a:resuming=11m b:standby", "", "delete a"},
		"surplus: an install that cannot begin goes before one that does":  {settings(1, 0), "a:installing+sleep+stuck b:installing+sleep", "", "delete a"},
		"a cluster that is deleted is not told what to be":                 {settings(0, 0), "a:assignable", "", "delete a"},
		"one that cannot be reached for a while holds its claim's place":   {settings(2, 0), "a:standby b:standby+run+unreachable", "x", "create"},
		"one that cannot be reached for long holds none":                   {with(settings(2, 0), minute), "a:standby b:standby+run+unreachable", "x", "start a, create"},
	})
}

// minute sets a resume timeout of which half has passed in a minute.
func minute(s *pool.Settings) { s.ResumeTimeout = 2 * 60e9 }

func TestAClusterWhoseInventoryEntryIsGoneIsDeleted(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"it is not woken for a claim":               {stocked(settings(1, 0), "bar"), "a:standby+withdrawn", "x", "create, delete a"},
		"it is not given to a claim":                {stocked(settings(1, 1), "bar"), "a:assignable+withdrawn", "x", "create, delete a"},
		"it does not wait for a settled pool":       {stocked(settings(3, 0)), "a:standby+withdrawn b:installing+sleep c:deleting", "", "delete a"},
		"nor for another one":                       {stocked(settings(2, 0)), "a:standby+withdrawn b:standby+withdrawn", "x", "delete a, delete b"},
		"its install ends, also with a full budget": {stocked(oneAtATime(1, 0)), "a:installing+sleep+withdrawn", "x", "delete a"},
		"an installed one goes within the budget":   {stocked(oneAtATime(2, 0)), "a:standby+withdrawn b:installing+sleep", "", ""},
		"a claimed one is kept":                     {stocked(settings(0, 0)), "a:claimed=x+withdrawn", "x=a", ""},
	})
}

// A resume that is no longer needed continues: if the cluster hibernated, its hang would never be
// detected, and the next claim would wait for it again.
func TestAResumeEndsBeforeTheClusterIsPutToSleep(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"another has served the claim":                  {settings(2, 0), "a:resuming=1m b:assignable", "x", "bind x b, create"},
		"the claim is gone":                             {settings(1, 0), "a:resuming=1m", "", ""},
		"it takes long":                                 {settings(1, 0), "a:resuming=11m", "", ""},
		"it came up, and cannot be reached now":         {settings(1, 0), "a:standby+run+unreachable", "", ""},
		"then it is put to sleep":                       {settings(1, 0), "a:assignable", "", "hibernate a"},
		"or has timed out":                              {with(settings(1, 0), minute), "a:resuming=2m", "", "create, delete a"},
		"one that has not begun to resume may sleep on": {settings(1, 0), "a:standby+run", "", "hibernate a"},
	})
}
