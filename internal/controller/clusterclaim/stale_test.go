package clusterclaim_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// staleClaims reads claims as they were when they were first read.
type staleClaims struct {
	client.Client
	read map[client.ObjectKey]*hivev1.ClusterClaim
}

func (s staleClaims) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c, is := o.(*hivev1.ClusterClaim)
	if !is {
		return s.Client.Get(ctx, key, o, opts...)
	}
	if s.read[key] == nil {
		if err := s.Client.Get(ctx, key, c, opts...); err != nil {
			return err
		}
		s.read[key] = c.DeepCopy()
	}
	s.read[key].DeepCopyInto(c)
	return nil
}

func TestAStatusIsWrittenOnceAlthoughTheCacheIsStale(t *testing.T) {
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "uid-x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
	api, writes := rig(t, nil, claim)
	r := newReconciler(staleClaims{api, map[client.ObjectKey]*hivev1.ClusterClaim{}})
	r.Live = api
	for range 3 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(*writes) != 1 {
		t.Errorf("it wrote %v, want one status", *writes)
	}
}
