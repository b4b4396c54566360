package clusterclaim

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// The API server refuses every status of a claim in which a field with a validation rule has a
// value of another type. An event says so, because no condition can.
func TestAnEventReportsAClaimWhoseConditionsAreRefused(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := hivev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ unreadable, want string }{
		"a field that cannot be read": {"spec.lifetime: 9 is not a string", "Warning Unreadable The claim cannot be served: spec.lifetime: 9 is not a string: correct it"},
		"another reason":              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
			}
			refused := interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if read, ok := o.(*hivev1.ClusterClaim); ok {
						read.Unreadable = tc.unreadable
					}
					return err
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return apierrors.NewInvalid(hivev1.GroupVersion.WithKind("ClusterClaim").GroupKind(), "x", nil)
				},
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(claim).WithObjects(claim).WithInterceptorFuncs(refused).Build()
			recorded := events.NewFakeRecorder(10)
			now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			r := &Reconciler{Client: c, Live: c, Clock: now, Events: recorded}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); !apierrors.IsInvalid(err) {
				t.Errorf("Reconcile returned %v, which is not what the API server said", err)
			}
			got := ""
			if len(recorded.Events) > 0 {
				got = <-recorded.Events
			}
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("event %q, want %q", got, tc.want)
			}
		})
	}
}
