package pool_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// members reads "a:standby b:assignable+stale": name, phase, marks. They are as
// old as they stand: the first is the oldest.
func members(text string) []pool.Member {
	var out []pool.Member
	for i, word := range strings.Fields(text) {
		name, rest, _ := strings.Cut(word, ":")
		phase, marks, _ := strings.Cut(rest, "+")
		m := pool.Member{Name: name, Created: noon.Add(time.Duration(i-1000) * time.Minute), Version: "v1"}
		inPhase(&m, phase)
		for mark := range strings.SplitSeq(marks, "+") {
			applyMark(&m, mark)
		}
		out = append(out, m)
	}
	return out
}

func inPhase(m *pool.Member, text string) {
	switch phase, arg, _ := strings.Cut(text, "="); phase {
	case "deleting":
		m.Deleting = true
	case "marked":
		m.Marked, m.Installed = true, true
	case "claimed":
		m.Installed, m.Running, m.Wanted, m.Claim = true, true, pool.Running, arg
	case "broken":
		m.GaveUp = true
	case "installing":
	case "standby":
		m.Installed, m.Wanted = true, pool.Hibernating
	case "resuming":
		m.Installed, m.Wanted = true, pool.Running
		d, err := time.ParseDuration(arg)
		if err != nil {
			panic(err)
		}
		m.ResumingSince = noon.Add(-d)
	case "assignable":
		m.Installed, m.Running, m.Wanted = true, true, pool.Running
	default:
		panic("phase " + phase)
	}
}

func applyMark(m *pool.Member, mark string) {
	switch mark {
	case "":
	case "adopted": // it does not record a version
		m.Version, m.Adopted = "", true
	case "stale":
		m.Version = "v0"
	case "run":
		m.Wanted = pool.Running
	case "sleep":
		m.Wanted = pool.Hibernating
	case "older": // made from other Secrets
		m.Sources = "older"
	case "oldrecipe":
		m.Recipe = "1-old"
	case "recipe":
		m.Recipe = "1-new"
	case "failing":
		m.Failing = true
	case "paused":
		m.Paused = hivev1.AnnotationReconcilePause
	case "marked":
		m.Marked = true
	case "protected":
		m.Protected = true
	case "undeletable":
		m.DeletionError = "the credentials are wrong."
	case "withdrawn":
		m.Withdrawn = "its customization foo is no longer in the inventory"
	case "unaware":
		m.ClaimUnaware = true
	case "lost":
		m.ClaimMissingSince = noon.Add(-9 * time.Minute)
	case "longlost":
		m.ClaimMissingSince = noon.Add(-10 * time.Minute)
	case "stuck":
		m.RequirementsUnmet = "the base domain is not valid"
	case "unreachable":
		m.UnreachableSince = noon.Add(-time.Minute)
	case "powerfailed":
		m.PowerFailed = true
	case "took":
		m.InstallTook, m.ResumeTook = 30*time.Minute, 2*time.Minute
	case "dead":
		m.PowerFailed, m.MachinesFailed = true, true
	case "tried":
		m.MachinesFailed = true
	case "unreadable":
		m.Unreadable = "spec.x: 1 is not a string"
	case "timedout":
		m.PowerTimedOut = true
	case "stepped": // every step of the version that settings require is done
		m.Steps, m.StepsDone, m.StepsDoneAt = "s1", true, noon.Add(-time.Second)
	case "oldstepped": // those of another version
		m.Steps, m.StepsDone = "s0", true
	case "stepping", "longstepping", "toostepping": // a step has taken one, six, and ten minutes of ten
		m.Steps, m.StepFailure = "s1", "step web fails"
		m.StepSince = noon.Add(-map[string]time.Duration{"stepping": 1, "longstepping": 6, "toostepping": 10}[mark] * time.Minute)
		m.StepDeadline = m.StepSince.Add(10 * time.Minute)
	case "predating": // it was installed before the pool had steps
		m.InstalledAt = noon.Add(-2 * time.Hour)
	case "begun": // it has begun the steps, and does not run
		m.Steps = "s1"
	case "oldstepping": // it has begun the steps of another version
		m.Steps = "s0"
	case "passed": // the gates of the version that settings require
		m.HasGates, m.GatesPassed, m.GatesEverPassed = true, "g1", true
	case "passedbefore":
		m.HasGates, m.GatesEverPassed = true, true
	case "passedother":
		m.HasGates, m.GatesPassed, m.GatesEverPassed = true, "g0", true
	case "red", "longred", "toored": // a gate fails for one, six, and ten minutes of ten
		m.HasGates, m.GatesFailing, m.GatesFailure = true, "g1", "gate web fails"
		m.GatesFailingSince = noon.Add(-map[string]time.Duration{"red": 1, "longred": 6, "toored": 10}[mark] * time.Minute)
		m.GatesDeadline = m.GatesFailingSince.Add(10 * time.Minute)
	default:
		panic("mark " + mark)
	}
}

// claims reads "x y=b z! w? v^2": waiting, served by b, being deleted, unreadable, with priority 2; each is a
// minute younger than the one before it.
func claims(text string) []pool.Claim {
	var out []pool.Claim
	for i, word := range strings.Fields(text) {
		name, cluster, _ := strings.Cut(strings.TrimRight(word, "!?~"), "=")
		name, priority, _ := strings.Cut(name, "^")
		n, _ := strconv.Atoi(priority) // 0 if there is none
		out = append(out, pool.Claim{
			Name: name, Priority: n, Cluster: cluster, Deleting: strings.Contains(word, "!"), Unreadable: strings.Contains(word, "?"), Held: strings.Contains(word, "~"),
			Created: noon.Add(time.Duration(i-100) * time.Minute),
		})
	}
	return out
}

func ptr(n int) *int { return &n }

func settings(size, running int) pool.Settings {
	return pool.Settings{Size: size, RunningCount: running, Version: "v1"}
}

func with(s pool.Settings, change func(*pool.Settings)) pool.Settings {
	change(&s)
	return s
}

// brief is a plan without its reasons: "bind x b, create, delete c".
func brief(p pool.Plan) string {
	var out []string
	for _, s := range p.Steps {
		if s.Verb == pool.SetPosition {
			continue // position_test.go has these
		}
		out = append(out, strings.Join(strings.Fields(fmt.Sprint(s.Verb, " ", s.Claim, " ", s.Cluster)), " "))
	}
	return strings.Join(out, ", ")
}

// stocked are settings of a pool in whose inventory these are free.
func stocked(s pool.Settings, free ...string) pool.Settings {
	s.Inventory, s.Free = true, free
	return s
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		set     pool.Settings
		members string
		claims  string
		want    string
	}{
		"an empty pool is filled":                       {settings(2, 0), "", "", "create, create"},
		"a full pool is left alone":                     {settings(2, 1), "a:assignable b:standby", "", ""},
		"the oldest runningCount clusters run":          {settings(3, 1), "a:standby b:standby c:standby", "", "start a"},
		"the others sleep":                              {settings(2, 1), "a:assignable b:assignable", "", "hibernate b"},
		"installing clusters are told too":              {settings(2, 1), "a:installing b:installing", "", "start a, hibernate b"},
		"runningCount above size means size":            {settings(1, 5), "a:assignable b:claimed=x", "x=b", ""},
		"the oldest claim gets the oldest running":      {settings(0, 0), "a:standby b:assignable c:assignable", "x y", "bind x b, bind y c, delete a"},
		"a priority is worth as many minutes":           {settings(1, 1), "a:assignable", "x y z^3", "bind z a, create, create, create"},
		"… and no more":                                 {settings(1, 1), "a:assignable", "x y z^2", "bind x a, create, create, create"},
		"a negative one lets later claims pass":         {settings(1, 1), "a:assignable", "x^-2 y", "bind y a, create, create"},
		"a binding that has begun is completed":         {settings(0, 0), "a:claimed=x", "x y^9", "bind x a, create"},
		"a claim that is held gets none":                {settings(1, 1), "a:assignable", "x~ y", "bind y a, create"},
		"… and asks for no more":                        {settings(1, 1), "a:assignable", "x~", ""},
		"… but keeps what it has":                       {settings(1, 1), "a:claimed=x b:assignable", "x~=a", ""},
		"… and not what was reserved for its name":      {settings(1, 1), "a:claimed=x b:assignable", "x~", ""},
		"… until it is admitted":                        {settings(1, 1), "a:claimed=x b:assignable", "x", "bind x a"},
		"a protected cluster is not deleted":            {settings(1, 1), "a:claimed=x+protected b:assignable", "x!", ""},
		"… not even if it is broken":                    {settings(1, 1), "a:broken+protected b:assignable", "", ""},
		"… while others are":                            {settings(1, 0), "a:standby b:standby c:standby+protected", "", "delete b, delete a"},
		"… and others that are stale are replaced":      {settings(2, 0), "a:standby+stale+protected b:standby+stale", "", "delete b"},
		"a paused cluster is the last one too many":     {settings(1, 2), "a:standby+paused+run b:assignable", "", "delete b"},
		"… and takes nobody's turn":                     {with(settings(0, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(1) }), "a:claimed=x+protected b:claimed=y", "x! y!", "delete b"},
		"only a running cluster is assigned":            {settings(1, 0), "a:standby", "x", "start a, create"},
		"a waiting claim adds a cluster":                {settings(1, 1), "a:installing+run", "x", "create"},
		"a cluster is told of the claim that has it":    {settings(1, 1), "a:assignable b:assignable", "x=a", "bind x a"},
		"… and is not given to another":                 {settings(1, 1), "a:assignable b:standby", "x=a y", "bind x a, start b, create"},
		"… unless that claim goes":                      {settings(1, 1), "a:assignable", "x=a! y", "bind y a, create"},
		"a pool of size zero serves claims":             {settings(0, 0), "", "x", "create"},
		"a served claim is replaced":                    {settings(1, 1), "a:assignable", "x", "bind x a, create"},
		"a claim being deleted gets nothing":            {settings(1, 1), "a:assignable", "x!", ""}, // B18
		"a broken cluster is never assigned":            {settings(1, 1), "a:broken", "x", "create, create, delete a"},
		"half a binding is finished":                    {settings(0, 0), "a:claimed=x", "x", "bind x a"},
		"also by a pool that is being deleted":          {with(settings(0, 0), func(s *pool.Settings) { s.Deleting = true }), "a:claimed=x", "x", "bind x a"},
		"a claim is given only one cluster":             {settings(0, 0), "a:claimed=x b:claimed=x", "x=a", "delete b"},
		"a cluster goes with its claim":                 {settings(0, 0), "a:claimed=x", "x=a!", "delete a"},
		"a cluster whose claim was lost is kept":        {settings(0, 0), "a:claimed=x+lost", "", ""},
		"… for ten minutes":                             {settings(0, 0), "a:claimed=x+longlost", "", "delete a"},
		"… and is kept when it is not known since when": {settings(0, 0), "a:claimed=x", "", ""},
		"one whose claim never knew of it goes at once": {settings(0, 0), "a:claimed=x+unaware", "", "delete a"},
		"a claim that is created again keeps it":        {settings(0, 0), "a:claimed=x", "x", "bind x a"},
		"a marked cluster goes":                         {settings(1, 0), "a:marked b:standby", "", "delete a"},
		"a claimed cluster is never touched":            {settings(0, 0), "a:claimed=x+stale+sleep", "x=a", ""},
		"surplus: installing newest first":              {settings(1, 0), "a:standby b:installing+sleep c:installing+sleep", "", "delete c, delete b"},
		"surplus: then stand-by":                        {settings(1, 1), "a:assignable b:standby c:standby", "", "delete c, delete b"},
		"surplus: running ones last":                    {settings(1, 2), "a:assignable b:standby", "", "delete b"},
		"one stale cluster at a time, oldest first":     {settings(3, 0), "a:standby b:standby+stale c:standby+stale", "", "delete b"},
		"stale ones wait until the pool is settled":     {settings(3, 0), "a:standby+stale b:standby+stale c:installing+sleep", "", ""},
		"… also where maxSize is below the size": {
			with(settings(3, 0), func(s *pool.Settings) { s.MaxSize = ptr(2) }), "a:standby b:standby+stale", "", "delete b",
		},
		"… not while a claim's cluster takes the room": {
			with(settings(3, 0), func(s *pool.Settings) { s.MaxSize = ptr(3) }), "a:standby b:standby+stale c:claimed=x", "x=c", "",
		},
		"a waiting claim wakes the next stand-by":     {settings(2, 0), "a:standby b:standby", "x", "start a, create"},
		"an overdue resume uses up no slot":           {settings(2, 0), "a:resuming=11m b:standby", "x", "start b, create"}, // B19
		"a young resume does":                         {settings(2, 0), "a:resuming=1m b:standby", "x", "create"},
		"one that fails to start is not put to sleep": {settings(2, 0), "a:resuming=1m+powerfailed b:standby", "", ""},
		"… nor one whose machines are tried again":    {settings(2, 0), "a:resuming=5s+tried b:standby", "", ""},
		"machines that fail get a second try":         {settings(2, 0), "a:resuming=29s+dead b:standby", "x", "start b, create"},
		"then the cluster is replaced":                {settings(2, 0), "a:resuming=30s+dead b:standby", "x", "start b, create, create, delete a"},
		"… within maxConcurrent": {
			with(settings(2, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(1) }), "a:resuming=30s+dead b:standby", "x", "start b, create",
		},
		"nor does one that fails to start":            {settings(2, 0), "a:resuming=1m+powerfailed b:standby", "x", "start b, create"}, // B19
		"nor an install whose last attempt failed":    {settings(2, 1), "a:installing+run+failing b:standby", "", "start b"},
		"a resume that timed out is broken":           {settings(1, 1), "a:resuming=1h+timedout", "", "create, delete a"},
		"a manual change of power is set back":        {settings(1, 0), "a:assignable", "", "hibernate a"},
		"maxSize counts every cluster":                {with(settings(2, 0), func(s *pool.Settings) { s.MaxSize = ptr(3) }), "a:claimed=x b:claimed=y", "x=a y=b", "create"},
		"maxSize 0 is a drained pool":                 {with(settings(2, 0), func(s *pool.Settings) { s.MaxSize = ptr(0) }), "", "x", ""},
		"maxConcurrent bounds installs":               {with(settings(5, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(2) }), "a:installing+sleep", "", "create"},
		"maxConcurrent 0 freezes the pool":            {with(settings(5, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(0) }), "a:broken b:marked", "", ""},
		"maxConcurrent counts deletions":              {with(settings(1, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(1) }), "a:deleting b:broken", "", ""},
		"broken ones go after additions":              {with(settings(2, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(1) }), "a:broken b:standby", "", "create"},
		"a full pool still clears its broken":         {with(settings(2, 0), func(s *pool.Settings) { s.MaxSize = ptr(2) }), "a:broken b:standby", "x", "start b, delete a"}, // B9
		"a missing dependency stops creation only":    {with(settings(2, 1), func(s *pool.Settings) { s.Blocked = "no image set" }), "a:assignable", "x", "bind x a"},        // B30
		"the platform's room is a limit":              {with(settings(3, 0), func(s *pool.Settings) { s.Room = ptr(1) }), "", "", "create"},
		"so is the inventory":                         {stocked(settings(3, 0), "foo"), "", "", "create"},
		"a used up inventory still clears its broken": {stocked(settings(2, 0)), "a:broken b:standby", "x", "start b, delete a"},
		"… and renews what is stale":                  {stocked(settings(3, 0)), "a:standby b:standby+stale", "", "delete b"},
		"… unless a claim waits":                      {stocked(settings(3, 0)), "a:standby b:standby+stale", "x", "start a"},
		"one that is short for now does not":          {stocked(settings(3, 0), "foo"), "a:standby b:standby+stale", "", "create"},
		"a pool being deleted lets unclaimed go":      {with(settings(2, 1), func(s *pool.Settings) { s.Deleting = true }), "a:assignable b:claimed=y c:broken", "x y=b", "delete a, delete c"},
		"a resume past the pool's timeout is broken":  {with(settings(1, 1), func(s *pool.Settings) { s.ResumeTimeout = 20 * time.Minute }), "a:resuming=20m", "", "create, delete a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: tc.set, Members: members(tc.members), Claims: claims(tc.claims), Now: noon}
			if got := brief(pool.Decide(s)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// An unreadable member is left alone, whatever its other fields say, and blocks nothing.
func TestWhatCouldNotBeReadIsLeftAlone(t *testing.T) {
	tests := map[string]struct {
		set     pool.Settings
		members string
		claims  string
		want    string
	}{
		"one that could be assigned is not":              {settings(1, 1), "a:assignable+unreadable", "x", "create"},
		"none is made in its place":                      {settings(2, 2), "a:standby+unreadable b:assignable", "", ""},
		"a claim does not wait for it":                   {settings(0, 0), "a:standby+unreadable", "x", "create"},
		"it is not told what to be":                      {settings(1, 0), "a:assignable+unreadable", "", ""},
		"a broken one is not replaced":                   {settings(1, 0), "a:broken+unreadable", "", ""},
		"a marked one is not removed":                    {settings(1, 0), "a:marked+unreadable", "", ""},
		"a stale one is not replaced, the next one is":   {settings(2, 0), "a:standby+stale+unreadable b:standby+stale", "", "delete b"},
		"too many are trimmed around it":                 {settings(1, 0), "a:standby+unreadable b:standby c:standby", "", "delete c, delete b"},
		"one whose claim is gone stays":                  {settings(0, 0), "a:claimed=x+unreadable", "", ""},
		"one whose claim does not know of it stays":      {settings(0, 0), "a:claimed=x+unreadable", "x", ""},
		"a pool being deleted waits for it":              {with(settings(1, 0), func(s *pool.Settings) { s.Deleting = true }), "a:standby+unreadable b:standby", "", "delete b"},
		"a claim that could not be read gets none":       {settings(1, 1), "a:assignable", "x? y", "bind y a, create"},
		"a claim that could not be read keeps its own":   {settings(0, 0), "a:claimed=x", "x?", ""},
		"a deleted claim that could not be read goes on": {settings(0, 0), "a:claimed=x", "x?!", "delete a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: tc.set, Members: members(tc.members), Claims: claims(tc.claims), Now: noon}
			if got := brief(pool.Decide(s)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestPendingClustersCount(t *testing.T) { // B1
	s := pool.Snapshot{Settings: settings(3, 0), Members: members("a:standby"), Pending: []string{"b"}, Now: noon}
	if got := brief(pool.Decide(s)); got != "complete creation b, create" {
		t.Errorf("a recorded cluster is one of the three: got %q", got)
	}
}

func TestDeadlinesWakeThePool(t *testing.T) { // B11
	s := pool.Snapshot{Settings: settings(1, 1), Members: members("a:resuming=4m"), Now: noon}
	s.Settings.ResumeTimeout = 10 * time.Minute
	if got := pool.Decide(s).Next; got != time.Minute {
		t.Errorf("half of the timeout is a minute away: got %v", got)
	}
	s.Now = noon.Add(2 * time.Minute)
	if got := pool.Decide(s).Next; got != 4*time.Minute {
		t.Errorf("the timeout is four minutes away: got %v", got)
	}
	for name, away := range map[string]func(*pool.Member, time.Time){
		"unreachable": func(m *pool.Member, at time.Time) { m.UnreachableSince = at },
		"unready":     func(m *pool.Member, at time.Time) { m.UnreadySince = at },
	} {
		s.Members = members("a:standby")
		away(&s.Members[0], s.Now.Add(-3*time.Minute))
		if got := pool.Decide(s).Next; got != 2*time.Minute {
			t.Errorf("%s for three minutes of ten: looks again in %v, want it at half of the timeout", name, got)
		}
		s.Now = s.Now.Add(2 * time.Minute)
		if got := pool.Decide(s).Next; got != 5*time.Minute {
			t.Errorf("%s for five minutes of ten: looks again in %v", name, got)
		}
		s.Now = s.Now.Add(-2 * time.Minute)
	}
}

func TestAnySizeMayBeAskedFor(t *testing.T) {
	for _, size := range []int{math.MinInt32, -1, math.MaxInt32} {
		s := pool.Snapshot{Settings: settings(size, size), Members: members("a:standby b:assignable"), Claims: claims("x"), Now: noon}
		p := pool.Decide(s)
		if n := len(p.StepsOf(pool.Create)); n > 10_000 {
			t.Errorf("size %d: a plan with %d creations may not fit into memory", size, n)
		}
		if want := "; 2147473646 short: 10000 are created at a time"; size > 0 && !strings.HasSuffix(p.Report.Words, want) {
			t.Errorf("size %d: got %q, want it to end with %q", size, p.Report.Words, want)
		}
	}
}

func TestStepsAreSentences(t *testing.T) {
	s := pool.Snapshot{Settings: settings(1, 1), Members: members("a:assignable b:broken"), Claims: claims("x"), Now: noon}
	want := "bind x to a: oldest claim, oldest running cluster\ncreate a cluster: size is 1\ndelete b: it is broken"
	if diff := cmp.Diff(want, pool.Decide(s).String()); diff != "" {
		t.Error(diff)
	}
}

func TestWords(t *testing.T) {
	tests := map[string]struct {
		set     pool.Settings
		members string
		claims  string
		want    string
	}{
		"nothing to do": {settings(1, 1), "a:assignable", "", "settled"},
		"growing":       {settings(3, 1), "a:installing", "", "installing 3"},
		"waiting":       {settings(1, 0), "a:standby", "x y", "installing 2, resuming 1; 2 claims waiting"},
		"unreadable": {
			settings(2, 0), "a:standby+unreadable b:claimed=x+unreadable", "x=b",
			"installing 1; ClusterDeployment a is not reconciled until it can be read: spec.x: 1 is not a string; the same is true of 1 more",
		},
		"runningCount too big": {settings(1, 4), "a:assignable", "", "settled; runningCount 4 is above size: at most 1 will run"},
		"blocked":              {with(settings(2, 0), func(s *pool.Settings) { s.Blocked = "cluster image set v9 does not exist" }), "", "", "blocked; 2 short: cluster image set v9 does not exist"},
		"full":                 {with(settings(3, 0), func(s *pool.Settings) { s.MaxSize = ptr(1) }), "a:standby", "", "blocked; 2 short: maxSize is 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: tc.set, Members: members(tc.members), Claims: claims(tc.claims), Now: noon}
			if got := pool.Decide(s).Report.Words; got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestQueue(t *testing.T) {
	tests := map[string]struct {
		set     pool.Settings
		members string
		claims  string
		want    string
	}{
		"nobody waits": {settings(1, 1), "a:assignable", "x=a", ""},
		"a pool that has made nothing cannot tell":               {settings(1, 0), "a:installing", "x", "1 x"},
		"one that resumes is expected when such things take":     {settings(1, 0), "a:claimed=w+took b:resuming=1m", "w=a x", "1 x 1m0s"},
		"one that is woken now counts from now":                  {settings(1, 0), "a:claimed=w+took b:standby", "w=a x", "1 x 2m0s"},
		"the second claim gets what is ready second":             {settings(1, 0), "a:claimed=w+took b:resuming=1m c:installing", "w=a x y", "1 x 1m0s, 2 y 30m0s"},
		"one that is overdue is still counted on":                {settings(1, 0), "a:claimed=w+took b:resuming=3m", "w=a x", "1 x -1m0s"},
		"… until it takes twice as long as usual":                {settings(0, 0), "a:claimed=w+took b:installing", "w=a x", "1 x"},
		"one that is created now takes a whole install":          {settings(0, 0), "a:claimed=w+took", "w=a x", "1 x 30m0s"},
		"one that struggles is not counted on":                   {with(settings(1, 0), func(s *pool.Settings) { s.MaxSize = ptr(2) }), "a:claimed=w+took b:resuming=11m", "w=a x", "1 x"},
		"what the limits leave no room for has no time":          {with(settings(0, 0), func(s *pool.Settings) { s.MaxSize = ptr(2) }), "a:claimed=w+took", "w=a x y", "1 x 30m0s, 2 y"},
		"a pool that is being deleted serves nobody":             {with(settings(1, 0), func(s *pool.Settings) { s.Deleting = true }), "a:claimed=w+took", "w=a x", ""},
		"claims that go, and claims that were served, have none": {settings(0, 0), "a:claimed=w+took", "w=a v! x", "1 x 30m0s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := pool.Decide(pool.Snapshot{Settings: tc.set, Members: members(tc.members), Claims: claims(tc.claims), Now: noon})
			var got []string
			for _, w := range p.Report.Queue {
				text := fmt.Sprintf("%d %s", w.Position, w.Claim)
				if !w.Ready.IsZero() {
					text += " " + w.Ready.Sub(noon).String()
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClustersAreMadeWithWhatIsFree(t *testing.T) {
	p := pool.Decide(pool.Snapshot{Settings: stocked(settings(3, 0), "foo", "bar"), Now: noon})
	want := "create a cluster with foo: size is 3\ncreate a cluster with bar: size is 3"
	if p.String() != want {
		t.Errorf("got\n%s\nwant\n%s", p, want)
	}
	if r := p.Report; !r.Full || r.By != pool.ByInventory || r.Words != "installing 2; 1 short: no customization of the inventory is free" {
		t.Errorf("it is full: %t, by %s: %s", r.Full, r.By, r.Words)
	}
	used := pool.Decide(pool.Snapshot{Settings: stocked(settings(0, 0)), Now: noon})
	if used.Report.Full {
		t.Error("a pool that wants no more of its inventory counts as full")
	}
}

func TestACustomizationMakesAClusterStaleOrBroken(t *testing.T) {
	s := stocked(settings(2, 0))
	m := func(name string, change func(*pool.Member)) pool.Member {
		m := pool.Member{Name: name, Version: s.Version, Installed: true, Wanted: pool.Hibernating}
		change(&m)
		return m
	}
	p := pool.Decide(pool.Snapshot{Settings: s, Now: noon, Members: []pool.Member{
		m("a", func(m *pool.Member) { m.Outdated = "its customization foo was changed" }),
		m("b", func(*pool.Member) {}),
	}})
	if got, want := p.String(), "delete a: its customization foo was changed"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p = pool.Decide(pool.Snapshot{Settings: s, Now: noon, Members: []pool.Member{
		m("a", func(m *pool.Member) { m.Displaced = "cluster b has its customization foo" }),
		m("c", func(m *pool.Member) { m.Displaced = "cluster b has its customization foo"; m.Claim = "x" }),
	}, Claims: []pool.Claim{{Name: "x", Cluster: "c"}}})
	if got, want := p.String(), "delete a: cluster b has its customization foo"; got != want || p.Steps[0].Cause != pool.Displaced {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Snapshots come in no order.
func TestAClusterThatTwoClaimsNameIsTheOlders(t *testing.T) {
	list := claims("x=a y=a")
	for range 2 {
		slices.Reverse(list)
		p := pool.Decide(pool.Snapshot{Settings: settings(0, 0), Now: noon, Members: members("a:assignable"), Claims: list})
		if got := p.StepsOf(pool.Bind); len(got) != 1 || got[0].Claim != "x" || got[0].Cluster != "a" {
			t.Errorf("%v, want a to be bound to x", got)
		}
	}
}
