package power

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/remote"
)

// usedSim is a cloud that keeps the addresses of clusters, and whose cluster reports its requests.
type usedSim struct {
	*sim
	activity *power.Activity
	held     bool
	waiting  int
	refuses  error
	// ignored are the namespaces whose service accounts did not count when the activity was read last.
	ignored []string
}

func (s *usedSim) HoldAddress(context.Context, cloud.Ref) error {
	s.held = s.refuses == nil
	return s.refuses
}

func (s *usedSim) DropAddress(context.Context, cloud.Ref) error {
	s.held = false
	return nil
}

func (s *usedSim) CountWaiting(cloud.Ref) int { return s.waiting }

func (s *usedSim) ObserveSpoke(ctx context.Context, secret types.NamespacedName, ask remote.ObserveOptions) (power.Spoke, error) {
	out, err := s.sim.ObserveSpoke(ctx, secret, ask)
	if ask.Activity && out.Reachable {
		out.Activity, s.ignored = s.activity, ask.IgnoredNamespaces
	}
	return out, err
}

func claimedFromPool(cd *hivev1.ClusterDeployment) {
	at := metav1.NewTime(time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC))
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "ci", PoolName: "dev", ClaimName: "mine", ClaimedTimestamp: &at}
}

// usedHub is a hub with a running claimed cluster whose PoolPolicy has a limit of inactivity.
func usedHub(t *testing.T, limit hivev1.Duration) (*hub, *usedSim) {
	t.Helper()
	h := newHub(t, claimedFromPool)
	s := &usedSim{sim: h.sim, activity: &power.Activity{Open: 1, Requests: 1}}
	h.Actuators, h.Remote = cloud.Registry{"aws": s}, s
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "dev"},
		Spec: v1alpha1.PoolPolicySpec{ClaimedClusters: &v1alpha1.ClaimedClusters{
			HibernateAfterInactivity: limit, IgnoredNamespaces: []string{"cert-manager"},
		}},
	}
	if err := h.Client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	h.until("Running")
	return h, s
}

func TestAClusterThatNobodyUsesSleepsAndWakesWhenAClientConnects(t *testing.T) {
	h, s := usedHub(t, "30m")
	for range 50 { // a watch is open
		h.sim.clock.Step(max(h.pass(), time.Second))
	}
	if cd := h.get(); cd.Spec.PowerState == hivev1.PowerHibernating || cd.Status.PowerTransition.LastRequestAt == nil {
		t.Fatalf("it wants %s: %+v", cd.Spec.PowerState, cd.Status.PowerTransition)
	}
	if !slices.Equal(s.ignored, []string{"cert-manager"}) {
		t.Errorf("the service accounts of %q do not count", s.ignored)
	}
	s.activity = &power.Activity{Idle: 29 * time.Minute, Requests: 1}
	if next := h.pass(); next > time.Minute {
		t.Errorf("the next pass is in %s", next)
	}
	s.activity = &power.Activity{Idle: 30 * time.Minute, Requests: 1}
	h.pass()
	if cd := h.get(); cd.Spec.PowerState != hivev1.PowerHibernating || cd.Annotations[hivev1.AnnotationInactivity] != "Hibernating" {
		t.Fatalf("it wants %q, and records %q", cd.Spec.PowerState, cd.Annotations)
	}
	if n := h.told("Normal HibernatedForInactivity nobody has used it for 30m0s: set spec.powerState to Hibernating"); n != 1 {
		t.Errorf("%d events", n)
	}
	h.until("Hibernating")
	if !s.held {
		t.Error("its address is not held")
	}
	if m := condition.Find(h.get().Status.Conditions, hivev1.ClusterHibernating).Message; !strings.Contains(m, "A connection to its API wakes it") {
		t.Errorf("it says %q", m)
	}
	h.told("")

	s.waiting = 1000
	for range 3 {
		h.pass()
	}
	if cd := h.get(); cd.Spec.PowerState != hivev1.PowerRunning || cd.Annotations[hivev1.AnnotationInactivity] != "Woken" {
		t.Fatalf("it wants %q, and records %q", cd.Spec.PowerState, cd.Annotations)
	}
	if n := h.told("Normal WokenByConnection a client connected to its API: set spec.powerState to Running"); n != 1 {
		t.Errorf("%d events", n)
	}
	if !s.held {
		t.Error("its address is not held while it resumes")
	}
	s.activity, s.waiting = &power.Activity{Requests: 1000}, 0
	h.until("Running")
	for range 3 {
		h.pass()
	}
	if cd := h.get(); cd.Annotations[hivev1.AnnotationInactivity] != "" {
		t.Errorf("it records %q", cd.Annotations)
	}
	if s.held {
		t.Error("the address of a running cluster is held")
	}
}

func TestAConnectionDoesNotEndASleepThatAUserWanted(t *testing.T) {
	h, s := usedHub(t, "30m")
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	s.waiting = 1
	for range 5 {
		h.sim.clock.Step(h.pass())
	}
	if h.get().Spec.PowerState != hivev1.PowerHibernating || s.held {
		t.Errorf("a connection wakes it, held: %t", s.held)
	}
}

func TestWhatPreventsInactivityIsReported(t *testing.T) {
	h, _ := usedHub(t, "soon")
	says := func(want string) {
		t.Helper()
		h.pass()
		if m := condition.Find(h.get().Status.Conditions, hivev1.ClusterHibernating).Message; !strings.Contains(m, want) {
			t.Errorf("it says %q", m)
		}
	}
	says(`spec.claimedClusters.hibernateAfterInactivity of PoolPolicy ci/dev is ignored: "soon" is not a duration`)

	var s *usedSim
	h, s = usedHub(t, "30m")
	s.activity = nil
	says("It does not hibernate for inactivity: its API server does not report requests.")
	h.sim.clock.Step(24 * time.Hour)
	h.pass()
	if h.get().Spec.PowerState == hivev1.PowerHibernating {
		t.Error("it sleeps although its activity is not known")
	}
	s.activity, s.refuses = &power.Activity{Idle: time.Hour}, errors.New("port 20001 is taken")
	h.pass()
	h.until("Hibernating")
	says("Connections cannot wake it: port 20001 is taken.")
}

func TestADeletedClusterIsNotHeld(t *testing.T) {
	h, s := usedHub(t, "30m")
	s.activity = &power.Activity{Idle: time.Hour}
	h.pass()
	h.until("Hibernating")
	h.edit(func(cd *hivev1.ClusterDeployment) { cd.Finalizers = []string{"hotspare.io/test"} })
	if err := h.Client.Delete(t.Context(), h.get()); err != nil {
		t.Fatal(err)
	}
	s.waiting = 1
	h.pass()
	if s.held || h.get().Spec.PowerState == hivev1.PowerRunning {
		t.Errorf("held: %t", s.held)
	}
}
