package poolplan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/explain/remedy"
)

func TestAClaimIsToldWhichOthersAreBeforeIt(t *testing.T) {
	for name, c := range map[string]struct {
		priorities []string // of claims a, b and c, which were created in this order
		want       map[string]string
	}{
		"without priorities the place says it": {[]string{"", "", ""}, map[string]string{
			"a": "no free cluster runs; none is on the way, and no more are created: maxSize is 0", "c": "no free cluster runs; none is on the way, and no more are created: maxSize is 0",
		}},
		"with a priority": {[]string{"", "", "10"}, map[string]string{
			"c": "it is the first in the queue; no free cluster runs; none is on the way, and no more are created: maxSize is 0",
			"a": "1 claim is before it: c (priority 10); no free cluster runs; none is on the way, and no more are created: maxSize is 0",
			"b": "2 claims are before it: c (priority 10) and a (priority 0); no free cluster runs; none is on the way, and no more are created: maxSize is 0",
		}},
	} {
		p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "p"}}
		p.Spec.MaxSize = new(int32)
		var claims []hivev1.ClusterClaim
		for i, priority := range c.priorities {
			claims = append(claims, hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ci", Name: string(rune('a' + i)), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(i-10) * time.Minute)),
					Annotations: map[string]string{hivev1.AnnotationPriority: priority},
				},
				Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
			})
		}
		f := poolplan.New(p, claims, nil, nil)
		if err := f.Decide(noon); err != nil {
			t.Fatal(err)
		}
		for i := range claims {
			want, checked := c.want[claims[i].Name]
			if got := f.ExplainClaim(&claims[i], remedy.FormatPlainCommand).Message; checked && got != want {
				t.Errorf("%s: claim %s\ngot  %s\nwant %s", name, claims[i].Name, got, want)
			}
		}
	}
}
