package clusterpool

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// asked remembers when a queue was asked to look at which pool.
type asked struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	at map[string]time.Duration
}

func (a *asked) AddAfter(r reconcile.Request, d time.Duration) { a.at[r.String()] = d }

func TestWhatNoClaimWaitsForIsAtLeisure(t *testing.T) {
	cluster := func(claim string) client.Object {
		return &hivev1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: "c"},
			Spec:       hivev1.ClusterDeploymentSpec{ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p", ClaimName: claim}},
		}
	}
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
	admitted := claim.DeepCopy()
	admitted.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimAdmitted, Status: corev1.ConditionTrue}}
	r, busy := &Reconciler{}, &Reconciler{}
	wait := func(r *Reconciler, name string, waiting bool) {
		p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		r.poolCaches.getOrAddPool(p).waiting.Store(waiting)
	}
	wait(r, "p", true)
	wait(r, "another", true)
	wait(r, "p", false)
	wait(busy, "p", true)
	clusters, calm, claims := enqueuePool(poolOfCluster, busy.canBeDeferred), enqueuePool(poolOfCluster, r.canBeDeferred), enqueuePool(poolOfClaim, canClaimWait)
	stray := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "of no pool"}}
	for name, tc := range map[string]struct {
		on          handler.EventHandler
		before, now client.Object
		want        time.Duration
		nobody      bool
	}{
		"a new claim":                {on: claims, now: claim},
		"a claim changes":            {on: claims, before: claim, now: claim, want: deferralDelay},
		"a claim is admitted":        {on: claims, before: claim, now: admitted},
		"an admission is withdrawn":  {on: claims, before: admitted, now: claim},
		"an admitted claim changes":  {on: claims, before: admitted, now: admitted, want: deferralDelay},
		"a claim is gone":            {on: claims, before: claim, want: deferralDelay},
		"no claim waits: a cluster":  {on: calm, now: cluster(""), want: deferralDelay},
		"no claim waits: a spare":    {on: calm, before: cluster(""), now: cluster(""), want: deferralDelay},
		"a new cluster":              {on: clusters, now: cluster("")},
		"a spare runs":               {on: clusters, before: cluster(""), now: cluster("")},
		"a spare is gone":            {on: clusters, before: cluster("")},
		"a cluster is given away":    {on: clusters, before: cluster(""), now: cluster("x"), want: deferralDelay},
		"a given cluster changes":    {on: clusters, before: cluster("x"), now: cluster("x"), want: deferralDelay},
		"a given cluster is gone":    {on: clusters, before: cluster("x"), want: deferralDelay},
		"a cluster that has no pool": {on: clusters, before: stray, now: stray, nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := &asked{at: map[string]time.Duration{}}
			switch {
			case tc.before == nil:
				tc.on.Create(t.Context(), event.CreateEvent{Object: tc.now}, q)
			case tc.now == nil:
				tc.on.Delete(t.Context(), event.DeleteEvent{Object: tc.before}, q)
			default:
				tc.on.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.now}, q)
			}
			got, asked := q.at["n/p"]
			if asked == tc.nobody || got != tc.want || len(q.at) > 1 {
				t.Errorf("asked %v, want n/p after %v, or none: %t", q.at, tc.want, tc.nobody)
			}
		})
	}
}

func TestAChangeOfAPriorityIsSeen(t *testing.T) {
	claim := func(annotations map[string]string) client.Object {
		c := &hivev1.ClusterClaim{}
		c.Annotations = annotations
		return c
	}
	const key = hivev1.AnnotationPriority
	for name, c := range map[string]struct {
		before, now map[string]string
		want        bool
	}{
		"it is set":                {nil, map[string]string{key: "1"}, true},
		"it changes":               {map[string]string{key: "1"}, map[string]string{key: "2"}, true},
		"it is removed":            {map[string]string{key: "1"}, nil, true},
		"it stays":                 {map[string]string{key: "1"}, map[string]string{key: "1"}, false},
		"a heartbeat is no change": {map[string]string{key: "1"}, map[string]string{key: "1", hivev1.AnnotationHeartbeat: "2"}, false},
	} {
		if got := priorityChanged().Update(event.UpdateEvent{ObjectOld: claim(c.before), ObjectNew: claim(c.now)}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// The end of the last ClaimPolicy removes the condition of a claim that was held: its pool must see that.
func TestEveryChangeOfAnAdmissionIsSeen(t *testing.T) {
	claim := func(status corev1.ConditionStatus) client.Object {
		c := &hivev1.ClusterClaim{}
		if status != "" {
			c.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimAdmitted, Status: status}}
		}
		return c
	}
	statuses := []corev1.ConditionStatus{"", corev1.ConditionTrue, corev1.ConditionFalse}
	for _, before := range statuses {
		for _, now := range statuses {
			if got := admissionChanged().Update(event.UpdateEvent{ObjectOld: claim(before), ObjectNew: claim(now)}); got != (before != now) {
				t.Errorf("from %q to %q: %t", before, now, got)
			}
		}
	}
}
