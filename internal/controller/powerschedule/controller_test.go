package powerschedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

const (
	asleep = hivev1.PowerHibernating
	awake  = hivev1.PowerRunning
)

func TestADay(t *testing.T) {
	h := newHub(t, nights(), cluster("team", "a"), cluster("team", "b", wants(awake)), cluster("other", "c"))
	h.clock.SetTime(evening.Add(-time.Minute))
	h.pass()
	st := h.schedule().Status
	want(t, "clusters", st.Clusters, 2)
	want(t, "the next slot", st.NextSlot.Time.UTC(), evening)
	want(t, "asleep before the slot", h.hibernating(), "")

	h.run(evening.Add(time.Hour))
	want(t, "asleep after it", h.hibernating(), "team/a team/b")
	want(t, "the last slot", h.last(), "20 19:00 Hibernating Taken, 2 told")

	t.Run("a change by hand wins until the next slot", func(t *testing.T) {
		h.power("team", "a", awake)
		h.run(evening.Add(12 * time.Hour))
		want(t, "asleep in the night", h.hibernating(), "team/b")
	})
	t.Run("a pass that changes nothing writes nothing", func(t *testing.T) {
		writes := h.writes
		h.pass()
		want(t, "writes", h.writes, writes)
	})
	h.run(evening.Add(14 * time.Hour))
	want(t, "asleep in the morning", h.hibernating(), "")
	want(t, "the last slot", h.last(), "21 08:00 Running Taken, 2 told")
	h.run(evening.Add(25 * time.Hour))
	want(t, "asleep the next evening", h.hibernating(), "team/a team/b")

	t.Run("each step has one event on the cluster and one on the schedule", func(t *testing.T) {
		got := h.told()
		want(t, "events", len(got), 2*(2+1+2))
		const of = "set spec.powerState to Hibernating, slot of 2026-11-20T19:00:00Z"
		if diff := cmp.Diff([]string{
			"Normal ScheduledHibernation PowerSchedule team/nights: " + of, "Normal ScheduledHibernation cluster team/a: " + of,
		}, pairOf(got, "cluster team/a: "+of)); diff != "" {
			t.Error(diff)
		}
	})
}

// pairOf is the event with that end and the one before.
func pairOf(all []string, end string) []string {
	for i, e := range all {
		if i > 0 && strings.HasSuffix(e, end) {
			return all[i-1 : i+1]
		}
	}
	return nil
}

func TestWhichClusters(t *testing.T) {
	byLabel := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}
	dev := labelled("env", "dev")
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"env": "dev"}}},
		cluster("team", "plain"), cluster("team", "dev", dev), cluster("other", "dev", dev), cluster("other", "plain"),
		cluster("team", "paused", annotated(hivev1.AnnotationReconcilePause, "true")),
		cluster("team", "spare", pooled("team", "")), cluster("other", "spare", pooled("team", ""), dev),
		cluster("mine", "mine", pooled("team", "mine")), cluster("hers", "hers", pooled("team", "hers")), cluster("his", "his", pooled("other", "his")),
		claim("team", "mine", "mine", map[string]string{"env": "dev"}), claim("team", "hers", "hers", nil), claim("other", "his", "his", nil),
		claim("team", "waits", "", nil),
		claim("team", "thief", "his", nil), // a claim that says it has another's cluster
		claim("team", "his", "his", nil),   // the same, with the name of the other's claim
		cluster("planted", "planted", pooled("team", "mine")),
	}
	for name, tc := range map[string]struct {
		cluster, namespace, claim *metav1.LabelSelector
		want                      string
	}{
		"all of the schedule's namespace, but not what is paused or a spare": {&metav1.LabelSelector{}, nil, nil, "team/dev team/plain"},
		"by label":                          {byLabel, nil, nil, "team/dev"},
		"by label, in all namespaces":       {byLabel, &metav1.LabelSelector{}, nil, "other/dev team/dev"},
		"by the label of the namespace":     {&metav1.LabelSelector{}, byLabel, nil, "other/dev other/plain"},
		"of all claims here":                {nil, nil, &metav1.LabelSelector{}, "hers/hers mine/mine"},
		"of claims with a label":            {nil, nil, byLabel, "mine/mine"},
		"none, if a schema lets that pass":  {nil, nil, nil, ""},
		"namespaces that do not exist here": {&metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, append([]client.Object{nights(func(ps *v1alpha1.PowerSchedule) {
				ps.Spec.ClusterSelector, ps.Spec.NamespaceSelector, ps.Spec.ClaimSelector = tc.cluster, tc.namespace, tc.claim
			})}, objects...)...)
			h.run(evening.Add(time.Hour))
			want(t, "asleep", h.hibernating(), tc.want)
			want(t, "counted", int(h.schedule().Status.Clusters), len(strings.Fields(tc.want)))
		})
	}
}

func TestStartsAreSpread(t *testing.T) {
	h := newHub(t, nights())
	for _, c := range strings.Fields("a b c d e f g h i j k l m n o p q r s t") {
		if err := h.Create(t.Context(), cluster("team", c)); err != nil {
			t.Fatal(err)
		}
	}
	most, was := 0, 0
	for second := range 60 {
		h.clock.SetTime(evening.Add(time.Duration(second) * time.Second))
		h.pass()
		is := len(strings.Fields(h.hibernating()))
		most, was = max(most, is-was), is
	}
	want(t, "asleep after a minute", was, 20)
	if most > 5 {
		t.Errorf("%d of 20 clusters were told in one second", most)
	}
}

func TestAMissedSlot(t *testing.T) {
	night := evening.Add(3 * time.Hour)
	t.Run("it is made up for once", func(t *testing.T) {
		h := newHub(t, nights(), cluster("team", "a"))
		h.clock.SetTime(night)
		h.run(night.Add(time.Hour))
		want(t, "asleep", h.hibernating(), "team/a")
		h.power("team", "a", awake)
		h.run(night.Add(2 * time.Hour))
		want(t, "asleep after a change by hand", h.hibernating(), "")
	})
	t.Run("of several only the last is", func(t *testing.T) {
		h := newHub(t, nights(), cluster("team", "a"))
		h.clock.SetTime(evening.AddDate(0, 0, 2).Add(14 * time.Hour))
		h.run(evening.AddDate(0, 0, 2).Add(15 * time.Hour))
		want(t, "the last slot", h.last(), "23 08:00 Running Taken, 1 told")
		want(t, "events", len(h.told()), 0)
	})
	t.Run("a change by hand since then stands", func(t *testing.T) {
		changed := cluster("team", "a", wants(awake))
		at := metav1.NewTime(evening.Add(time.Hour))
		changed.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "hive.openshift.io/v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:powerState":{}}}`),
		}}
		other := cluster("team", "b", wants(awake))
		other.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "hive.openshift.io/v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:hibernateAfter":{}}}`),
		}}
		h := newHub(t, nights(), changed, other)
		h.clock.SetTime(night)
		h.run(night.Add(time.Hour))
		want(t, "asleep", h.hibernating(), "team/b")
		want(t, "the last slot", h.last(), "20 19:00 Hibernating Taken, 1 told")
	})
	t.Run("a change by hand stands of which the hub keeps no account", func(t *testing.T) {
		moved := func(name string, to hivev1.PowerState, at time.Time) *hivev1.ClusterDeployment {
			cd := cluster("team", name, wants(awake))
			cd.Status.PowerTransition = &hivev1.PowerTransition{Target: to, StartedAt: metav1.NewTime(at)}
			return cd
		}
		h := newHub(
			t, nights(), cluster("team", "never"),
			moved("before", awake, evening.Add(-time.Hour)), moved("since", awake, evening.Add(time.Hour)),
			moved("not-acted-upon", asleep, evening.Add(-time.Hour)),
		)
		h.clock.SetTime(night)
		h.run(night.Add(time.Hour))
		want(t, "asleep", h.hibernating(), "team/before team/never")
	})
}

func TestWhatIsSkippedIsNotMadeUpFor(t *testing.T) {
	h := newHub(t, nights(func(ps *v1alpha1.PowerSchedule) {
		until := metav1.NewTime(evening.Add(2 * time.Hour))
		ps.Spec.SkipUntil = &until
	}), cluster("team", "a"))
	h.run(evening.Add(3 * time.Hour))
	want(t, "the last slot", h.last(), "20 19:00 Hibernating Skipped, 0 told")
	h.edit(func(ps *v1alpha1.PowerSchedule) { ps.Spec.SkipUntil = nil })
	h.run(evening.Add(4 * time.Hour))
	want(t, "asleep", h.hibernating(), "")
	h.run(evening.Add(25 * time.Hour))
	want(t, "asleep the next evening", h.hibernating(), "team/a")
}

func TestWhatIsNotUnderstoodSwitchesNothing(t *testing.T) {
	h := newHub(t, nights(func(ps *v1alpha1.PowerSchedule) {
		ps.Spec.Windows = append(ps.Spec.Windows, v1alpha1.Window{Hibernate: "0 25 * * *"}, v1alpha1.Window{Resume: "0 8 * * *", TimeZone: "Mars/Base"})
		ps.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}
	}), cluster("team", "a"))
	h.run(evening.Add(time.Hour))
	h.pass()
	want(t, "asleep", h.hibernating(), "")
	c := meta.FindStatusCondition(h.schedule().Status.Conditions, v1alpha1.ScheduleValid)
	want(t, "Valid", string(c.Status)+" "+c.Reason, "False InvalidCron")
	for _, part := range []string{
		`spec.windows[1].hibernate "0 25 * * *" is not a cron expression`, `spec.windows[2].timeZone "Mars/Base" is not a time zone: use a name`,
		"spec.clusterSelector", "use matchLabels",
	} {
		if !strings.Contains(c.Message, part) {
			t.Errorf("the message lacks %q: %s", part, c.Message)
		}
	}
	want(t, "events", len(h.told()), 1)

	h.edit(func(ps *v1alpha1.PowerSchedule) {
		ps.Spec.Windows = ps.Spec.Windows[:1]
		ps.Spec.ClusterSelector.MatchExpressions = nil
	})
	h.run(evening.Add(2 * time.Hour))
	want(t, "asleep once it is corrected", h.hibernating(), "team/a")
	ps := h.schedule()
	want(t, "Valid", meta.IsStatusConditionTrue(ps.Status.Conditions, v1alpha1.ScheduleValid), true)
	want(t, "observed", ps.Status.ObservedGeneration, ps.Generation)
}

func TestAClusterThatCannotBeToldKeepsNoOtherWaiting(t *testing.T) {
	h := newHub(t, nights(), cluster("team", "a"), cluster("team", "b"))
	h.refuse = func(o client.Object) error {
		if o.GetName() == "a" {
			return errors.New("denied by a policy of somebody else")
		}
		return nil
	}
	h.run(evening.Add(10 * time.Minute))
	want(t, "asleep", h.hibernating(), "team/b")
	want(t, "the last slot", h.last(), "20 19:00 Hibernating Underway, 1 told")
	want(t, "message", h.schedule().Status.LastSlot.Message, "setting the power state of cluster team/a: denied by a policy of somebody else")
	want(t, "events", len(h.told()), 3)

	h.refuse = func(client.Object) error { return nil }
	h.run(evening.Add(11 * time.Minute))
	want(t, "asleep in the end", h.hibernating(), "team/a team/b")
	want(t, "the last slot", h.last(), "20 19:00 Hibernating Taken, 2 told")
	want(t, "message", h.schedule().Status.LastSlot.Message, "")
}
