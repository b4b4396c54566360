package clusterpool

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAPoolThatCouldNotBeReadIsParked(t *testing.T) {
	p := readPool(t, everything)
	r, c, _ := reconciler(t, p)
	var sent []string
	r.Client = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			err := c.Get(ctx, key, o)
			if read, isPool := o.(*hivev1.ClusterPool); isPool {
				read.Unreadable = `spec.maxSize: "x" is not a whole number`
			}
			return err
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, diff client.Patch, _ ...client.SubResourcePatchOption) error {
			data, err := diff.Data(o)
			sent = append(sent, string(data))
			return err
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return fmt.Errorf("%s is changed", o.GetName())
		},
	})
	heard := events.NewFakeRecorder(10)
	r.Events = heard
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 1 || len(heard.Events) != 1 {
		t.Fatalf("it wrote %q, with %d events", sent, len(heard.Events))
	}
	for _, part := range []string{hivev1.PoolMissingDependencies, hivev1.ReasonUnreadable, `not reconciled: spec.maxSize: \"x\"`, "kubectl edit clusterpool " + p.Name} {
		if !strings.Contains(sent[0], part) {
			t.Errorf("nothing says %s: %s", part, sent[0])
		}
	}
	if strings.Contains(sent[0], `"spec"`) {
		t.Errorf("it writes %s", sent[0])
	}
}

func TestAnUnreadableClusterIsOfThePoolOnItsLabels(t *testing.T) {
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{hivev1.LabelPoolNamespace: "n", hivev1.LabelPoolName: "p"},
	}}
	if got := poolKeyOf(cd); got.Name != "" {
		t.Errorf("labels alone make it a cluster of %s", got)
	}
	cd.Unreadable = "spec.clusterPoolRef: 1 is not an object"
	if got := poolKeyOf(cd); got != (types.NamespacedName{Namespace: "n", Name: "p"}) {
		t.Errorf("got %s", got)
	}
}
