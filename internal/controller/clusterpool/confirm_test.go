package clusterpool

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

func TestOnlyAMarkedClusterIsDestroyedBesideItsClaim(t *testing.T) {
	r, _, _ := reconciler(t, &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p", Namespace: "a"},
	})
	x := newExecution(r, &observation{pool: readPool(t, everything)})
	for annotation, marked := range map[string]bool{
		hivev1.AnnotationRemove: true, hivev1.AnnotationRemoveLegacy: true, "example.com/remove": false,
	} {
		cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{annotation: "true"}}}
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p", ClaimName: "x"}
		err := x.confirmUnused(t.Context(), cd)
		if refused := fault.KindOf(err) == fault.Conflict; refused == marked {
			t.Errorf("%s: got %v", annotation, err)
		}
	}
}
