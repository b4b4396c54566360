package powerschedule

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func TestWhatWakesASchedule(t *testing.T) {
	all := &metav1.LabelSelector{}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(s).WithObjects(
		&v1alpha1.PowerSchedule{ObjectMeta: named("team", "here"), Spec: v1alpha1.PowerScheduleSpec{ClusterSelector: all}},
		&v1alpha1.PowerSchedule{ObjectMeta: named("team", "claims"), Spec: v1alpha1.PowerScheduleSpec{ClaimSelector: all}},
		&v1alpha1.PowerSchedule{ObjectMeta: named("admin", "wide"), Spec: v1alpha1.PowerScheduleSpec{ClusterSelector: all, NamespaceSelector: all}},
	).Build()}
	cluster := func(namespace, claim string) client.Object {
		return &hivev1.ClusterDeployment{ObjectMeta: named(namespace, "c"), Spec: hivev1.ClusterDeploymentSpec{
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "team", PoolName: "p", ClaimName: claim},
		}}
	}
	for name, tc := range map[string]struct {
		concerns func(*v1alpha1.PowerSchedule, client.Object) bool
		object   client.Object
		want     string
	}{
		"a cluster of its namespace":        {concernsCluster, &hivev1.ClusterDeployment{ObjectMeta: named("team", "c")}, "admin/wide team/here"},
		"a cluster elsewhere":               {concernsCluster, &hivev1.ClusterDeployment{ObjectMeta: named("other", "c")}, "admin/wide"},
		"a cluster that a claim here has":   {concernsCluster, cluster("elsewhere", "mine"), "admin/wide team/claims"},
		"a spare concerns no claim":         {concernsCluster, cluster("elsewhere", ""), "admin/wide"},
		"a claim here":                      {concernsClaim, &hivev1.ClusterClaim{ObjectMeta: named("team", "mine")}, "team/claims"},
		"a claim elsewhere":                 {concernsClaim, &hivev1.ClusterClaim{ObjectMeta: named("other", "his")}, ""},
		"a namespace, if they are selected": {concernsNamespace, &corev1.Namespace{ObjectMeta: named("", "other")}, "admin/wide"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for i, key := range r.concernedSchedules(t.Context(), tc.concerns, []client.Object{tc.object, tc.object}) {
				if i > 0 {
					got += " "
				}
				got += key.String()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
