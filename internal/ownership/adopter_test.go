package ownership_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/ownership"
)

func TestOneOfTwoAdoptersManagesTheCluster(t *testing.T) {
	type cluster = *hivev1.ClusterDeployment
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	none := func(cluster, cluster) {}
	for name, c := range map[string]struct {
		mine, other place
		change      func(mine, other cluster)
		denied      bool
	}{
		"the one that was adopted first": {anywhere, anywhere, func(mine, other cluster) { other.CreationTimestamp = metav1.NewTime(start.Add(time.Second)) }, false},
		"not the other":                  {anywhere, anywhere, func(_, other cluster) { other.CreationTimestamp = metav1.NewTime(start.Add(-time.Second)) }, true},
		"of two at once, the lesser UID": {anywhere, anywhere, none, false}, // mine < other
		"and not the greater UID":        {anywhere, anywhere, func(mine, _ cluster) { mine.UID = "zzz" }, true},
		"an installed cluster":           {anywhere, anywhere, func(_, other cluster) { other.Spec.Provisioning = &hivev1.Provisioning{} }, true},
		"the rule is for adopted clusters": {anywhere, anywhere, func(mine, _ cluster) {
			mine.UID, mine.Spec.Provisioning = "zzz", &hivev1.Provisioning{}
		}, false},
		"another cluster may have the same infraID": {anywhere, anywhere, func(mine, other cluster) { mine.UID, other.Spec.ClusterMetadata.ClusterID = "zzz", "y" }, false},
		"… or be on another platform": {anywhere, anywhere, func(mine, other cluster) {
			mine.UID, other.Spec.Platform = "zzz", hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte("{}")}}
		}, false},
		"Clusters of Cluster API have the same name in two namespaces": {anywhere, anywhere, func(mine, other cluster) {
			mine.UID, mine.Spec.Platform.CAPI, other.Spec.Platform.CAPI = "zzz", &hivev1.CAPIPlatform{}, &hivev1.CAPIPlatform{}
		}, false},
		"a spare of a pool is not blocked from outside": {inPool, anywhere, func(mine, _ cluster) { mine.UID = "zzz" }, false},
		"… but by another spare":                        {inPool, inPool, func(mine, _ cluster) { mine.UID = "zzz" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := hivev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			objects := append(clusterIn(c.mine, "mine", "x"), clusterIn(c.other, "other", "x")...)
			mine, other := objects[0].(cluster), objects[2].(cluster)
			for _, cd := range []cluster{mine, other} {
				cd.CreationTimestamp, cd.Spec.ClusterMetadata.ClusterID = metav1.NewTime(start), "id"
			}
			c.change(mine, other)
			cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
				WithIndex(&hivev1.ClusterDeployment{}, ownership.ByInfraID, ownership.InfraIDs).Build()
			err := ownership.ConfirmAdopter(t.Context(), cache, mine, "x")
			if got := fault.KindOf(err) == fault.Denied; got != c.denied || !got && err != nil {
				t.Errorf("denied: %t, want %t (%v)", got, c.denied, err)
			}
			if c.denied && !strings.Contains(err.Error(), client.ObjectKeyFromObject(other).String()) {
				t.Errorf("the error does not name the other cluster: %v", err)
			}
		})
	}
}
