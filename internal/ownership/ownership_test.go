package ownership_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/ownership"
)

// A place is where a ClusterDeployment is: in the namespace that hotspare created for a
// cluster of a pool, in one that only looks so to its owner, or anywhere else.
type place string

const (
	inPool   place = "a namespace that hotspare made for a cluster of a pool"
	planted  place = "a namespace of somebody who writes clusterPoolRef"
	anywhere place = "any namespace, without clusterPoolRef"
)

func clusterIn(p place, name, infraID string) []client.Object {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, UID: types.UID(name)},
	}
	if infraID != "" {
		cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: infraID}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if p != anywhere {
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"}
	}
	if p == inPool {
		ns.Labels = map[string]string{hivev1.LabelPoolName: "p", hivev1.LabelPoolNamespace: "pools"}
	}
	return []client.Object{cd, ns}
}

func TestAClusterOfAPoolOwnsTheInfraIDThatItNames(t *testing.T) {
	tests := map[string]struct {
		mine, other place
		names       string // the infraID that the cluster itself names
		denied      bool
	}{
		"a cluster of a pool may use its own":                            {inPool, anywhere, "x", false},
		"whoever else writes it into a cluster does not keep it from it": {inPool, planted, "x", false},
		"a cluster elsewhere may not use that of a cluster of a pool":    {anywhere, inPool, "x", true},
		"nor may one that only says that it is in a pool":                {planted, inPool, "x", true},
		"nor an attempt of a cluster in another pool":                    {inPool, inPool, "y", true},
		"nor an attempt of a cluster that names none yet":                {inPool, inPool, "", true},
		"an attempt that no cluster of a pool names is its own":          {inPool, anywhere, "y", false},
		"outside pools each acts with the credentials of its namespace":  {anywhere, anywhere, "x", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := hivev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			mine, other := clusterIn(tc.mine, "mine", tc.names), clusterIn(tc.other, "other", "x")
			cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(mine, other...)...).
				WithIndex(&hivev1.ClusterDeployment{}, ownership.ByInfraID, ownership.InfraIDs).Build()
			err := ownership.ConfirmOwner(t.Context(), cache, mine[0].(*hivev1.ClusterDeployment), "x")
			if got := fault.KindOf(err) == fault.Denied; got != tc.denied || !got && err != nil {
				t.Errorf("denied: %t, want %t (%v)", got, tc.denied, err)
			}
		})
	}
}
