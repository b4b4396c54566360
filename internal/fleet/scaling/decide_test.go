package scaling_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/fleet/scaling"
)

func TestGrowth(t *testing.T) {
	for name, tt := range map[string]struct {
		of   *world
		want string
	}{
		"a type without data planes gets one, demand or not": {region("slack=0"), "create BiggestDoesNotFit"},
		"room for the biggest size and more than the slack":  {region("slack=3").planes("a:10-4"), "none Sufficient"},
		"as much free as the slack is too little":            {region("slack=6").planes("a:10-4"), "create BelowSlack"},
		"one more than the slack is enough":                  {region("slack=5").planes("a:10-4"), "none Sufficient"},
		"less than the slack":                                {region("slack=7").planes("a:10-4"), "create BelowSlack"},
		"a slack of 0 does not fire while units are free":    {region("slack=0 sizes=1").planes("a:10-9"), "none Sufficient"},
		"a slack of 0, none free":                            {region("slack=0 sizes=1").planes("a:10-10"), "create BiggestDoesNotFit"},
		"the slack is of all data planes together":           {region("slack=3").planes("a:10-8 b:10-8"), "none Sufficient"},
		"the biggest size needs room in one":                 {region("slack=0").planes("a:10-9 b:10-9"), "create BiggestDoesNotFit"},
		"the biggest size counts, in whatever order":         {region("slack=0 sizes=3,1,2").planes("a:10-8"), "create BiggestDoesNotFit"},
		"an over-committed one takes from the others":        {region("slack=2 sizes=1").planes("a:10-13 b:10-5"), "create BelowSlack"},

		"the limit is reached":                             {region("limit=4 slack=3").planes("a:4-4"), "none LimitReached"},
		"the limit is exceeded":                            {region("limit=4").planes("a:10-6"), "none LimitReached"},
		"a limit of 0 is always reached":                   {region("limit=0"), "none LimitReached"},
		"the limit comes before what is on its way":        {region("limit=4").planes("a:4-4 b:coming=6"), "none LimitReached"},
		"what the limit leaves is free already":            {region("limit=5 slack=3").planes("a:5-4"), "none LimitCovered"}, // fleet N
		"… or more than that":                              {region("limit=5 slack=5").planes("a:10-4"), "none LimitCovered"},
		"… though no size that is left would fit":          {region("limit=5 slack=3 sizes=2").planes("a:4-4"), "none LimitCovered"},
		"the limit leaves more than is free":               {region("limit=6 slack=3").planes("a:5-4"), "create BiggestDoesNotFit"},
		"… in one piece":                                   {region("limit=20 slack=0").planes("a:10-9 b:10-9"), "create BiggestDoesNotFit"},
		"the limit leaves what one free piece can hold":    {region("limit=19 slack=3").planes("a:10-9 b:10-9"), "none LimitCovered"},
		"an instance on a data plane that goes counts":     {region("limit=4").planes("a:cleanup=6-4"), "none LimitReached"},
		"one on a Registered data plane does not":          {region("limit=14 slack=0").planes("a:10-4+registered b:10"), "none Sufficient"},
		"a data plane is on its way: accepted":             {region("slack=3").planes("a:4-4 b:accepted=6"), "none InFlight"},
		"… provisioning":                                   {region("slack=3").planes("a:4-4 b:coming=6"), "none InFlight"},
		"… provisioned":                                    {region("slack=3").planes("a:4-4 b:provisioned=6"), "none InFlight"},
		"… waiting for its agent":                          {region("slack=3").planes("a:4-4 b:waiting=6"), "none InFlight"},
		"one of another type is not":                       {region("slack=3;name=dev").planes("a:4-4 b:coming=6+is=dev"), "create BiggestDoesNotFit"},
		"one of several types is":                          {region("slack=3;name=dev").planes("a:4-4 b:coming=6+is=dev+also=std"), "none InFlight"},
		"a name that begins with the type's is another":    {region("slack=3").planes("a:4-4 b:coming=6+is=std2"), "create BiggestDoesNotFit"}, // fleet M
		"a Registered one on its way is not waited for":    {region("slack=3").planes("a:4-4 b:coming=6+registered"), "create BiggestDoesNotFit"},
		"a Registered one is not counted on":               {region("slack=3").planes("a:10+registered"), "create BiggestDoesNotFit"},
		"one that is to go is not counted on":              {region("slack=3").planes("a:10-4+released"), "create BiggestDoesNotFit"},
		"nor one that is deleted by hand":                  {region("slack=3").planes("a:10-4+deleting"), "create BiggestDoesNotFit"},
		"a failed one is not counted, when its time is up": {region("slack=3").planes("a:failed=6+since=10m"), "create BiggestDoesNotFit"},
		"a silent one has nothing free":                    {region("slack=3").planes("a:10-4+silent"), "create BiggestDoesNotFit"},
		"… and is not on its way":                          {region("slack=3").planes("a:10-4+silent b:10"), "none Sufficient"},
		"one whose cluster is gone does not count":         {region("min=1").planes("a:10+gone"), "create BelowMinimum"},
		"… nor against the maximum":                        {region("max=1").planes("a:10-4+gone"), "create BiggestDoesNotFit"},
		"a cordoned one has nothing free":                  {region("slack=3").planes("a:10-4+cordoned"), "create BiggestDoesNotFit"},
		"an unreadable one has nothing free":               {region("slack=3").planes("a:10-4+unreadable"), "create BiggestDoesNotFit"},
		"one with other zones has nothing free":            {region("slack=3").planes("a:10-4+multi"), "create BiggestDoesNotFit"},
		"… the other way round":                            {region("slack=3 multi").planes("a:10-4"), "create BiggestDoesNotFit"},
		"the right zones":                                  {region("slack=3 multi").planes("a:10-4+multi"), "none Sufficient"},
		"fewer than the minimum":                           {region("min=2").planes("a:10"), "create BelowMinimum"},
		"the minimum":                                      {region("min=2").planes("a:10 b:10"), "none Sufficient"},
		"as many as there may be":                          {region("max=1").planes("a:4-4"), "none AtMaximum"},
		"nothing to make one from":                         {region("blocked").planes("a:4-4"), "none Blocked"},
		"… is no news when none is needed":                 {region("blocked").planes("a:10"), "none Sufficient"},
		"a type that nobody knows":                         {region("unknown sizes=1"), "none Undecided"},
		"the last one came without units":                  {region("slack=3").planes("a:4-4 b:0"), "none NoUnits"},
		"… and is cordoned":                                {region("slack=3").planes("a:4-4 b:0+cordoned"), "create BiggestDoesNotFit"},
		"… a later one has some":                           {region("slack=3").planes("a:0 b:4-4"), "create BiggestDoesNotFit"},
		"a new one has no room for the biggest either":     {region("slack=0 sizes=1,8 expected=6").planes("a:6-1"), "none BiggestFitsNowhere"},
		"the last one has not, and is empty":               {region("slack=0 sizes=1,8 expected=0").planes("a:10-9 b:6"), "none BiggestFitsNowhere"},
		"… until somebody has moved in":                    {region("slack=0 sizes=1,8 expected=0").planes("a:10-9 b:6-1"), "create BiggestDoesNotFit"},
		"… but slack is wanted all the same":               {region("slack=5 sizes=1,8 expected=6").planes("a:6-1"), "create BelowSlack"},
		"the last one failed a minute ago":                 {region("slack=3").planes("a:failed=6+since=1m"), "none BackingOff"}, // fleet D
		"two in a row: twice as long":                      {region("slack=3").planes("a:failed=6+since=40m b:failed=6+since=19m"), "none BackingOff"},
		"… and not longer":                                 {region("slack=3").planes("a:failed=6+since=40m b:failed=6+since=20m"), "create BiggestDoesNotFit"},
		"a failure before a success is over":               {region("slack=3").planes("a:failed=6+since=1m b:4-4"), "create BiggestDoesNotFit"},
		"… though that one was to be removed":              {region("slack=3").planes("a:failed=6+since=1m b:doubted=4-4"), "create BiggestDoesNotFit"},
		"a failure of another type is none":                {region("slack=3;name=dev").planes("a:failed=6+since=1m+is=dev"), "create BiggestDoesNotFit"},
		"the agent has less left than is known to be used": {region("slack=3").planes("a:10-4+left=3"), "create BelowSlack"},
		"the agent has nothing left":                       {region("slack=0").planes("a:10+left=0"), "create BiggestDoesNotFit"},
		"switched off":                                     {region("slack=3").up(func(u *scaling.ScaleUp) { u.Mode = scaling.Off }), "none SwitchedOff"},
		"a dry run decides":                                {region("slack=3").up(func(u *scaling.ScaleUp) { u.Mode = scaling.DryRun }), "create BiggestDoesNotFit"},
		"two may be on their way, one is enough":           {region("slack=3").up(inFlight(2)).planes("a:4-4 b:coming=6"), "none Sufficient"},
		"two may be on their way, one is too little":       {region("slack=6").up(inFlight(2)).planes("a:4-4 b:coming=6"), "create BelowSlack"},
		"… nobody knows what it will have":                 {region("slack=3 expected=0").up(inFlight(2)).planes("a:4-4 b:coming=0"), "create BiggestDoesNotFit"},
		"… those who wait will fill it":                    {region("slack=0").up(inFlight(2)).planes("b:coming=6").orders("x:2 y:2 z:1"), "create BiggestDoesNotFit"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scaling.Decide(tt.of.Snapshot)
			if got := growth(p); got != tt.want {
				t.Errorf("got %s, want %s\n%+v", got, tt.want, p.Types)
			}
			created := len(p.StepsOf(scaling.Create)) > 0
			wanted := strings.HasPrefix(tt.want, "create") && tt.of.Region.Up.Mode != scaling.DryRun
			if std := slices.ContainsFunc(p.StepsOf(scaling.Create), func(s scaling.Step) bool { return s.Type == "std" }); std != wanted {
				t.Errorf("created %t, want %t: %s", created, wanted, p)
			}
		})
	}
}

func inFlight(n int) func(*scaling.ScaleUp) { return func(u *scaling.ScaleUp) { u.MaxInFlight = n } }

func TestRemoval(t *testing.T) {
	for name, tt := range map[string]struct {
		of   *world
		want string
	}{
		"empty and not needed":                    {region("slack=3").planes("a:10-4 b:10"), "a keep NotEmpty, b remove NotNeeded"},
		"the last one stays":                      {region("slack=0").planes("a:10"), "a keep Needed"},
		"of two the newest goes":                  {region("slack=3").planes("a:10 b:10"), "a keep Needed, b remove NotNeeded"},
		"of many all but what is needed":          {region("slack=12").planes("a:10 b:10 c:10 d:10"), "a keep Needed, b keep Needed, c remove NotNeeded, d remove NotNeeded"},
		"the rest has as much as the slack":       {region("slack=6").planes("a:10-4 b:10"), "a keep NotEmpty, b keep Needed"},
		"the rest has one more":                   {region("slack=5").planes("a:10-4 b:10"), "a keep NotEmpty, b remove NotNeeded"},
		"a region with far too much room shrinks": {region("slack=3").planes("a:99 b:10"), "a keep Needed, b remove NotNeeded"},
		"the rest has no room for the biggest":    {region("slack=0").planes("a:10-9 b:10-9 c:10"), "a keep NotEmpty, b keep NotEmpty, c keep Needed"},
		"what is on its way does not help":        {region("slack=3").planes("a:10-9 b:10 c:coming=10"), "a keep NotEmpty, b keep Needed"},
		"nor what is silent":                      {region("slack=3").planes("a:10+silent b:10"), "a keep ContentsUnknown, b keep Needed"},
		"nor what is to go":                       {region("slack=3").planes("a:10+released b:10"), "b keep Needed"},
		"nor what is Registered":                  {region("slack=3").planes("a:10+registered b:10"), "b keep Needed"},
		"nor what has other zones":                {region("slack=3").planes("a:10-1+multi b:10"), "a keep NotEmpty, b keep Needed"},
		"the limit is reached on the rest":        {region("limit=4 slack=3").planes("a:4-4 b:10"), "a keep NotEmpty, b remove NotNeeded"},
		"the limit is covered by the rest":        {region("limit=5 slack=3").planes("a:10-4 b:10"), "a keep NotEmpty, b remove NotNeeded"}, // fleet N
		"the limit is not covered by the rest":    {region("limit=9 slack=9").planes("a:8-4 b:10"), "a keep NotEmpty, b keep Needed"},
		"the minimum stays":                       {region("min=2").planes("a:10 b:10 c:10"), "a keep Needed, b keep Needed, c remove NotNeeded"},
		"… though the limit is reached":           {region("limit=0 min=1").planes("a:10 b:10"), "a keep Needed, b remove NotNeeded"},
		"more than the maximum, all needed":       {region("max=1 slack=11").planes("a:10 b:10"), "a keep Needed, b keep Needed"},
		"the only one that is big enough":         {region("slack=0 sizes=2 expected=0").planes("a:1 b:3+left=1+says=0"), "a keep Needed, b keep Needed"},
		"a type that nobody knows":                {region("unknown").planes("a:10"), "a keep Undecided"},
		"a type that is not configured any more":  {region("name=dev").planes("a:10"), "a remove NotConfigured"},
		"… with an instance on it":                {region("name=dev").planes("a:10-1"), "a keep NotEmpty"},
		"of two types one is needed":              {region("slack=3;name=dev").planes("a:10-4 b:10+also=dev"), "a keep NotEmpty, b keep Needed"},
		"of two types one is not configured":      {region("slack=3").planes("a:10-4 b:10+also=dev"), "a keep NotEmpty, b remove NotNeeded"},
		"an instance of another type":             {region("slack=3;name=dev").planes("a:10 b:10+also=dev c:10+also=dev").orders("x:1/dev@b"), "a remove NotNeeded, b keep NotEmpty, c remove NotNeeded"},
		"an instance of no type of it":            {region("slack=3").planes("a:10 b:10").on("b", "odd"), "a remove NotNeeded, b keep NotEmpty"},
		"an instance that is being deleted":       {region("slack=3").planes("a:10 b:10").dying("b"), "a remove NotNeeded, b keep NotEmpty"},
		"an instance that was booked":             {region("slack=3").planes("a:10 b:10+booked=x").orders("x:1"), "a remove NotNeeded, b keep NotEmpty"},
		"somebody waits who was refused":          {region("slack=3").planes("a:10-1 b:10+cordoned").orders("x:1!a=5m"), "a keep NotEmpty, b keep Needed"},
		"somebody who names it was refused":       {region("slack=3").planes("a:10-1 b:10").orders("x:1@b!b=5m"), "a keep NotEmpty, b keep Needed"},
		"… and it is looked at again":             {region("slack=3").planes("a:10-1 b:doubted=10").orders("x:1@b!b=5m"), "a keep NotEmpty, b restore Needed"},
		"… whose time is up, and it is cordoned":  {region("slack=3").planes("a:10-1 b:10+cordoned").orders("x:1@b!b=0s"), "a keep NotEmpty, b remove NotNeeded"},
		"protected":                                  {region("slack=3").planes("a:10 b:10+protected"), "a remove NotNeeded, b keep Protected"},
		"switched off":                               {region("slack=3").down(func(d *scaling.ScaleDown) { d.Mode = scaling.Off }).planes("a:10 b:10"), "a keep SwitchedOff, b keep SwitchedOff"},
		"empty for too short a time":                 {region("slack=3").down(emptyFor).planes("a:10-1 b:10+empty=59m"), "a keep NotEmpty, b keep EmptyRecently"},
		"nobody knows since when":                    {region("slack=3").down(emptyFor).planes("a:10-1 b:10"), "a keep NotEmpty, b keep EmptyRecently"},
		"empty for long enough":                      {region("slack=3").down(emptyFor).planes("a:10-1 b:10+empty=60m"), "a keep NotEmpty, b remove NotNeeded"},
		"one was made a moment ago":                  {region("slack=3").down(cooldown).planes("a:10-1 b:10 c:coming=6+age=29m"), "a keep NotEmpty, b keep CoolingDown"},
		"one was made some time ago":                 {region("slack=3").down(cooldown).planes("a:10-1 b:10 c:coming=6+age=30m"), "a keep NotEmpty, b remove NotNeeded"},
		"one of another type was made":               {region("slack=3;name=dev").down(cooldown).planes("a:10-1 b:10 c:10+age=29m+is=dev"), "a keep NotEmpty, b remove NotNeeded, c keep Needed"},
		"as many are going as may":                   {region("slack=3").down(atMost(1)).planes("a:10-1 b:10 c:cleanup=10"), "a keep NotEmpty, b keep MaxConcurrent"},
		"one at a time":                              {region("slack=3").down(atMost(1)).planes("a:10-1 b:10 c:10"), "a keep NotEmpty, b keep MaxConcurrent, c remove NotNeeded"},
		"a dry run sees what it would have done":     {region("slack=3").down(dryRun).planes("a:10 b:10"), "a keep Needed, b remove NotNeeded"}, // fleet P
		"looked at again: still empty, not needed":   {region("slack=3").planes("a:10-4 b:doubted=10"), "a keep NotEmpty, b release NotNeeded"},
		"… somebody has moved in":                    {region("slack=3").planes("a:10-4 b:doubted=10-1"), "a keep NotEmpty, b restore NotEmpty"},
		"… somebody is about to":                     {region("slack=3").planes("a:10-4 b:doubted=10+booked=x").orders("x:1"), "a keep NotEmpty, b restore NotEmpty"},
		"… the rest is not enough any more":          {region("slack=3").planes("a:10-8 b:doubted=10"), "a keep NotEmpty, b restore Needed"}, // the reference only checks whether it is empty
		"… it was protected":                         {region("slack=3").planes("a:10-4 b:doubted=10+protected"), "a keep NotEmpty, b restore Protected"},
		"… removing was switched off":                {region("slack=3").down(func(d *scaling.ScaleDown) { d.Mode = scaling.Off }).planes("a:10-4 b:doubted=10"), "a keep SwitchedOff, b restore SwitchedOff"},
		"… or is tried out only":                     {region("slack=3").down(dryRun).planes("a:10-4 b:doubted=10"), "a keep NotEmpty, b restore SwitchedOff"},
		"… of two one is needed":                     {region("slack=3").planes("a:10-8 b:doubted=10 c:doubted=10"), "a keep NotEmpty, b restore Needed, c release NotNeeded"},
		"… one that stays makes another free":        {region("slack=3").planes("a:10-8 b:doubted=10 c:doubted=10-1"), "a keep NotEmpty, b release NotNeeded, c restore NotEmpty"},
		"… somebody names it, and the rest is short": {region("slack=3").planes("a:10-8 b:doubted=6 c:doubted=6").orders("x:5@b"), "a keep NotEmpty, b restore NotEmpty, c restore Needed"},
		"… somebody names it, above the limit":       {region("slack=3 limit=10").planes("a:10-8 b:doubted=6 c:doubted=6").orders("x:5@b"), "a keep NotEmpty, b release NotNeeded, c release NotNeeded"},
		"… only one that stays is big enough":        {region("slack=3 expected=6").planes("a:doubted=10+protected b:doubted=6").orders("x:7"), "a restore Protected, b restore Needed"},
		"… its agent has not answered yet":           {region("slack=3").planes("a:10-4 b:doubted=10+asked"), "a keep NotEmpty, b keep AwaitingReport"},
		"… its agent has fallen silent":              {region("slack=3").planes("a:10-4 b:doubted=10+asked+silent"), "a keep NotEmpty, b restore ContentsUnknown"},
		"… its agent reports another instance":       {region("slack=3").planes("a:10-4 b:doubted=10+unlisted=x"), "a keep NotEmpty, b restore UnlistedInstances"},
		"… its agent reports used units":             {region("slack=3").planes("a:10-4 b:doubted=10+says=2"), "a keep NotEmpty, b restore UnlistedInstances"},
		"… which a person has given up":              {region("slack=3").planes("a:10-4 b:doubted=10+says=2+unlisted=x+silent+asked+discard"), "a keep NotEmpty, b release NotNeeded"},
		"its agent reports another instance":         {region("slack=3").planes("a:10-4 b:10+unlisted=x"), "a keep NotEmpty, b keep UnlistedInstances"},
		"its agent reports used units":               {region("slack=3").planes("a:10-4 b:10+says=2"), "a keep NotEmpty, b keep UnlistedInstances"},
		"its cluster is gone":                        {region("slack=3").planes("a:10-4 b:10+gone"), "a keep NotEmpty, b remove ClusterGone"},
		"… and nobody knows what was on it":          {region("slack=3").planes("a:10-4 b:10+gone+silent+unlisted=x"), "a keep NotEmpty, b remove ClusterGone"},
		"… and it was the last one":                  {region("slack=0").planes("a:10+gone"), "a remove ClusterGone"},
		"… and an instance is on it":                 {region("slack=3").planes("a:10-4 b:10-1+gone"), "a keep NotEmpty, b keep NotEmpty"},
		"… and it is doubted":                        {region("slack=3").planes("a:10-4 b:doubted=10+gone+asked"), "a keep NotEmpty, b release ClusterGone"},
		"… and as many are going as may":             {region("slack=3").down(atMost(1)).planes("a:10-4 b:doubted=10+gone c:10+gone d:10"), "a keep NotEmpty, b release ClusterGone, c remove ClusterGone, d remove NotNeeded"},
		"what is left is not counted with it":        {region("slack=3").planes("a:10+gone b:10"), "a remove ClusterGone, b keep Needed"},
		"its agent does not report":                  {region("slack=3").planes("a:10-4 b:10+silent"), "a keep NotEmpty, b keep ContentsUnknown"},
		"its agent does not say what is on it":       {region("slack=3").planes("a:10-4 b:10+unknown"), "a keep NotEmpty, b keep ContentsUnknown"},
		"what is on it was given up":                 {region("slack=3").planes("a:10-4 b:10+unknown+unlisted=x+says=2+discard"), "a keep NotEmpty, b remove NotNeeded"},
		"… but for an instance that is known":        {region("slack=3").planes("a:10-4 b:10-2+discard"), "a keep NotEmpty, b keep NotEmpty"},
		"… one that is released does not come back":  {region("slack=3").planes("a:10-8 b:doubted=10+released"), "a keep NotEmpty"}, // fleet G
	} {
		t.Run(name, func(t *testing.T) {
			w := tt.of
			if w.Region.Down.Mode == scaling.Off {
				tt.want = strings.ReplaceAll(tt.want, "a keep SwitchedOff, b restore", offWords(w)+" b restore")
			}
			if got := fates(scaling.Decide(w.Snapshot)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// offWords checks that an instance is reported first, whatever is switched off.
func offWords(w *world) string {
	if len(w.Instances) > 0 {
		return "a keep NotEmpty,"
	}
	return "a keep SwitchedOff,"
}

func emptyFor(d *scaling.ScaleDown) { d.EmptyFor = time.Hour }
func cooldown(d *scaling.ScaleDown) { d.Cooldown = 30 * time.Minute }
func dryRun(d *scaling.ScaleDown)   { d.Mode = scaling.DryRun }

func atMost(n int) func(*scaling.ScaleDown) {
	return func(d *scaling.ScaleDown) { d.MaxConcurrent = &n }
}

// on puts an instance on the data plane, of a type that the data plane does not list.
func (w *world) on(plane, kind string) *world {
	w.Instances = append(w.Instances, scaling.Instance{Name: "t/odd", Type: kind, Units: 1, Plane: plane, Created: noon})
	return w
}

func (w *world) dying(plane string) *world {
	w.Instances = append(w.Instances, scaling.Instance{Name: "t/dying", Type: "std", Units: 1, Plane: plane, Created: noon, Deleting: true})
	return w
}

func TestADryRunRemovesNothing(t *testing.T) {
	p := scaling.Decide(region("slack=3").down(dryRun).planes("a:10 b:10").Snapshot)
	if len(p.Steps) > 0 || !p.Planes[1].Decision.DryRun {
		t.Errorf("got %s, %+v", p, p.Planes)
	}
}

func TestPlacement(t *testing.T) {
	for name, tt := range map[string]struct {
		of   *world
		want string
	}{
		"the oldest data plane with room":              {region("").planes("a:10-10 b:10-4 c:10").orders("x:1"), "x b"},
		"the oldest instance first":                    {region("").planes("a:3 b:3").orders("x:2 y:2 z:1"), "x a, y b, z a"},
		"what does not fit does not hold up the rest":  {region("").planes("a:10-9").orders("x:2 y:1"), "x NoCapacity, y a"},
		"several in one pass see each other":           {region("").planes("a:2").orders("x:1 y:1 z:1"), "x a, y a, z NoCapacity"},
		"exactly as much as is left":                   {region("").planes("a:10-8").orders("x:2"), "x a"},
		"one more than is left":                        {region("").planes("a:10-9").orders("x:2"), "x NoCapacity"},
		"not on one that is on its way":                {region("").planes("a:waiting=10").orders("x:1"), "x NoCapacity"},
		"not on one that is to go":                     {region("").planes("a:doubted=10").orders("x:1"), "x NoCapacity"},
		"not on one that failed":                       {region("").planes("a:failed=10").orders("x:1"), "x NoCapacity"},
		"not on one whose agent is silent":             {region("").planes("a:10+silent").orders("x:1"), "x NoCapacity"},
		"not on one whose cluster is gone":             {region("").planes("a:10+gone").orders("x:1"), "x NoCapacity"},
		"pinned to one whose cluster is gone":          {region("").planes("a:10+gone").orders("x:1@a"), "x DataPlaneUnsuitable"},
		"not on a cordoned one":                        {region("").planes("a:10+cordoned").orders("x:1"), "x NoCapacity"},
		"not on one that cannot be read":               {region("").planes("a:10+unreadable").orders("x:1"), "x NoCapacity"},
		"not on one that is being deleted":             {region("").planes("a:10+deleting").orders("x:1"), "x NoCapacity"},
		"not on one of another type":                   {region(";name=dev").planes("a:10+is=dev").orders("x:1"), "x NoCapacity"},
		"not on one whose type begins like it":         {region("").planes("a:10+is=std2").orders("x:1"), "x NoCapacity"}, // fleet M
		"single-zone ones not on multi-zone ones":      {region("").planes("a:10+multi b:10").orders("x:1"), "x b"},       // fleet F
		"multi-zone ones not on single-zone ones":      {region("multi").planes("a:10 b:10+multi").orders("x:1"), "x b"},
		"a Registered one is as good as any":           {region("").planes("a:10+registered b:10").orders("x:1"), "x a"},
		"a type that the region does not have":         {region("").planes("a:10").orders("x:1/dev"), "x NotOffered"},
		"the limit is reached":                         {region("limit=4").planes("a:10-4").orders("x:1"), "x LimitReached"},
		"the limit would be exceeded":                  {region("limit=5").planes("a:10-4").orders("x:2 y:1"), "x LimitReached, y a"},
		"several in one pass within the limit":         {region("limit=6").planes("a:10-4").orders("x:1 y:1 z:1"), "x a, y a, z LimitReached"},
		"a refusal is remembered":                      {region("").planes("a:10 b:10").orders("x:1!a=5m"), "x b"}, // fleet O
		"… and not for ever":                           {region("").planes("a:10 b:10").orders("x:1!a=0s"), "x a"},
		"… while it reports what it did then":          {region("").planes("a:10+left=4").orders("x:1!a=0s,4"), "x Refused"},
		"… and not when it has more left":              {region("").planes("a:10+left=5").orders("x:1!a=0s,4"), "x a"},
		"… after a while":                              {region("").planes("a:10+left=5").orders("x:1!a=1s,4"), "x Refused"},
		"… pinned, while it reports the same":          {region("").planes("a:10+left=4").orders("x:1@a!a=0s,4"), "x Refused"},
		"what the agent has left":                      {region("").planes("a:10+left=2 b:10").orders("x:3"), "x b"},
		"… exactly":                                    {region("").planes("a:10+left=2 b:10").orders("x:2"), "x a"},
		"… less what was placed since":                 {region("").planes("a:10-4+left=4+counted=1 b:10").orders("x:2"), "x b"},
		"… exactly that":                               {region("").planes("a:10-4+left=4+counted=1 b:10").orders("x:1"), "x a"},
		"… never more than can be":                     {region("").planes("a:10-4+left=10+counted=4 b:10").orders("x:7"), "x b"},
		"… several in one pass see each other":         {region("").planes("a:10+left=3 b:10").orders("x:2 y:2"), "x a, y b"},
		"… though no other has room":                   {region("").planes("a:10 b:10-10").orders("x:1!a=5m"), "x Refused"},
		"bigger than any data plane":                   {region("expected=6").planes("a:6").orders("x:7"), "x TooBig"},
		"… unless there is a bigger one":               {region("expected=6").planes("a:7-1").orders("x:7"), "x NoCapacity"},
		"pinned":                                       {region("").planes("a:10 b:10").orders("x:1@b"), "x b"},
		"pinned to one without room":                   {region("").planes("a:10 b:10-10").orders("x:1@b"), "x NoCapacity"},
		"pinned to one that there is not":              {region("").planes("a:10").orders("x:1@b"), "x DataPlaneNotFound"},
		"pinned to one of another type":                {region("").planes("a:10+is=dev").orders("x:1@a"), "x DataPlaneUnsuitable"},
		"pinned to one with other zones":               {region("").planes("a:10+multi").orders("x:1@a"), "x DataPlaneUnsuitable"},
		"pinned to one that is to go: it stays for it": {region("").planes("a:doubted=10").orders("x:1@a"), "x DataPlaneLeaving"},
		"… without room for it":                        {region("").planes("a:doubted=10").orders("x:11@a"), "x NoCapacity"},
		"… that is cordoned":                           {region("").planes("a:doubted=10+cordoned").orders("x:1@a"), "x DataPlaneUnsuitable"},
		"… that goes for good":                         {region("").planes("a:doubted=10+released").orders("x:1@a"), "x DataPlaneUnsuitable"},
		"… and takes what the limit leaves":            {region("limit=1").planes("a:doubted=10 b:10").orders("x:1@a y:1"), "x DataPlaneLeaving, y LimitReached"},
		"bigger than any but one that is to go":        {region("expected=6").planes("a:doubted=7").orders("x:7"), "x NoCapacity"},
		"… or that is silent":                          {region("expected=6").planes("a:7+silent").orders("x:7"), "x NoCapacity"},
		"… or that has other zones":                    {region("expected=6").planes("a:7+multi").orders("x:7"), "x TooBig"},
		"pinned to one that refused it":                {region("").planes("a:10").orders("x:1@a!a=5m"), "x Refused"},
		"pinned, and the limit is reached":             {region("limit=0").planes("a:10").orders("x:1@a"), "x LimitReached"},
		"pinned to a Registered one: no limit":         {region("limit=0").planes("a:10+registered").orders("x:1@a"), "x a"},
		"what was booked is finished":                  {region("").planes("a:10 b:1+booked=x").orders("x:1"), "x b"},
		"… though the limit has been lowered":          {region("limit=0").planes("a:10 b:1+booked=x").orders("x:1"), "x b"},
		"a booking takes the place":                    {region("").planes("a:1+booked=x b:1").orders("x:1 y:1"), "x a, y b"},
		"of two bookings the one on the oldest counts": {region("").planes("a:1+booked=x b:1+booked=x").orders("x:1 y:1"), "x a, y b"},
		"a booking of one of the same name is none":    {region("").planes("a:1+booked=z b:1").as("z", "other").orders("y:1"), "z a, y b"},
		"a booking on one that is to go waits":         {region("").planes("a:doubted=10+booked=x b:10").orders("x:1"), "x DataPlaneLeaving"},
		"… on one that is gone for good is over":       {region("").planes("a:doubted=10+booked=x+released b:10").orders("x:1"), "x b"},
		"one that is being deleted is not placed":      {region("").planes("a:10").orders("x:1*"), ""},
		"… and keeps what was booked for it":           {region("").planes("a:1+booked=x").orders("x:1* y:1"), "y NoCapacity"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scaling.Decide(tt.of.Snapshot)
			if got := places(p); got != tt.want {
				t.Errorf("got %s, want %s\n%+v", got, tt.want, p.Placements)
			}
		})
	}
}

// as adds an instance with its own UID, older than all others.
func (w *world) as(name, uid string) *world {
	w.Instances = append(w.Instances, scaling.Instance{Name: "t/" + name, UID: uid, Type: "std", Units: 1, Created: noon.Add(-time.Hour)})
	return w
}

func TestSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		of   *world
		want string
	}{
		"nothing to do":                                       {region("slack=3").planes("a:10-4"), ""},
		"place, then judge what is left":                      {region("slack=3").planes("a:5").orders("x:2"), "place x a, create std"},
		"one that has room for who waits is no more":          {region("slack=0").planes("a:10-9").orders("x:2"), "create std"},
		"a placement keeps what it is placed on":              {region("slack=0").planes("a:10-10 b:10 c:10").orders("x:1@c"), "place x c, remove b"},
		"too long on its way":                                 {region("slack=3").planes("a:10 b:waiting=6+age=2h"), "fail b"}, // fleet E
		"… the next one waits for a while":                    {region("slack=3").planes("b:waiting=6+age=2h"), "fail b"},
		"… a Registered one has time":                         {region("slack=3").planes("a:10 b:waiting=6+age=2h+registered"), ""},
		"who was refused is no demand of who refused":         {region("slack=0").planes("a:10-1").orders("x:2!a=5m"), "create std"},
		"… by one with nothing else on it: no other":          {region("slack=0").planes("a:10-1").orders("x:2!a=5m,vacant"), ""},
		"… which is gone: no other":                           {region("slack=0").planes("a:10-8").orders("x:2!b=5m,vacant!a=5m"), ""},
		"… by three: no other":                                {region("slack=0").planes("a:10-1 b:10-1 c:10-1").orders("x:2!a=5m!b=5m!c=5m"), ""},
		"… and waits for none: what is not needed goes":       {region("slack=0").planes("a:10-1 b:10").orders("x:2!a=5m!b=5m,vacant"), "remove b"},
		"… and one is in flight":                              {region("slack=0").planes("a:10-1 b:coming=6").orders("x:2!a=5m"), ""},
		"each type gets its own":                              {region("slack=3;name=dev"), "create dev, create std"}, // fleet B
		"a failure is forgotten after a success":              {region("slack=3").planes("a:failed=6 b:10"), "forget a"},
		"… and before it is not":                              {region("slack=3").planes("b:10 a:failed=6"), ""},
		"… a type that is gone remembers nothing":             {region("slack=3").planes("b:10 a:failed=6+is=dev"), "forget a"},
		"five failures are remembered":                        {region("slack=3").planes("z:10 a:failed=6 b:failed=6 c:failed=6 d:failed=6 e:failed=6 f:failed=6"), "forget a"},
		"as many as may be on their way":                      {region("slack=30").up(inFlight(3)), "create std, create std, create std"},
		"as many as are needed":                               {region("slack=7").up(inFlight(9)), "create std, create std"},
		"… for those who wait":                                {region("slack=0").up(inFlight(9)).orders("a:2 b:2 c:2 d:2 e:2 f:2"), "create std, create std, create std"},
		"… within the maximum":                                {region("slack=30 max=2").up(inFlight(9)), "create std, create std"},
		"… within the limit":                                  {region("slack=3 limit=6").up(inFlight(9)), "create std"},
		"bookings of those who know are over":                 {region("slack=3").planes("a:10-4+booked=a"), "unbook a a"},
		"bookings of those whose data plane is lost are over": {region("slack=3").planes("a:10-4+gone+booked=x b:10").orders("x:1"), "place x b, unbook x a"},
		"bookings of those who were refused are over":         {region("slack=3").planes("a:10-4+booked=x").orders("x:1@a!a=5m"), "unbook x a"},
		"bookings of those who are gone are over":             {region("slack=3").planes("a:10-4+booked=x"), "unbook x a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scaling.Decide(tt.of.Snapshot)
			if got := brief(p); got != tt.want {
				t.Errorf("got %s, want %s\n%s", got, tt.want, p)
			}
		})
	}
}

func TestWhenToLookAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		of   *world
		want string
	}{
		"only a change matters":              {region("slack=3").planes("a:10-4"), "0s"},
		"one on its way has time until":      {region("slack=3").planes("a:10-4 b:coming=6+age=90m"), "30m0s"},
		"the next one may be made then":      {region("slack=3").planes("a:failed=6+since=4m"), "6m0s"},
		"it is empty for long enough then":   {region("slack=3").down(emptyFor).planes("a:10-1 b:10+empty=45m"), "15m0s"},
		"the last one is old enough then":    {region("slack=3").down(cooldown).planes("a:10-1 b:10+age=10m"), "20m0s"},
		"who refused may be asked again":     {region("slack=3").planes("a:10").orders("x:1!a=7m"), "7m0s"},
		"the first of several":               {region("slack=3").planes("a:10-4 b:coming=6+age=119m").orders("x:1@a!a=7m"), "1m0s"},
		"a back-off that is over is no news": {region("slack=3").planes("a:10 b:failed=6+since=11m"), "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scaling.Decide(tt.of.Snapshot).Next.String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTheBackOffEnds(t *testing.T) {
	w := region("slack=3").planes("a:failed=6+since=60m b:failed=6+since=50m c:failed=6+since=40m d:failed=6+since=30m e:failed=6+since=20m f:failed=6+since=10m g:failed=6+since=0s")
	p := scaling.Decide(w.Snapshot)
	if want := 160 * time.Minute; p.Next != want {
		t.Errorf("after seven failures the next is made in %s, want %s", p.Next, want)
	}
}

func TestReport(t *testing.T) {
	w := region("slack=3 limit=40").planes("a:10-4 b:10-3+silent c:coming=6 d:failed=6 e:cleanup=9 f:5+registered").orders("x:2 y:9")
	got := scaling.Decide(w.Snapshot).Types[0]
	got.Decision = scaling.Decision{}
	want := scaling.TypeReport{Name: "std", DataPlanes: 3, InFlight: 1, MaxUnits: 19, UsedUnits: 9, FreeUnits: 10, PendingUnits: 9, BiggestFits: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// People read these texts; see docs/fleet.md.
func TestWords(t *testing.T) {
	for want, w := range map[string]*world{
		"create a data plane for std: 3 units are free, and the slack requires more than 3":                                                                                                     region("slack=3").planes("a:10-7"),
		"create a data plane for std: no data plane has room for the biggest size, 2 units":                                                                                                     region("slack=0").planes("a:10-9"),
		"create a data plane for std: minDataPlanes is 2, and the region has 1":                                                                                                                 region("min=2").planes("a:10"),
		"remove b: it is empty, and the other data planes have enough room":                                                                                                                     region("").planes("a:10-1 b:10"),
		"remove a: it is empty, and the region no longer has any of its types":                                                                                                                  region("name=dev limit=0").planes("a:10"),
		"restore b: 2 instances on it without a ServiceInstance, kafka-a, kafka-b: delete them on the data plane; to discard these contents, set spec.discardUnlisted of the DataPlane to true": region("").planes("a:10-1 b:doubted=10+unlisted=kafka-b+unlisted=kafka-a"),
		"restore b: its agent does not report, so it is unknown what is on it: make the agent report again; to discard these contents, set spec.discardUnlisted of the DataPlane to true":       region("").planes("a:10-1 b:doubted=10+silent"),
		"restore b: its agent reports 2 units of std as used, and the known instances use 0; to discard these contents, set spec.discardUnlisted of the DataPlane to true":                      region("").planes("a:10-1 b:doubted=10+says=2"),
		"restore b: 1 instance on it": region("").planes("a:10-1 b:doubted=10-1"),
		"restore b: without it, of std: no data plane has room for the biggest size, 2 units":                                        region("").planes("a:10-9 b:doubted=10"),
		"place t/x on a: the oldest data plane with 2 units free":                                                                    region("").planes("a:10-1").orders("x:2"),
		"fail b: the data plane was not Ready within 2h0m0s":                                                                         region("").planes("a:10 b:waiting=6+age=3h"),
		"none: 4 of at most 4 units are in use":                                                                                      region("limit=4").planes("a:10-4"),
		"none: the limit of 5 leaves 1 unit, and the existing data planes have room for that":                                        region("limit=5").planes("a:10-4"),
		"none: 1 data plane is in flight, and maxInFlight is 1":                                                                      region("").planes("a:10 b:coming=6"),
		"none: 6 units are free, more than the slack of 3, and the biggest size, 2 units, fits":                                      region("slack=3").planes("a:10-4"),
		"none: there is no pool, though no data plane has room for the biggest size, 2 units":                                        region("blocked"),
		"none: maxDataPlanes is 1, though no data plane has room for the biggest size, 2 units":                                      region("max=1").planes("a:10-9"),
		"none: 1 data plane failed in a row; the next is created at 2026-03-01T12:09:00Z, or as soon as the failed ones are deleted": region("").planes("a:failed=6+since=1m"),
		"settled": region("slack=3").planes("a:10-4"),
		"placing 1 instance; creating 1 data plane; 1 instance without a place":              region("slack=3").planes("a:5").orders("x:2 y:5"),
		"std: there is no pool, though no data plane has room for the biggest size, 2 units": region("blocked"),
	} {
		p := scaling.Decide(w.Snapshot)
		said := []string{p.Summarize(), "none: " + p.Types[0].Decision.Message}
		for _, s := range p.Steps {
			said = append(said, s.String())
		}
		if !slices.Contains(said, want) {
			t.Errorf("nothing of this is %q:\n%s", want, strings.Join(said, "\n"))
		}
	}
}
