package claimset

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/heartbeat"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// claims are written as "0@dev": the index and the pool. "0@dev=c" has cluster c, "+" marks one whose cluster is running,
// "-" one that is being deleted, and "!" one whose cluster was deleted.
func claims(text string) []Claim {
	var out []Claim
	for _, word := range strings.Fields(text) {
		marks := strings.TrimLeft(word, "+-!")
		var c Claim
		for _, m := range strings.TrimSuffix(word, marks) {
			c.Running, c.Deleting, c.Lost = c.Running || m == '+', c.Deleting || m == '-', c.Lost || m == '!'
		}
		index, rest, _ := strings.Cut(marks, "@")
		c.Name = "s-" + index
		c.Pool, c.Cluster, _ = strings.Cut(rest, "=")
		out = append(out, c)
	}
	return out
}

// pools are written as "dev:2/4": the number of clusters that run and are free, and the most that it can have. "dev:2+1" has one
// that hibernates in addition, and "dev:2=1" keeps one of them without claims. Of "dev:2/4*1", claims of others have one cluster. "-" marks a
// pool that is being deleted, "~" one that ClaimPolicies do not permit, "#" one that creates no more clusters.
func pools(text string) []Pool {
	var out []Pool
	for _, word := range strings.Fields(text) {
		name, rest, _ := strings.Cut(word, ":")
		p := Pool{Name: strings.TrimLeft(name, "-~#"), Deleting: strings.HasPrefix(name, "-"), NotPermitted: strings.HasPrefix(name, "~"), Kept: FreeClusters{9, 9}}
		if strings.HasPrefix(name, "#") {
			p.Blocked = "no image set"
		}
		if before, occupied, some := strings.Cut(rest, "*"); some {
			rest, p.Occupied = before, number(occupied)
		}
		if before, keeps, limited := strings.Cut(rest, "="); limited {
			rest = before
			p.Kept = FreeClusters{number(keeps), number(keeps)}
		}
		if before, most, limited := strings.Cut(rest, "/"); limited {
			rest = before
			p.Most, p.MostReason = new(number(most)), "its maxSize"
		}
		counts := append(strings.Split(rest, "+"), "0")
		p.Free.Running = number(counts[0])
		p.Free.Installed = p.Free.Running + number(counts[1])
		out = append(out, p)
	}
	return out
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // a mistake in a table
	}
	return n
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		in    Snapshot
		pools string
		// prefers are pools by preference: "a,b c" prefers a and b, then c.
		prefers, claims  string
		steps            string // the verbs and objects of the steps
		pending, running string // reasons; "!" if a person must act
	}{
		"its claims are created":                   {Snapshot{PoolName: "dev"}, "dev:0", "", "", "create s-0@dev, create s-1@dev", "NoClusters", ""},
		"after its finalizer":                      {Snapshot{PoolName: "dev", FinalizerMissing: true}, "dev:0", "", "", "add finalizer, create s-0@dev, create s-1@dev", "NoClusters", ""},
		"one that is missing is created":           {Snapshot{PoolName: "dev"}, "dev:0", "", "1@dev", "create s-0@dev", "NoClusters", ""},
		"not while its name is in use":             {Snapshot{PoolName: "dev"}, "dev:0", "", "-0@dev 1@dev", "", "NoClusters", ""},
		"none once one has a cluster":              {Snapshot{PoolName: "dev"}, "dev:0", "", "1@dev=c", "", "", "NotRunning"},
		"a set that is served in part":             {Snapshot{PoolName: "dev"}, "dev:0", "", "0@dev 1@dev=c", "", "AssigningClusters", ""},
		"a set that is served":                     {Snapshot{PoolName: "dev"}, "dev:0", "", "+0@dev=b +1@dev=c", "", "", "Running"},
		"one of its claims is released":            {Snapshot{PoolName: "dev", Served: true}, "dev:0", "", "+1@dev=c", "", "", "ClaimsReleased"},
		"one of its clusters was deleted":          {Snapshot{PoolName: "dev", Served: true}, "dev:0", "", "!0@dev=b +1@dev=c", "", "", "ClusterDeleted"},
		"its last claim is being released":         {Snapshot{PoolName: "dev", Served: true}, "dev:0", "", "-1@dev=c", "", "", "ClaimsReleased"},
		"it ends with its last claim":              {Snapshot{PoolName: "dev", Served: true}, "dev:0", "", "", "delete ClaimSet", "", "ClaimsReleased"},
		"a deleted set releases its claims":        {Snapshot{PoolName: "dev", Deleting: true}, "dev:0", "", "0@dev=b -1@dev=c", "delete s-0", "Releasing", ""},
		"and then ends":                            {Snapshot{PoolName: "dev", Deleting: true}, "dev:0", "", "", "remove finalizer", "", ""},
		"a pool that does not exist":               {Snapshot{PoolName: "dev"}, "", "", "", "", "PoolNotFound!", ""},
		"a pool that is being deleted":             {Snapshot{PoolName: "dev"}, "-dev:0", "", "0@dev 1@dev", "", "PoolDeleting!", ""},
		"a pool that is too small":                 {Snapshot{PoolName: "dev"}, "dev:0/1", "", "", "", "TooLarge!", ""},
		"a name that others have":                  {Snapshot{PoolName: "dev", Taken: []string{"s-1"}}, "dev:0", "", "", "", "NameTaken!", ""},
		"claims that the hub refuses":              {Snapshot{PoolName: "dev", Refusal: "quota"}, "dev:0", "", "", "create s-0@dev, create s-1@dev", "ClaimsRefused!", ""},
		"a set that cannot be read":                {Snapshot{PoolName: "dev", Unreadable: "x"}, "dev:0", "", "", "", "Unreadable!", ""},
		"a selector that is not valid":             {Snapshot{SelectorProblem: "x"}, "dev:0", "", "", "", "InvalidSelector!", ""},
		"a selector that matches nothing":          {Snapshot{}, "dev:2", " ", "", "", "NoPoolMatches!", ""},
		"the preferred pool":                       {Snapshot{}, "a:2 b:2", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"the one of a preference with more":        {Snapshot{}, "a:2 b:3", "a,b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"the next one if the first is short":       {Snapshot{}, "a:1 b:2", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"not if it is short, too":                  {Snapshot{}, "a:1 b:1", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"nor if that can never serve it":           {Snapshot{}, "a:1 b:9/1", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"the next one if the first never can":      {Snapshot{}, "a:9/1 b:0", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"one that has enough that hibernate":       {Snapshot{}, "a:1 b:0+2", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"rather one that runs":                     {Snapshot{}, "a:1+3 b:2", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"it moves to clusters that hibernate":      {Snapshot{}, "#a:1 b:1+1", "a b", "0@a 1@a", "delete s-0, delete s-1", "NoClusters", ""},
		"not to those that the pool deletes":       {Snapshot{}, "a:1 b:1+1=1", "a b", "0@a 1@a", "", "NoClusters", ""},
		"nor to running ones that it deletes":      {Snapshot{}, "a:1 b:2=1", "a b", "0@a 1@a", "", "NoClusters", ""},
		"a new set does take those":                {Snapshot{}, "a:1 b:2=1", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"and stays while they resume":              {Snapshot{}, "a:1+1 b:1+1", "a b", "0@b 1@b", "", "NoClusters", ""},
		"it does not wait for a blocked pool":      {Snapshot{}, "#a:1 b:0", "a,b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"it leaves a pool that is blocked":         {Snapshot{}, "#a:1 b:0", "a b", "0@a 1@a", "delete s-0, delete s-1", "NoClusters", ""},
		"it does not wait for claims of others":    {Snapshot{}, "a:0/4*3 b:0/9*7", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"it leaves a pool that others fill":        {Snapshot{}, "a:0/4*3 b:0", "a b", "0@a 1@a", "delete s-0, delete s-1", "NoClusters", ""},
		"not for one that others fill, too":        {Snapshot{}, "a:0/4*3 b:0/4*3", "a b", "0@a 1@a", "", "NoClusters", ""},
		"rather one that others fill than blocked": {Snapshot{}, "#a:0 b:0/4*3", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"also one that is filled, if it can serve": {Snapshot{}, "a:2/4*3 b:0", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"not for one that is blocked, too":         {Snapshot{}, "#a:1 #b:0", "a b", "0@a 1@a", "", "NoClusters", ""},
		"it stays while one of its claims ends":    {Snapshot{LastPool: "a"}, "a:0 b:2", "a b", "-0@a=c 1@a", "", "NoClusters", ""},
		"also if its pool is going":                {Snapshot{LastPool: "a"}, "-a:0 b:2", "a b", "-0@a=c 1@a", "", "NoClusters", ""},
		"all are too small":                        {Snapshot{}, "a:9/1 b:0/1", "a b", "", "", "TooLarge!", ""},
		"all are being deleted":                    {Snapshot{}, "-a:2", "a", "", "", "PoolDeleting!", ""},
		"it moves to a pool that can serve it":     {Snapshot{}, "a:1 b:2", "a b", "0@a 1@a", "delete s-0, delete s-1", "NoClusters", ""},
		"and is created there when it has left":    {Snapshot{}, "a:1 b:2", "a b", "-0@a", "", "NoClusters", ""},
		"it arrives where it has moved to":         {Snapshot{LastPool: "b"}, "a:2 b:2", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"also while its claims are deleted":        {Snapshot{LastPool: "b"}, "a:2 b:2", "a b", "-0@a -1@a", "", "NoClusters", ""},
		"unless that has become short":             {Snapshot{LastPool: "b"}, "a:2 b:1", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"or is gone":                               {Snapshot{LastPool: "b"}, "a:0", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"it stays where it waits":                  {Snapshot{}, "a:1 b:1", "a b", "0@b 1@b", "", "NoClusters", ""},
		"it stays where it can be served":          {Snapshot{}, "a:3 b:2", "a,b", "0@b 1@b", "", "NoClusters", ""},
		"it moves from a pool that goes":           {Snapshot{}, "-a:1 b:1", "a b", "0@a 1@a", "delete s-0, delete s-1", "NoClusters", ""},
		"it never moves once one has a cluster":    {Snapshot{}, "a:0 b:2", "a b", "0@a=c 1@a", "", "AssigningClusters", ""},
		"it is claimed for claims on two pools":    {Snapshot{}, "a:2 b:0", "a b", "0@b 1@a", "delete s-0", "NoClusters", ""},
		"a preference for a while":                 {Snapshot{Now: noon.Add(4 * time.Minute)}, "a:1 b:2", "a=5m b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"then the next":                            {Snapshot{Now: noon.Add(5 * time.Minute)}, "a:1 b:2", "a=5m b", "0@a 1@a", "delete s-0, delete s-1", "NoClusters", ""},
		"nor to one that came later and is short":  {Snapshot{Now: noon.Add(time.Minute)}, "a:1 b:1", "a=5m b", "0@b 1@b", "", "NoClusters", ""},
		"nor from one that can serve it":           {Snapshot{Now: noon.Add(time.Minute)}, "a:2 b:2", "a=5m b", "0@b 1@b", "", "NoClusters", ""},
		"but to one that can":                      {Snapshot{Now: noon.Add(time.Minute)}, "a:2 b:1", "a=5m b", "0@b 1@b", "delete s-0, delete s-1", "NoClusters", ""},
		"not one that policies do not permit":      {Snapshot{}, "~a:2 b:0", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"nor as the next one":                      {Snapshot{}, "a:1 ~b:2", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"it moves from one that they no longer do": {Snapshot{}, "a:1 ~b:2", "a b", "0@b 1@b", "delete s-0, delete s-1", "NoClusters", ""},
		"if they permit none, its claims say so":   {Snapshot{}, "~a:2 ~b:2", "a b", "", "create s-0@a, create s-1@a", "NoClusters", ""},
		"a too small one that they permit":         {Snapshot{}, "a:1/1 ~b:2", "a b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
		"the pool that its spec names":             {Snapshot{PoolName: "dev"}, "~dev:2", "", "", "create s-0@dev, create s-1@dev", "NoClusters", ""},
		"a preference without pools does not last": {Snapshot{Now: noon}, "b:2", "a=5m b", "", "create s-0@b, create s-1@b", "NoClusters", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.in
			s.Name, s.Size, s.Created, s.Pools, s.Claims = "s", 2, noon, pools(tc.pools), claims(tc.claims)
			if s.Now.IsZero() {
				s.Now = noon
			}
			for _, text := range strings.Fields(tc.prefers) {
				names, wait, _ := strings.Cut(text, "=")
				after, _ := time.ParseDuration(wait)
				s.Preferences = append(s.Preferences, Preference{strings.Split(names, ","), after})
			}
			p := Decide(s)
			if got := describe(p); got != tc.steps {
				t.Errorf("steps %q, want %q\n%s", got, tc.steps, p)
			}
			pending := ""
			if p.Pending.IsTrue() {
				pending = p.Pending.Reason
			}
			if p.Stalled {
				pending += "!"
			}
			if pending != tc.pending || p.ClustersRunning.Reason != tc.running {
				t.Errorf("Pending %q, ClustersRunning %q: want %q and %q: %+v", pending, p.ClustersRunning.Reason, tc.pending, tc.running, p)
			}
			if wait := strings.Contains(tc.prefers, "=5m") && s.Now.Sub(noon) == 4*time.Minute; wait != (p.Next == time.Minute) {
				t.Errorf("it looks again in %s", p.Next)
			}
		})
	}
}

func describe(p Plan) string {
	var out []string
	for _, st := range p.Steps {
		switch st.Verb {
		case CreateClaim:
			out = append(out, "create "+st.Claim+"@"+st.Pool)
		case DeleteClaim:
			out = append(out, "delete "+st.Claim)
		default:
			out = append(out, string(st.Verb))
		}
	}
	return strings.Join(out, ", ")
}

func TestHeartbeats(t *testing.T) {
	const no = -1
	beat := func(timeout hivev1.Duration, seen, missing time.Duration) *heartbeat.Observation {
		o := &heartbeat.Observation{Timeout: timeout, SeenAt: noon.Add(-seen)}
		if missing >= 0 {
			o.MissingSince = noon.Add(-missing)
		}
		return o
	}
	over := beat("90s", 91*time.Second, 31*time.Second)
	twoPreferences := []Preference{{[]string{"dev"}, 30 * time.Second}, {[]string{"dev"}, 0}}
	for name, tc := range map[string]struct {
		in     Snapshot
		claims string
		want   string // the steps, the condition HeartbeatMissing, and when it looks again
	}{
		"a set without one":                       {Snapshot{}, "0@dev 1@dev", ""},
		"it is on time":                           {Snapshot{Heartbeat: beat("90s", 0, no)}, "+0@dev=b +1@dev=c", "next 1m0s"},
		"it is overdue, which is reported first":  {Snapshot{Heartbeat: beat("90s", time.Hour, no)}, "+0@dev=b +1@dev=c", "True next 30s"},
		"it is over":                              {Snapshot{Heartbeat: over}, "+0@dev=b +1@dev=c", "release ClaimSet True"},
		"a set that waits needs one, too":         {Snapshot{Heartbeat: over}, "0@dev 1@dev", "release ClaimSet True"},
		"a set that ends gets no more claims":     {Snapshot{Heartbeat: over}, "0@dev", "release ClaimSet True"},
		"one whose claims the hub refuses ends":   {Snapshot{Heartbeat: over, Refusal: "quota"}, "", "release ClaimSet True"},
		"its claims are created meanwhile":        {Snapshot{Heartbeat: beat("90s", time.Hour, no)}, "0@dev", "create s-1@dev True next 30s"},
		"a timeout that is none ends no set":      {Snapshot{Heartbeat: beat("soon", time.Hour, time.Hour)}, "+0@dev=b +1@dev=c", "False InvalidHeartbeatTimeout"},
		"a set that is being deleted needs none":  {Snapshot{Heartbeat: over, Deleting: true}, "0@dev=b", "delete s-0"},
		"a set that cannot be read does not end":  {Snapshot{Heartbeat: over, Unreadable: "x"}, "0@dev=b 1@dev=c", ""},
		"the next of both timers makes it wake":   {Snapshot{Heartbeat: beat("90s", 0, no), Preferences: twoPreferences}, "0@dev 1@dev", "next 30s"},
		"it is renewed after it was reported":     {Snapshot{Heartbeat: beat("90s", 0, time.Second)}, "0@dev 1@dev", "False next 1m0s"},
		"a set that has none any more":            {Snapshot{Heartbeat: beat("", time.Hour, time.Hour)}, "0@dev 1@dev", "False"},
		"a pool that does not exist is no excuse": {Snapshot{Heartbeat: over, PoolName: "nope"}, "", "release ClaimSet True"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.in
			s.Now, s.Name, s.Size, s.Created, s.Pools, s.Claims = noon, "s", 2, noon, pools("dev:0"), claims(tc.claims)
			if s.PoolName == "" && s.Preferences == nil {
				s.PoolName = "dev"
			}
			p := Decide(s)
			got := strings.Fields(describe(p) + " " + string(p.HeartbeatMissing.Status) + " " + p.InvalidHeartbeat.Reason)
			if p.Next > 0 {
				got = append(got, "next "+p.Next.String())
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("got  %q\nwant %q", text, tc.want)
			}
		})
	}
}

func TestAHeldSetSaysWhy(t *testing.T) {
	s := Snapshot{Name: "s", Size: 2, PoolName: "dev", Pools: pools("dev:0"), Claims: claims("0@dev 1@dev")}
	for reason, stalled := range map[string]bool{hivev1.ReasonLimitReached: false, hivev1.ReasonLimitTooLow: true, hivev1.ReasonNotPermitted: true} {
		s.Claims[1].Held = condition.False(reason, "why")
		p := Decide(s)
		if p.Pending != condition.True(reason, "why") || p.Stalled != stalled {
			t.Errorf("%s: %+v", reason, p)
		}
	}
}

func TestMembership(t *testing.T) {
	set := &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "s", UID: "u"}, Spec: v1alpha1.ClaimSetSpec{Size: 11}}
	other := &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "s-1", UID: "v"}, Spec: v1alpha1.ClaimSetSpec{Size: 1}}
	sets := ByUID([]v1alpha1.ClaimSet{*set, *other})
	forged := NewOwnerReference(set)
	forged.UID = "guessed"
	foreign := NewOwnerReference(set)
	foreign.APIVersion = "example.com/v1"
	for name, tc := range map[string]struct {
		claim    string
		ref      *metav1.OwnerReference
		want     string
		orphaned bool
	}{
		"its first claim":                {"s-0", new(NewOwnerReference(set)), "s", false},
		"its last claim":                 {"s-10", new(NewOwnerReference(set)), "s", false},
		"one too many":                   {"s-11", new(NewOwnerReference(set)), "", true},
		"a second name of one":           {"s-01", new(NewOwnerReference(set)), "", true},
		"a sign":                         {"s-+1", new(NewOwnerReference(set)), "", true},
		"another name":                   {"x", new(NewOwnerReference(set)), "", true},
		"a set with the name of a claim": {"s-1-0", new(NewOwnerReference(other)), "s-1", false},
		"another set's claim":            {"s-1-0", new(NewOwnerReference(set)), "", true},
		"another UID":                    {"s-0", &forged, "", true},
		"another group":                  {"s-0", &foreign, "", false},
		"no owner":                       {"s-0", nil, "", false},
	} {
		c := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: tc.claim}}
		if tc.ref != nil {
			c.OwnerReferences = []metav1.OwnerReference{*tc.ref}
		}
		found, orphaned := sets.FindSet(c)
		got := ""
		if found != nil {
			got = found.Name
		}
		if got != tc.want || orphaned != tc.orphaned {
			t.Errorf("%s: set %q, orphaned %t", name, got, orphaned)
		}
		if Contains(set, c) != (tc.want == "s") { // a claim of an earlier set of that name is not one of this set
			t.Errorf("%s: Contains is %t", name, Contains(set, c))
		}
	}
}
