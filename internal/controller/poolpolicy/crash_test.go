package poolpolicy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/controller/poolpolicy"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	"hotspare.io/hotspare/internal/sizing/record"
)

// After any write the process may die, and a write may be seen late. A change by hand is kept until
// midnight, hotspare's own change is never taken for one, and each claim is recorded once.
func TestCrashNeitherLosesNorInventsAChangeByHand(t *testing.T) {
	t.Parallel()
	var now *clocktesting.FakePassiveClock
	var begin, until time.Time
	byHand := false

	read := func(ctx context.Context, api client.Client) (*hivev1.ClusterPool, *v1alpha1.PoolPolicy, error) {
		var p hivev1.ClusterPool
		if err := api.Get(ctx, key, &p); err != nil {
			return nil, nil, err
		}
		var policy v1alpha1.PoolPolicy
		err := api.Get(ctx, key, &policy)
		return &p, &policy, err
	}
	create := func(ctx context.Context, api client.Client) error {
		begin = time.Now().UTC() // the API sets the times of creations
		now, until, byHand = clocktesting.NewFakePassiveClock(begin), begin.Add(10*time.Minute), false
		claim := &hivev1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "mine", UID: "mine", CreationTimestamp: metav1.NewTime(begin)},
			Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: key.Name},
		}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}}, newPool(3, 30), newPolicy(), claim,
		} {
			if err := api.Create(ctx, o); err != nil {
				return err
			}
		}
		return nil
	}
	scale := func(ctx context.Context, api client.Client) error {
		p, policy, err := read(ctx, api)
		if err != nil {
			return err
		}
		if policy.Status.ManualChange != nil {
			return fmt.Errorf("a change of hotspare was taken for one by hand: %+v", policy.Status.ManualChange)
		}
		before := p.DeepCopy()
		p.Spec.RunningCount, p.Spec.Size = 6, 9
		byHand, until = true, now.Now().Add(5*time.Minute)
		return api.Patch(ctx, p, client.MergeFrom(before))
	}
	sleep := func(ctx context.Context, api client.Client) error {
		_, policy, err := read(ctx, api)
		if err != nil {
			return err
		}
		if m := policy.Status.ManualChange; m == nil || m.Running != 6 {
			return fmt.Errorf("the change by hand was lost: %+v", policy.Status)
		}
		byHand = false
		now.SetTime(begin.AddDate(0, 0, 1))
		until = now.Now().Add(5 * time.Minute)
		return nil
	}
	crashtest.Run(t, crashtest.Scenario{
		Scheme: newScheme(t),
		Kinds: []client.Object{
			&corev1.Namespace{}, &corev1.ConfigMap{}, &v1alpha1.PoolPolicy{}, &hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{},
		},
		Indexes: &chaos.Indexes{},
		Acts:    []func(context.Context, client.Client) error{create, scale, sleep},
		World: func(context.Context, client.Client) (bool, error) {
			if !now.Now().Before(until) {
				return false, nil
			}
			now.SetTime(now.Now().Add(time.Minute))
			return true, nil
		},
		Start: func(cached, live client.Client) []crashtest.Controller {
			r := &poolpolicy.Reconciler{Client: cached, Live: live, Events: events.NewFakeRecorder(1000)}
			return []crashtest.Controller{func(ctx context.Context) error {
				r.Clock = now
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
				return err
			}}
		},
		Always: func(ctx context.Context, api client.Client) error {
			p, _, err := read(ctx, api)
			if err == nil && byHand && (p.Spec.RunningCount != 6 || p.Spec.Size != 9) {
				err = fmt.Errorf("the change by hand was overwritten: %d of %d", p.Spec.RunningCount, p.Spec.Size)
			}
			return err
		},
		Finally: func(ctx context.Context, api client.Client) error {
			p, policy, err := read(ctx, api)
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.PolicyApplied)
			if p.Spec.Size != 9 || c == nil || c.Reason != v1alpha1.ReasonApplied || *policy.Status.Static != (v1alpha1.PoolCounts{Running: 6, Size: 9}) {
				return fmt.Errorf("%d of %d, %+v, static %+v", p.Spec.RunningCount, p.Spec.Size, c, policy.Status.Static)
			}
			var cm corev1.ConfigMap
			if err := api.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: record.ConfigMapName(key.Name)}, &cm); err != nil {
				return err
			}
			r, err := record.Decode(cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey], now.Now())
			if err == nil && r.Demand.Claims() != 1 {
				err = fmt.Errorf("%d claims were recorded, want 1", r.Demand.Claims())
			}
			return err
		},
	})
}
