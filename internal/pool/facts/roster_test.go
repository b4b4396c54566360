package facts

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

var (
	rosterSeed  = flag.Uint64("roster.seed", 0, "seed of the histories of a Roster; 0 takes one from the clock")
	rosterSteps = flag.Int("roster.steps", 8000, "how many snapshots the histories have in all")
)

// A rosterWorld is a pool and its clusters, which change at random.
type rosterWorld struct {
	*rand.Rand
	now     time.Time
	o       Objects
	plan    inventory.Plan
	changed int
}

func newRosterWorld(r *rand.Rand) *rosterWorld {
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Finalizers: []string{hivev1.FinalizerPool}}}
	p.Spec.Size, p.Spec.RunningCount = int32(r.IntN(20)), int32(r.IntN(8))
	return &rosterWorld{
		Rand: r, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		o: Objects{Pool: p, Gates: &gate.Requirement{}, Clusters: map[string]*hivev1.ClusterDeployment{}, Claims: map[string]*hivev1.ClusterClaim{}},
	}
}

// happen is one event: mostly one of a cluster.
func (w *rosterWorld) happen() {
	w.now = w.now.Add(time.Duration(w.IntN(90)) * time.Second / 10)
	name := fmt.Sprintf("c%d", w.IntN(24))
	switch w.IntN(14) {
	case 0:
		delete(w.o.Clusters, name)
	case 1, 2, 3:
		w.changeSettings()
	case 4:
		w.plan.Outdated, w.plan.Withdrawn, w.plan.Displaced = w.reasons(), w.reasons(), w.reasons()
	case 5: // nothing
	case 6:
		claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("x%d", w.IntN(4))}}
		claim.Spec.Namespace = []string{"", name}[w.IntN(2)]
		w.o.Claims[claim.Name] = claim
	default:
		w.o.Clusters[name] = w.newVersion(name, w.o.Clusters[name])
		w.changed++
	}
}

// reasons are those of no cluster, mostly.
func (w *rosterWorld) reasons() map[string]string {
	if w.IntN(3) > 0 {
		return nil
	}
	return map[string]string{fmt.Sprintf("c%d", w.IntN(24)): fmt.Sprint("reason ", w.IntN(2))}
}

func (w *rosterWorld) changeSettings() {
	version := []string{"", "v1", "v2"}[w.IntN(3)]
	switch p := w.o.Pool.DeepCopy(); w.IntN(7) {
	case 0:
		w.o.Gates = []*gate.Requirement{nil, {}, {}, {Version: "v1"}, {Version: "v2"}}[w.IntN(5)]
	case 1:
		w.o.Steps = bootstrap.Requirement{Version: cmp.Or(version, "v1")}
	case 2:
		w.o.Steps.Problem = []string{"", "unknown"}[w.IntN(2)]
	case 3:
		w.o.Recipe = version
	case 4:
		w.o.WatchedSince = w.now.Add(-time.Duration(w.IntN(300)) * time.Second)
	case 5:
		p.Spec.BaseDomain = version // another version of the pool
		w.o.Pool = p
	default:
		since := metav1.NewTime(w.now.Add(time.Duration(w.IntN(600)) * time.Second))
		p.Status.StepsSince = &since
		w.o.Pool = p
	}
}

// newVersion returns another version of a cluster, or a new one if before is nil. Several are created in the same second.
func (w *rosterWorld) newVersion(name string, before *hivev1.ClusterDeployment) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(w.now.Truncate(10 * time.Second)), Annotations: map[string]string{}}}
	if before != nil {
		cd.CreationTimestamp = before.CreationTimestamp
	}
	for key, values := range map[string][]string{
		hivev1.AnnotationPoolVersion:   {"", "v1", mustVersion(w.o.Pool.Spec), mustVersion(w.o.Pool.Spec), mustVersion(w.o.Pool.Spec)},
		hivev1.AnnotationRecipeVersion: {"", "v1", "v2"},
		hivev1.AnnotationSourceVersion: {"", "s"},
	} {
		if value := values[w.IntN(len(values))]; value != "" {
			cd.Annotations[key] = value
		}
	}
	cd.Spec.Installed = w.IntN(5) > 0
	cd.Spec.PowerState = []hivev1.PowerState{"", hivev1.PowerRunning, hivev1.PowerRunning, hivev1.PowerHibernating}[w.IntN(4)]
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p", ClaimName: []string{"", "", "", "x1"}[w.IntN(4)]}
	cd.Status.PowerState = []string{hivev1.StatusRunning, hivev1.StatusRunning, hivev1.StatusHibernating}[w.IntN(3)]
	at := func() *metav1.Time {
		return &metav1.Time{Time: w.now.Add(time.Duration(w.IntN(600)-300) * time.Second).Truncate(time.Second)}
	}
	if cd.Spec.Installed {
		cd.Status.InstalledTimestamp = at()
	}
	if w.IntN(3) == 0 {
		condition.Set(&cd.Status.Conditions, hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart, "", w.now)
	}
	if w.IntN(2) == 0 {
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: *at(), Deadline: []*metav1.Time{nil, at()}[w.IntN(2)]}
		if w.IntN(2) == 0 {
			cd.Status.PowerTransition.FinishedAt = at()
		}
	}
	run := gate.RunStart(cd)
	if w.IntN(2) == 0 {
		cd.Status.Gates = &hivev1.GateRecord{Version: []string{"v1", "v2"}[w.IntN(2)], RunStartedAt: &metav1.Time{Time: run}, Passed: w.IntN(2) == 0, FailedSince: at(), Deadline: at()}
	}
	if w.IntN(4) == 0 {
		cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: []string{"v1", "v2"}[w.IntN(2)], Step: "s", RunStartedAt: &metav1.Time{Time: run}, StepStartedAt: at(), Deadline: at()}
		if w.IntN(2) == 0 {
			cd.Status.Bootstrap.FinishedAt = at()
		}
	}
	return cd
}

// diffMembers compares lists of members. Only for different ones, it takes the time to describe the difference.
func diffMembers(want, got []*pool.Member) string {
	if slices.EqualFunc(want, got, func(a, b *pool.Member) bool { return *a == *b }) {
		return ""
	}
	return gocmp.Diff(want, got, cmpopts.EquateEmpty())
}

func mustVersion(spec hivev1.ClusterPoolSpec) string {
	version, err := pool.Version(spec)
	if err != nil {
		panic(err)
	}
	return version
}

// TestARosterHasTheMembersOfAWholeSnapshot compares, after each event of random histories, the snapshot and the plan of a Roster
// with those that are made from nothing.
func TestARosterHasTheMembersOfAWholeSnapshot(t *testing.T) {
	seed := *rosterSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-roster.seed=%d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	members, kept, plans, turns := 0, 0, 0, 0
	for done := 0; done < *rosterSteps; {
		w, roster := newRosterWorld(r), &Roster{}
		for range 100 {
			done++
			w.happen()
			before := map[string]*hivev1.ClusterDeployment{}
			for name, e := range roster.byName {
				before[name] = e.cluster
			}
			whole, err := w.o.PoolSnapshot(w.plan, w.now)
			if err != nil {
				t.Fatal(err)
			}
			incremental := w.o
			incremental.Roster = roster
			got, err := incremental.PoolSnapshot(w.plan, w.now)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]*pool.Member, len(whole.Members))
			for i := range whole.Members {
				want[i] = &whole.Members[i]
			}
			slices.SortFunc(want, pool.CompareByAge)
			if diff := diffMembers(want, got.ByAge); diff != "" {
				t.Fatalf("seed %d, step %d: the roster differs (-whole +roster):\n%s", seed, done, diff)
			}
			wantPlan, gotPlan := pool.Decide(whole), pool.Decide(got)
			if !reflect.DeepEqual(wantPlan, gotPlan) {
				diff := gocmp.Diff(wantPlan, gotPlan)
				t.Fatalf("seed %d, step %d: the plan differs (-whole +roster):\n%s", seed, done, diff)
			}
			if diff := diffMembers(want, got.ByAge); diff != "" {
				t.Fatalf("seed %d, step %d: Decide has changed the roster:\n%s", seed, done, diff)
			}
			members += len(want)
			for _, m := range want {
				if m.AwaitsTurn {
					turns++
				}
			}
			if len(gotPlan.Steps) > 0 {
				plans++
			}
			for name, e := range roster.byName {
				if before[name] == e.cluster {
					kept++
				}
			}
		}
	}
	t.Logf("%d snapshots, %d with steps; %d members, of which %d were kept, and %d await their turn", *rosterSteps, plans, members, kept, turns)
	if plans < *rosterSteps/2 || kept < members/2 || turns < members/50 {
		t.Errorf("of %d snapshots, %d had plans with steps; of %d members, %d were kept, and %d awaited their turn", *rosterSteps, plans, members, kept, turns)
	}
}
