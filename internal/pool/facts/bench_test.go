package facts

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

// BenchmarkPass measures the part of a pass that is not input or output, on a pool of which one cluster changes
// between two passes.
func BenchmarkPass(b *testing.B) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, size := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Finalizers: []string{hivev1.FinalizerPool}}}
			p.Spec.Size, p.Spec.RunningCount = int32(size), int32(size)
			version, err := pool.Version(p.Spec)
			if err != nil {
				b.Fatal(err)
			}
			o := Objects{Pool: p, Roster: &Roster{}, Clusters: map[string]*hivev1.ClusterDeployment{}}
			for i := range size {
				cd := running()
				cd.Name, cd.Namespace = fmt.Sprintf("p-%05d", i*7919%size), fmt.Sprintf("p-%05d", i)
				cd.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(i) * time.Second))
				cd.Annotations = map[string]string{hivev1.AnnotationPoolVersion: version}
				o.Clusters[cd.Name] = cd
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := o.PoolSnapshot(inventory.Plan{}, now)
				if err != nil {
					b.Fatal(err)
				}
				if plan := pool.Decide(s); len(plan.Steps) > 0 && testing.Verbose() {
					b.Fatal(plan)
				}
			}
		})
	}
}
