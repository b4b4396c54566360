package powerschedule_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/controller/powerschedule"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

// After any write the process may die, and a write may be seen late. In the first
// slot a user wakes a cluster right after it was set to hibernate; in the end every slot
// was taken once by every cluster.
func TestCrashNeitherRepeatsNorLosesASlot(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	var now *clocktesting.FakePassiveClock
	var until time.Time
	var changes map[string]int // of a cluster's power, by the controller
	var was map[string]hivev1.PowerState
	woken := false

	wake := func(ctx context.Context, api client.Client, name string) error {
		var cd hivev1.ClusterDeployment
		if err := api.Get(ctx, types.NamespacedName{Namespace: "team", Name: name}, &cd); err != nil {
			return err
		}
		before := cd.DeepCopy()
		cd.Spec.PowerState = awake
		was[name] = awake
		return api.Patch(ctx, &cd, client.MergeFrom(before))
	}
	create := func(ctx context.Context, api client.Client) error {
		now, until = clocktesting.NewFakePassiveClock(evening), evening.Add(2*time.Minute)
		changes, was, woken = map[string]int{}, map[string]hivev1.PowerState{}, false
		if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}); err != nil {
			return err
		}
		ps := nights()
		status := ps.Status
		if err := api.Create(ctx, ps); err != nil {
			return err
		}
		before := ps.DeepCopy()
		ps.Status = status
		if err := api.Status().Patch(ctx, ps, client.MergeFrom(before)); err != nil {
			return err
		}
		for _, name := range names {
			if err := api.Create(ctx, cluster("team", name, wants(awake))); err != nil {
				return err
			}
			was[name] = awake
		}
		return nil
	}
	morning := func(context.Context, client.Client) error {
		now.SetTime(evening.Add(13*time.Hour + 20*time.Minute)) // it was missed
		until = now.Now().Add(2 * time.Minute)
		return nil
	}
	crashtest.Run(t, crashtest.Scenario{
		Scheme:  newScheme(t),
		Kinds:   []client.Object{&corev1.Namespace{}, &v1alpha1.PowerSchedule{}, &hivev1.ClusterDeployment{}, &hivev1.ClusterClaim{}},
		Indexes: &chaos.Indexes{},
		Acts:    []func(context.Context, client.Client) error{create, morning},
		// World lets time pass, has clusters obey, and a user wake the first that sleeps.
		World: func(ctx context.Context, api client.Client) (bool, error) {
			var list hivev1.ClusterDeploymentList
			if err := api.List(ctx, &list); err != nil {
				return false, err
			}
			for _, cd := range list.Items {
				if t := cd.Status.PowerTransition; cd.Spec.PowerState == asleep && t == nil || t != nil && t.Target != cd.Spec.PowerState {
					return true, obey(ctx, api, &cd, now.Now())
				}
				if cd.Spec.PowerState == asleep && !woken {
					woken = true
					return true, wake(ctx, api, cd.Name)
				}
			}
			if now.Now().Before(until) {
				now.SetTime(now.Now().Add(7 * time.Second))
				return true, nil
			}
			return false, nil
		},
		Start: func(cached, live client.Client) []crashtest.Controller {
			r := &powerschedule.Reconciler{Client: cached, Live: live, Events: events.NewFakeRecorder(1000)}
			return []crashtest.Controller{func(ctx context.Context) error {
				r.Clock = now
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "nights"}})
				return err
			}}
		},
		Always: func(ctx context.Context, api client.Client) error {
			var list hivev1.ClusterDeploymentList
			if err := api.List(ctx, &list); err != nil {
				return err
			}
			for _, cd := range list.Items {
				if cd.Spec.PowerState != was[cd.Name] {
					changes[cd.Name]++
					was[cd.Name] = cd.Spec.PowerState
				}
			}
			return nil
		},
		Finally: func(ctx context.Context, api client.Client) error {
			h := &hub{T: t, Client: api}
			if got := h.last(); got != "21 08:00 Running Taken, 3 told" {
				return fmt.Errorf("the last slot is %s", got)
			}
			if got := h.hibernating(); got != "" || !woken {
				return fmt.Errorf("asleep are %q", got)
			}
			total := 0
			for name, n := range changes {
				if n > 2 {
					return fmt.Errorf("%s was switched %d times", name, n)
				}
				total += n
			}
			if total != 3+2 { // one was awake already in the morning
				return fmt.Errorf("clusters were switched %v times", changes)
			}
			return nil
		},
	})
}

// obey does what the controller of power does when it has heard.
func obey(ctx context.Context, api client.Client, cd *hivev1.ClusterDeployment, now time.Time) error {
	before := cd.DeepCopy()
	cd.Status.PowerTransition = &hivev1.PowerTransition{Target: cd.Spec.PowerState, StartedAt: metav1.NewTime(now)}
	return api.Status().Patch(ctx, cd, client.MergeFrom(before))
}
