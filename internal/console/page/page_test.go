package page_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/page"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func pool(name string, size, running int32, conditions ...hivev1.Condition) hivev1.ClusterPool {
	return hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: ago(time.Hour)},
		Spec:       hivev1.ClusterPoolSpec{Size: size, RunningCount: running},
		Status:     hivev1.ClusterPoolStatus{Plan: "settled", Conditions: conditions},
	}
}

// cluster returns a cluster of pool dev in a state, such as "installing", "running", "asleep",
// "stopped" (its installation) or "going". A claim may follow after a colon.
func cluster(name, what string, age time.Duration) hivev1.ClusterDeployment {
	what, claim, _ := strings.Cut(what, ":")
	cd := hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: ago(age)},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true, PowerState: hivev1.PowerRunning,
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "ns", PoolName: "dev", ClaimName: claim},
		},
		Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning},
	}
	switch what {
	case "installing":
		cd.Spec.Installed = false
	case "asleep":
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerHibernating, hivev1.StatusHibernating
	case "stopped":
		cd.Spec.Installed = false
		cd.Status.Conditions = []hivev1.Condition{is(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "X", "All attempts failed: no quota.")}
	case "away":
		cd.Status.Conditions = []hivev1.Condition{is(hivev1.ClusterUnreachable, corev1.ConditionTrue, "X", "No answer.")}
	case "going":
		at := ago(0)
		cd.DeletionTimestamp = &at
	}
	return cd
}

func is(typ string, status corev1.ConditionStatus, reason, message string) hivev1.Condition {
	return hivev1.Condition{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(5 * time.Minute)}
}

func claim(name, pool string, age time.Duration, change ...func(*hivev1.ClusterClaim)) hivev1.ClusterClaim {
	c := hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: ago(age)},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: pool},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func served(reason string) func(*hivev1.ClusterClaim) {
	return func(c *hivev1.ClusterClaim) {
		c.Spec.Namespace = "cluster-of-" + c.Name
		c.Status.Conditions = []hivev1.Condition{
			is(hivev1.ClaimPending, corev1.ConditionFalse, hivev1.ReasonClusterClaimed, "Claimed."),
			is(hivev1.ClaimClusterRunning, corev1.ConditionTrue, reason, "It is "+reason+"."),
		}
	}
}

func TestEveryClusterIsATile(t *testing.T) {
	s := page.Snapshot{
		Pools: []hivev1.ClusterPool{pool("dev", 3, 1), pool("other", 1, 1)},
		Clusters: []hivev1.ClusterDeployment{
			cluster("g", "going", time.Minute), cluster("s", "stopped", 20*time.Minute), cluster("c", "running:mine", time.Hour),
			cluster("i", "installing", 10*time.Second), cluster("a2", "asleep", 2*time.Minute), cluster("a1", "asleep", 3*time.Minute), cluster("r", "running", time.Hour),
		},
	}
	p := page.NewSinglePool(&s.Pools[0], s, now)
	var got []string
	for _, tile := range p.Tiles {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s", tile.Name, tile.Phase, tile.State, tile.Age.Text, tile.Claim, tile.Problem)))
	}
	want := []string{
		"r Assignable Running 60m",
		"a1 Standby Hibernating 3m",
		"a2 Standby Hibernating 2m",
		"i Installing Installing 10s",
		"c Claimed Running 60m mine",
		"s Broken Failed 20m  All attempts failed: no quota.",
		"g Deleting Deleting 60s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tiles (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff([]page.Count{{"Assignable", 1}, {"Standby", 2}, {"Installing", 1}, {"Claimed", 1}, {"Broken", 1}, {"Deleting", 1}}, p.Counts); diff != "" {
		t.Errorf("counts (-want, +got):\n%s", diff)
	}
	end := p.Bar[len(p.Bar)-1]
	if sum := end.From + end.Width; sum < 99.9 || sum > 100.1 {
		t.Errorf("the bar ends at %f", sum)
	}
	if other := page.NewSinglePool(&s.Pools[1], s, now); len(other.Tiles) != 0 || other.Bar != nil {
		t.Errorf("pool other has %v", other.Tiles)
	}
}

// bootstrapping makes a cluster one that has begun the steps of a bootstrap, one of which has this condition. The step began
// five minutes ago, and may take a minute longer than that.
func bootstrapping(cd hivev1.ClusterDeployment, reason, message string) hivev1.ClusterDeployment {
	began, deadline := ago(5*time.Minute), ago(-time.Minute)
	cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "v1", Step: "base", StepStartedAt: &began, Deadline: &deadline}
	cd.Status.Conditions = []hivev1.Condition{is(hivev1.ClusterBootstrapped, corev1.ConditionFalse, reason, message)}
	return cd
}

// gated makes a cluster one whose gates have failed for a time; they may fail for ten minutes.
func gated(cd hivev1.ClusterDeployment, failing time.Duration) hivev1.ClusterDeployment {
	since, deadline := ago(failing), ago(failing-10*time.Minute)
	cd.Status.Gates = &hivev1.GateRecord{Version: "g1", FailedSince: &since, Deadline: &deadline}
	cd.Status.Conditions = []hivev1.Condition{is(hivev1.ClusterGatesPassed, corev1.ConditionFalse, hivev1.ReasonGateFailed, "A gate fails: web: no <b>answer</b>.")}
	return cd
}

// bootstrapSnapshot is a pool with steps and gates, and a cluster in each state of them.
func bootstrapSnapshot() page.Snapshot {
	p := pool("dev", 6, 6)
	p.Status.StepsVersion, p.Status.GatesVersion = "v1", "g1"
	done := ago(time.Hour)
	stepsDone := func(name string) hivev1.ClusterDeployment {
		cd := cluster(name, "running", time.Hour)
		cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "v1", FinishedAt: &done}
		return cd
	}
	late := bootstrapping(cluster("late", "running", time.Hour), hivev1.ReasonStepFailed, "Step 1 of 2, base: x is refused.")
	over := ago(time.Second)
	late.Status.Bootstrap.Deadline = &over
	return page.Snapshot{Pools: []hivev1.ClusterPool{p}, Clusters: []hivev1.ClusterDeployment{
		bootstrapping(cluster("step", "running", time.Hour), hivev1.ReasonStepInProgress, "Step 1 of 2, base: waiting for Pod a."),
		bootstrapping(cluster("fails", "running", time.Hour), hivev1.ReasonStepFailed, "Step 1 of 2, base: x is refused."),
		late, gated(stepsDone("red"), 2*time.Minute), gated(stepsDone("gone"), 20*time.Minute), stepsDone("unchecked"),
	}}
}

// A spare in the steps and gates of its pool shows which one it waits for, with the words of hotspare explain.
func TestATileSaysWhichStepOrGateItWaitsFor(t *testing.T) {
	s := bootstrapSnapshot()
	var got []string
	for _, tile := range page.NewSinglePool(&s.Pools[0], s, now).Tiles {
		got = append(got, fmt.Sprintf("%s %s %s | %s | %s", tile.Name, tile.Phase, tile.State, tile.Progress, tile.Problem))
	}
	want := []string{
		"fails Standby Running |  | It runs, and takes the steps of the bootstrap: Step 1 of 2, base: x is refused.",
		"red Standby Running |  | It runs, and no claim gets it: A gate fails: web: no <b>answer</b>.",
		"step Standby Running | It runs, and takes the steps of the bootstrap: Step 1 of 2, base: waiting for Pod a. | ",
		"unchecked Standby Running | It runs, and its gates are being checked. | ",
		"gone Broken Running |  | It did not pass the gates of the pool in time: A gate fails: web: no <b>answer</b>.",
		"late Broken Running |  | A step of the bootstrap was not done: Step 1 of 2, base: x is refused.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tiles (-want, +got):\n%s", diff)
	}
}

func TestFailingStepsAndGatesAreProblems(t *testing.T) {
	s := bootstrapSnapshot()
	problems := func(names ...string) []string {
		part := page.Snapshot{Pools: s.Pools}
		for _, cd := range s.Clusters {
			if slices.Contains(names, cd.Name) {
				part.Clusters = append(part.Clusters, cd)
			}
		}
		var out []string
		for _, x := range page.NewOverview(part, nil, nil, now).Problems {
			out = append(out, fmt.Sprintf("%t %s: %s: %s %s %s", x.NeedsAction, x.Object, x.Title, x.Message, x.Since.Text, x.Link))
		}
		return out
	}
	for name, tc := range map[string]struct{ clusters, want []string }{
		"in progress": {[]string{"step", "unchecked"}, nil},
		"a gate":      {[]string{"red"}, []string{"false cluster red: Bootstrap fails: It runs, and no claim gets it: A gate fails: web: no <b>answer</b>. 2m /pools/ns/dev"}},
		"one for too long": {
			[]string{"gone"}, []string{"false cluster gone: Broken: It did not pass the gates of the pool in time: A gate fails: web: no <b>answer</b>. 20m /pools/ns/dev"},
		},
		"all": {[]string{"step", "fails", "late", "red", "gone", "unchecked"}, []string{
			"false pool ns/dev: 2 spare clusters whose bootstrap fails: It runs, and takes the steps of the bootstrap: Step 1 of 2, base: x is refused. 5m /pools/ns/dev",
			"false pool ns/dev: 2 broken spare clusters: A step of the bootstrap was not done: Step 1 of 2, base: x is refused. 20m /pools/ns/dev",
		}},
	} {
		if diff := cmp.Diff(tc.want, problems(tc.clusters...)); diff != "" {
			t.Errorf("%s: problems (-want, +got):\n%s", name, diff)
		}
	}
}

func TestWhereClustersAreNotSeenTheirPoolTells(t *testing.T) {
	p := pool("dev", 5, 2)
	p.Status.Ready, p.Status.Standby = 2, 3
	s := page.Snapshot{
		Pools: []hivev1.ClusterPool{p}, ClustersHidden: true,
		Claims: []hivev1.ClusterClaim{claim("mine", "dev", time.Hour, served(hivev1.ReasonRunning)), claim("waits", "dev", time.Minute)},
	}
	got := page.NewSinglePool(&p, s, now)
	if diff := cmp.Diff([]page.Count{{"Assignable", 2}, {"Standby", 3}, {"Claimed", 1}}, got.Counts); diff != "" || got.Ready != 2 || !got.ClustersHidden {
		t.Errorf("ready %d, counts (-want, +got):\n%s", got.Ready, diff)
	}
	if o := page.NewOverview(s, nil, nil, now); !o.ClustersHidden || o.Ready != 2 {
		t.Errorf("the overview has %d ready", o.Ready)
	}
}

func TestOfManyTilesTheBrokenOnesAreShown(t *testing.T) {
	s := page.Snapshot{Pools: []hivev1.ClusterPool{pool("dev", 3, 1)}}
	for i := range 30 {
		s.Clusters = append(s.Clusters, cluster(fmt.Sprintf("r%02d", i), "running", time.Hour))
	}
	s.Clusters = append(s.Clusters, cluster("s", "stopped", time.Hour))
	for name, c := range map[string]struct {
		part        string
		most        int
		tiles, more int
		last        string
	}{
		"a few":                         {"", 10, 10, 21, "s"},
		"all":                           {"", 31, 31, 0, "s"},
		"those of a part":               {"assignable", 10, 10, 20, "r09"},
		"those of a part that is empty": {"standby", 10, 0, 0, ""},
		"none but the broken":           {"", 0, 1, 30, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			p := page.NewSinglePool(&s.Pools[0], s, now)
			p.TrimTiles(c.part, c.most)
			last := ""
			if n := len(p.Tiles); n > 0 {
				last = p.Tiles[n-1].Name
			}
			if len(p.Tiles) != c.tiles || p.HiddenTiles != c.more || last != c.last {
				t.Errorf("%d tiles up to %q, %d more", len(p.Tiles), last, p.HiddenTiles)
			}
		})
	}
	if !page.IsPhaseSlug("broken") || page.IsPhaseSlug("Broken") || page.IsPhaseSlug("") {
		t.Error("parts in addresses")
	}
}

func TestClaimsSayWhenTheyAreServedAndEnd(t *testing.T) {
	second := int32(2)
	life := hivev1.Duration("8h")
	ready := metav1.NewTime(now.Add(90 * time.Second))
	for name, c := range map[string]struct {
		claim hivev1.ClusterClaim
		want  string
	}{
		"one that waits": {
			claim("x", "dev", time.Minute, func(c *hivev1.ClusterClaim) {
				c.Status.Position, c.Status.EstimatedReadyTime = &second, &ready
				c.Status.Conditions = []hivev1.Condition{is(hivev1.ClaimPending, corev1.ConditionTrue, hivev1.ReasonNoClusters, "No cluster is ready.")}
			}),
			"Waiting 2nd expected in 90s: No cluster is ready.",
		},
		"one that is served": {claim("x", "dev", time.Minute, served(hivev1.ReasonRunning)), "Running on cluster-of-x awake"},
		"one with a lifetime": {
			claim("x", "dev", time.Minute, served(hivev1.ReasonRunning), func(c *hivev1.ClusterClaim) { c.Status.Lifetime = &life }),
			"Running on cluster-of-x ends in 7h55m awake",
		},
		"one that sleeps": {claim("x", "dev", time.Minute, served(hivev1.ReasonHibernating)), "Hibernating on cluster-of-x asleep: It is Hibernating."},
		"one whose cluster is gone": {
			claim("x", "dev", time.Minute, served(hivev1.ReasonClusterDeleted)), "Lost on cluster-of-x: It is ClusterDeleted.",
		},
		"one with a priority, of a set": {
			claim("x", "dev", time.Minute, func(c *hivev1.ClusterClaim) {
				priority, position := int32(10), int32(2)
				c.Annotations = map[string]string{hivev1.AnnotationPriority: "30"}
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "hotspare.io/v1alpha1", Kind: "ClaimSet", Name: "four"}}
				c.Status.Priority, c.Status.Position = &priority, &position
			}),
			"Waiting 2nd priority 10 of four",
		},
		"one with a priority that it no longer needs": {
			claim("x", "dev", time.Minute, served(hivev1.ReasonRunning), func(c *hivev1.ClusterClaim) {
				c.Annotations = map[string]string{hivev1.AnnotationPriority: "30"}
			}),
			"Running on cluster-of-x awake",
		},
		"one that is released": {
			claim("x", "dev", time.Minute, served(hivev1.ReasonRunning), func(c *hivev1.ClusterClaim) {
				at := ago(0)
				c.DeletionTimestamp, c.Status.Lifetime = &at, &life
			}),
			"Releasing on cluster-of-x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool("dev", 1, 1)
			s := page.Snapshot{Pools: []hivev1.ClusterPool{p}, Claims: []hivev1.ClusterClaim{c.claim}}
			if diff := cmp.Diff(c.want, viewRegions(page.NewSinglePool(&p, s, now).Claims[0])); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

// viewRegions describes a claim in a line.
func viewRegions(c page.Claim) string {
	var b strings.Builder
	b.WriteString(c.State)
	for _, w := range []struct{ before, word string }{
		{"", c.Position}, {"expected ", c.Expected.Text}, {"on ", c.Cluster}, {"ends ", c.Ends.Text},
	} {
		if w.word != "" {
			b.WriteString(" " + w.before + w.word)
		}
	}
	if c.Priority != 0 {
		fmt.Fprintf(&b, " priority %d", c.Priority)
	}
	if c.Set != "" {
		b.WriteString(" of " + c.Set)
	}
	if c.CanHibernate {
		b.WriteString(" awake")
	}
	if c.CanResume {
		b.WriteString(" asleep")
	}
	if c.Problem != "" {
		b.WriteString(": " + c.Problem)
	}
	return b.String()
}

func TestClaimsThatWaitStandFirst(t *testing.T) {
	p := pool("dev", 1, 1)
	s := page.Snapshot{Claims: []hivev1.ClusterClaim{
		claim("old", "dev", time.Hour, served(hivev1.ReasonRunning)), claim("late", "dev", time.Minute), claim("early", "dev", 10*time.Minute), claim("theirs", "other", time.Hour),
	}}
	got := page.NewSinglePool(&p, s, now)
	var names []string
	for _, c := range got.Claims {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"early", "late", "old"}, names); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if got.Waiting != 2 || got.LongestWait.Text != "10m" {
		t.Errorf("%d wait, the longest for %s", got.Waiting, got.LongestWait.Text)
	}
}

func TestTheOverviewTellsWhatWantsAPerson(t *testing.T) {
	bad := pool("dev", 3, 1,
		is(hivev1.PoolMissingDependencies, corev1.ConditionTrue, hivev1.ReasonMissing, "ClusterImageSet x does not exist: create it."),
		is(hivev1.PoolCapacityAvailable, corev1.ConditionFalse, hivev1.ReasonMaxCapacity, "maxSize is reached."),
		is(hivev1.PoolInventoryValid, corev1.ConditionUnknown, hivev1.ReasonInitialized, "nothing yet"))
	unread := pool("odd", 0, 0)
	unread.Unreadable = "spec.size is a text"
	region := v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "us-east-1"}}
	region.Status.Conditions = []metav1.Condition{{Type: v1alpha1.RegionCapacityAvailable, Status: metav1.ConditionFalse, Message: "No room for x2."}}
	region.Status.InstanceTypes = []v1alpha1.RegionTypeStatus{{Name: "standard", Decision: &v1alpha1.ScalingDecision{Action: "Create"}}}
	s := page.Snapshot{
		Pools: []hivev1.ClusterPool{bad, unread},
		Clusters: []hivev1.ClusterDeployment{
			cluster("s1", "stopped", time.Hour), cluster("s2", "stopped", time.Hour), cluster("m", "stopped:mine", time.Hour),
			cluster("w", "away:theirs", time.Hour), cluster("v", "away", time.Hour), cluster("r", "running", time.Hour), cluster("a", "asleep", time.Hour),
		},
		Claims: []hivev1.ClusterClaim{
			claim("mine", "dev", time.Hour, served(hivev1.ReasonRunning)), claim("waits", "dev", 3*time.Minute),
			claim("lost", "dev", time.Hour, served(hivev1.ReasonClusterDeleted)),
			claim("nowhere", "gone", time.Hour, func(c *hivev1.ClusterClaim) {
				c.Status.Conditions = []hivev1.Condition{is(hivev1.ClaimPending, corev1.ConditionTrue, hivev1.ReasonPoolNotFound, "There is no pool gone.")}
			}),
		},
	}
	o := page.NewOverview(s, []v1alpha1.FleetRegion{region}, nil, now)
	var got []string
	for _, x := range o.Problems {
		got = append(got, fmt.Sprintf("%t %s: %s: %s %s", x.NeedsAction, x.Object, x.Title, x.Message, x.Link))
	}
	want := []string{
		"true pool ns/dev: Missing dependencies: ClusterImageSet x does not exist: create it. /pools/ns/dev",
		"true pool ns/odd: Cannot be decoded: spec.size is a text /pools/ns/odd",
		"true cluster m: Broken: All attempts failed: no quota. /pools/ns/dev",
		"true cluster w: Unreachable: No answer. /pools/ns/dev",
		"true claim ns/lost: Cluster deleted: It is ClusterDeleted. /pools/ns/dev",
		"true claim ns/nowhere: Cannot be served: There is no pool gone. /pools/ns/gone",
		"false pool ns/dev: At capacity: maxSize is reached. /pools/ns/dev",
		"false pool ns/dev: 2 broken spare clusters: All attempts failed: no quota. /pools/ns/dev",
		"false region ns/us-east-1: No capacity for some sizes: No room for x2. /fleet/ns/us-east-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("troubles (-want, +got):\n%s", diff)
	}
	figures := fmt.Sprintf("ready %d of %d, waiting %d for %s, served %d, asleep %d, broken %d, regions %d, %d about to grow",
		o.Ready, o.Desired, o.Waiting, o.LongestWait.Text, o.Served, o.Hibernating, o.Broken, o.Regions, o.Growing)
	if want := "ready 2 of 3, waiting 2 for 60m, served 2, asleep 1, broken 3, regions 1, 1 about to grow"; figures != want {
		t.Errorf("got  %s\nwant %s", figures, want)
	}
	if o.Empty || !page.NewOverview(page.Snapshot{}, nil, nil, now).Empty {
		t.Error("what is empty")
	}
}

func TestEventsAreNewestFirstAndOfHotspareOnly(t *testing.T) {
	event := func(kind, namespace, name, reason string, at time.Duration) corev1.Event {
		return corev1.Event{
			Reason: reason, Message: reason + " it is.", EventTime: metav1.NewMicroTime(now.Add(-at)),
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name},
		}
	}
	often := event("ClusterClaim", "ns", "mine", "Conflict", time.Hour)
	often.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(now.Add(-time.Second))}
	often.Type = corev1.EventTypeWarning
	old := event("ClusterPool", "ns", "dev", "Old", 0)
	old.EventTime, old.LastTimestamp, old.Count = metav1.MicroTime{}, ago(2*time.Hour), 3
	got := page.NewEvents([]corev1.Event{
		{ObjectMeta: metav1.ObjectMeta{Name: "of another kind, of which the name is left"}},
		old, event("ClusterDeployment", "dev-1", "dev-1", "Installed", time.Minute), often,
	}, now)
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprintf("%s %s %s %s ×%d %t %s", e.At.Text, e.KindLabel, e.ObjectLabel, e.Reason, e.Count, e.Warning, e.Link))
	}
	want := []string{
		"1s claim ns/mine Conflict ×7 true ",
		"60s cluster dev-1 Installed ×1 false ",
		"120m pool ns/dev Old ×3 false /pools/ns/dev",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if n := len(page.FirstEvents(got, 2)); n != 2 {
		t.Errorf("the latest 2 are %d", n)
	}
	if n := len(page.FirstEvents(got, 9)); n != 3 {
		t.Errorf("the latest 9 of 3 are %d", n)
	}
}

func TestMomentsSayHowFarAwayTheyAre(t *testing.T) {
	for want, m := range map[string]page.Moment{
		"5m":      page.PastMoment(now.Add(-5*time.Minute), now),
		"0s":      page.PastMoment(now.Add(time.Second), now), // the hub's clock is ahead
		"in 5m":   page.FutureMoment(now.Add(5*time.Minute), now),
		"10s ago": page.FutureMoment(now.Add(-10*time.Second), now),
	} {
		if m.Text != want || m.Stamp() == "" || m.Zero() {
			t.Errorf("got %q, want %q", m.Text, want)
		}
	}
}

// If there are many pools, the overview shows those that need attention first, then the others in
// order.
func TestAnOverviewOfManyPools(t *testing.T) {
	var s page.Snapshot
	for i := range 12 {
		s.Pools = append(s.Pools, pool(fmt.Sprintf("p%02d", i), 1, 1))
	}
	if o := page.NewOverview(s, nil, nil, now); len(o.Cards) != 12 || o.HiddenPools != 0 {
		t.Errorf("of 12 pools %d are shown, and %d more", len(o.Cards), o.HiddenPools)
	}
	s.Pools = append(s.Pools,
		pool("x-missing", 1, 1, is(hivev1.PoolMissingDependencies, corev1.ConditionTrue, "X", "No image set.")),
		pool("y-waits", 1, 1), pool("z", 1, 1), pool("z-broken", 1, 1))
	s.Claims = []hivev1.ClusterClaim{claim("c", "y-waits", time.Minute)}
	broken := cluster("b", "stopped", time.Hour)
	broken.Spec.ClusterPoolRef.PoolName = "z-broken"
	s.Clusters = []hivev1.ClusterDeployment{broken}
	o := page.NewOverview(s, nil, nil, now)
	var got []string
	for _, p := range o.Cards {
		got = append(got, p.Name)
	}
	want := "y-waits x-missing z-broken p00 p01 p02 p03 p04 p05 p06 p07 p08"
	if strings.Join(got, " ") != want || o.HiddenPools != 4 || len(o.Pools) != 16 {
		t.Errorf("got %v and %d more\nwant %s and 4", got, o.HiddenPools, want)
	}
}
