package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	poolcli "hotspare.io/hotspare/internal/cli/pool"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

var (
	seed  = flag.Uint64("plan.seed", 0, "seed of the random pools; 0 takes one from the clock")
	pools = flag.Int("plan.pools", 150, "how many random pools are planned")
)

// dice makes random snapshots of which each fact can be read from objects.
type dice struct{ *rand.Rand }

func (d dice) yes() bool { return d.IntN(2) == 0 }

// ago is a time up to two hours before now.
func (d dice) ago() time.Time { return now.Add(-time.Duration(d.IntN(120)) * time.Minute) }

func (d dice) limit() *int {
	if d.yes() {
		return nil
	}
	n := d.IntN(8)
	return &n
}

func (d dice) snapshot() pool.Snapshot {
	s := pool.Snapshot{Now: now, Settings: pool.Settings{
		Size: d.IntN(6), RunningCount: d.IntN(6), MaxSize: d.limit(), MaxConcurrent: d.limit(), Deleting: d.IntN(20) == 0,
	}}
	if d.yes() {
		s.Settings.ResumeTimeout = time.Duration(1+d.IntN(60)) * time.Minute
	}
	for i := range d.IntN(8) {
		s.Members = append(s.Members, d.member(fmt.Sprintf("c%d", i)))
	}
	for i := range d.IntN(5) {
		c := pool.Claim{Name: fmt.Sprintf("x%d", i), Created: d.ago(), Deleting: d.IntN(5) == 0}
		if d.IntN(3) == 0 {
			c.Cluster = fmt.Sprintf("c%d", d.IntN(8))
		}
		s.Claims = append(s.Claims, c)
	}
	for i := range d.IntN(3) {
		s.Pending = append(s.Pending, fmt.Sprintf("new%d", i))
	}
	return s
}

func (d dice) member(name string) pool.Member {
	m := pool.Member{
		Name: name, Created: d.ago(), Version: []string{"", "v0", "v1"}[d.IntN(3)],
		Deleting: d.IntN(8) == 0, Marked: d.IntN(8) == 0, Installed: d.IntN(3) > 0, GaveUp: d.IntN(8) == 0,
		Wanted: []pool.Power{pool.Unset, pool.Running, pool.Hibernating}[d.IntN(3)], PowerFailed: d.IntN(4) == 0,
	}
	if d.IntN(4) == 0 {
		m.Claim = fmt.Sprintf("x%d", d.IntN(6))
	}
	m.Failing = !m.Installed && d.yes()
	m.Running = m.Wanted != pool.Hibernating && d.yes()
	m.PowerTimedOut = m.PowerFailed && d.yes()
	if m.Wanted == pool.Running && m.Installed && !m.Running {
		if d.yes() {
			m.ResumingSince = d.ago()
		}
		if d.yes() {
			if m.UnreachableSince = d.ago(); m.UnreachableSince.Before(m.ResumingSince) {
				m.UnreachableSince = m.ResumingSince // its sleep does not count
			}
		}
	}
	return m
}

// objects are what a hub would hold for that snapshot, in the namespace.
func objects(namespace string, s pool.Snapshot, version string) []client.Object {
	p := &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", CreationTimestamp: metav1.NewTime(now)},
		Spec: hivev1.ClusterPoolSpec{
			Size: int32(s.Settings.Size), RunningCount: int32(s.Settings.RunningCount),
			MaxSize: narrow(s.Settings.MaxSize), MaxConcurrent: narrow(s.Settings.MaxConcurrent),
			Platform: hivev1.Platform{None: &runtime.RawExtension{Raw: []byte("{}")}}, BaseDomain: "example.com",
			ImageSetRef: hivev1.ClusterImageSetReference{Name: "v1"},
		},
	}
	p.Status.Pending = s.Pending
	if s.Settings.ResumeTimeout > 0 {
		p.Spec.PowerstateTransitionToRunningTimeout = base.ToAPIDuration(s.Settings.ResumeTimeout)
	}
	p.DeletionTimestamp = since(s.Settings.Deleting)
	out := []client.Object{p}
	for _, m := range s.Members {
		out = append(out, member(namespace, m, version))
	}
	for _, c := range s.Claims {
		claim := &hivev1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name, CreationTimestamp: metav1.NewTime(c.Created), DeletionTimestamp: since(c.Deleting)},
			Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p", Namespace: c.Cluster},
		}
		out = append(out, claim)
	}
	return out
}

func narrow(n *int) *int32 {
	if n == nil {
		return nil
	}
	i := int32(*n)
	return &i
}

func since(fact bool) *metav1.Time {
	if !fact {
		return nil
	}
	at := metav1.NewTime(now)
	return &at
}

func member(namespace string, m pool.Member, version string) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace + "-" + m.Name, Name: m.Name, CreationTimestamp: metav1.NewTime(m.Created),
			DeletionTimestamp: since(m.Deleting), Annotations: map[string]string{},
		},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: m.Name, BaseDomain: "example.com", Installed: m.Installed, PowerState: hivev1.PowerState(m.Wanted),
			Platform:       hivev1.Platform{None: &runtime.RawExtension{Raw: []byte("{}")}},
			Provisioning:   &hivev1.Provisioning{},
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: namespace, PoolName: "p", ClaimName: m.Claim},
		},
	}
	if m.Installed {
		cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{ClusterID: "x", InfraID: "x"}
	}
	if m.Version != "" {
		cd.Annotations[hivev1.AnnotationPoolVersion] = strings.ReplaceAll(m.Version, "v1", version)
	}
	if m.Marked {
		cd.Annotations[hivev1.AnnotationRemove] = "true"
	}
	if m.Running {
		cd.Status.PowerState = hivev1.StatusRunning
	}
	tell := func(typ string, fact bool, reason string, at time.Time) {
		condition.Set(&cd.Status.Conditions, typ, condition.StatusOf(fact), reason, "", at)
	}
	tell(hivev1.ClusterProvisionStopped, m.GaveUp, "X", now)
	tell(hivev1.ClusterProvisionFailed, m.Failing, "X", now)
	if m.PowerFailed {
		tell(hivev1.ClusterHibernating, false, hivev1.ReasonFailedToStart, now)
	}
	if !m.UnreachableSince.IsZero() {
		tell(hivev1.ClusterUnreachable, true, hivev1.ReasonErrorConnecting, m.UnreachableSince)
	}
	cd.Status.PowerTransition = transition(m)
	return cd
}

func transition(m pool.Member) *hivev1.PowerTransition {
	t := &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: metav1.NewTime(m.ResumingSince)}
	if m.PowerTimedOut {
		t.Deadline = since(true)
	}
	switch {
	case !m.ResumingSince.IsZero():
		return t
	case m.PowerTimedOut:
		t.Target, t.StartedAt = hivev1.PowerHibernating, metav1.NewTime(now)
		return t
	}
	return nil
}

// manifests are the objects as documents, in any order.
func manifests(t *testing.T, d dice, objects []client.Object) string {
	t.Helper()
	d.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	var b strings.Builder
	for _, o := range objects {
		if err := base.SetObjectTypeMeta(o); err != nil {
			t.Fatal(err)
		}
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", raw)
	}
	return b.String()
}

// TestOfflineAndControllerDecideAlike plans random pools from manifests, and
// compares with the decider's plan for the facts that the manifests were made from.
func TestOfflineAndControllerDecideAlike(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-plan.seed=%d", s)
	d := dice{rand.New(rand.NewPCG(s, 1))}
	version, err := pool.Version(objects("n", pool.Snapshot{}, "")[0].(*hivev1.ClusterPool).Spec)
	if err != nil {
		t.Fatal(err)
	}
	var all []client.Object
	snapshots := map[string]pool.Snapshot{}
	for i := range *pools {
		namespace := fmt.Sprintf("n%d", i)
		snap := d.snapshot()
		all = append(all, objects(namespace, snap, version)...)
		snap.Settings.Version = version
		for j, m := range snap.Members {
			snap.Members[j].Version = strings.ReplaceAll(m.Version, "v1", version)
		}
		snapshots[namespace] = snap
	}
	r := newRig(t, interceptor.Funcs{})
	r.stdin = strings.NewReader(manifests(t, d, all))
	if code := r.run("pool", "plan", "-f", "-", "-o", "json", "--now", now.Format(time.RFC3339)); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	var got poolcli.PlanReport
	dec := json.NewDecoder(bytes.NewReader([]byte(r.stdout.String())))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pools) != *pools {
		t.Fatalf("%d pools were planned, want %d", len(got.Pools), *pools)
	}
	if len(got.Warnings) > 0 {
		t.Errorf("objects as a hub has them are warned of: %v", got.Warnings[0])
	}
	for _, p := range got.Pools {
		checkPlan(t, snapshots[p.Namespace], p)
	}
}

func checkPlan(t *testing.T, s pool.Snapshot, got poolcli.PlannedPool) {
	t.Helper()
	want := pool.Decide(s)
	if diff := gocmp.Diff(base.EmptyIfNil(want.Steps), got.Steps); diff != "" {
		t.Errorf("%s: %+v\n%s", got.Namespace, s, diff)
	}
	sum := fmt.Sprint(want.Report.UnclaimedCount(), want.Report.Count[pool.Standby], want.Report.Count[pool.Assignable], want.Report.Words, want.Next)
	next := cmp.Or(got.Next, "0s")
	if is := fmt.Sprint(got.Status.Size, got.Status.Standby, got.Status.Ready, got.Status.Plan, next); is != sum {
		t.Errorf("%s: status %s, want %s", got.Namespace, is, sum)
	}
	n := 0
	for what, many := range got.Counts {
		if what != "pending" && what != "waiting" {
			n += many
		}
	}
	if n != len(s.Members) || len(got.Clusters) != len(s.Members) || got.Counts["pending"] != len(s.Pending) {
		t.Errorf("%s: counts %v of %d clusters", got.Namespace, got.Counts, len(s.Members))
	}
	checkPower(t, s, want, got)
}

// checkPower: whom no step tells anything keeps its power.
func checkPower(t *testing.T, s pool.Snapshot, want pool.Plan, got poolcli.PlannedPool) {
	t.Helper()
	phases := s.MemberPhases()
	for _, c := range got.Clusters {
		i := slices.IndexFunc(s.Members, func(m pool.Member) bool { return m.Name == c.Name })
		target := s.Members[i].Wanted
		for _, st := range want.Steps {
			switch {
			case st.Cluster != c.Name:
			case st.Verb == pool.Hibernate:
				target = pool.Hibernating
			case st.Verb == pool.Start || st.Verb == pool.Bind:
				target = pool.Running
			}
		}
		if c.Power != s.Members[i].Wanted || c.TargetPower != target || c.Phase != phases[c.Name] {
			t.Errorf("%s: %+v, want target %s of %+v", got.Namespace, c, target, s.Members[i])
		}
	}
}

func TestThePlanDoesNotDependOnTheOrderOfTheDocuments(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(1, 1))}
	all := objects("n", d.snapshot(), "v1")
	all = append(all, objects("m", d.snapshot(), "v1")...)
	r := newRig(t, interceptor.Funcs{})
	var first string
	for range 5 {
		r.stdin = strings.NewReader(manifests(t, d, all))
		if code := r.run("pool", "plan", "-f", "-", "-o", "json", "--now", now.Format(time.RFC3339)); code != 0 {
			t.Fatalf("exit code %d: %s", code, r.stderr.String())
		}
		first = cmp.Or(first, r.stdout.String())
		if diff := gocmp.Diff(first, r.stdout.String()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// One document that cannot be read must not hide the plans of all others.
func TestOtherPoolsArePlannedBesideABadDocument(t *testing.T) {
	const good = `
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: good, namespace: ci}
spec: {size: 2, baseDomain: example.com, imageSetRef: {name: v1}, platform: {local: {}}}
`
	for name, c := range map[string]struct{ bad, says string }{
		"no YAML":           {"a: [", "document 2"},
		"no kind":           {"metadata: {name: x}", "document 2: it has no apiVersion and no kind"},
		"a field of a type": {"{apiVersion: hive.openshift.io/v1, kind: ClusterPool, metadata: {name: bad}, spec: {size: many}}", "spec.size"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, interceptor.Funcs{})
			r.stdin = strings.NewReader(good + "---\n" + c.bad + "\n")
			code := r.run("pool", "plan", "-f", "-")
			if code == 0 || !strings.Contains(r.stdout.String(), "create 2 clusters") {
				t.Errorf("exit %d, printed:\n%s", code, r.stdout.String())
			}
			if said := r.stderr.String(); !strings.Contains(said, c.says) || !strings.Contains(said, "the plans above ignore them") {
				t.Errorf("said:\n%s", said)
			}
		})
	}
}
