package clusterpool

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

func TestAClaimSaysThatTheHubRefusedItsAssignment(t *testing.T) {
	const policy = "ValidatingAdmissionPolicy 'clusterclaim-namespace.hotspare.io' denied request: leave it out"
	claims := schema.GroupResource{Group: hivev1.GroupVersion.Group, Resource: "clusterclaims"}
	policyErr := apierrors.NewInvalid(schema.GroupKind{Group: claims.Group, Kind: "ClusterClaim"}, "x", nil)
	policyErr.ErrStatus.Message = policy
	for name, tc := range map[string]struct {
		err  error
		want string // in the message of Pending; empty: nothing is said
	}{
		"by an admission policy":       {policyErr, policy},
		"by RBAC":                      {apierrors.NewForbidden(claims, "x", errors.New("no right")), "no right"},
		"a hub that is busy says more": {apierrors.NewTooManyRequests("busy", 1), ""},
		"somebody else wrote":          {apierrors.NewConflict(claims, "x", errors.New("changed")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := hivev1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			claim := &hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
			}
			cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a"}}
			cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p", ClaimName: "x"}
			c := fakeclient.NewClientBuilder().WithScheme(s).WithObjects(claim, cd).WithStatusSubresource(claim).
				WithInterceptorFuncs(interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.err
				}}).Build()
			for _, o := range []client.Object{claim, cd} {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{Client: c, Live: c, Clock: clocktesting.NewFakePassiveClock(noon)}
			seen := &observation{clusters: map[string]*hivev1.ClusterDeployment{"a": cd}, claims: map[string]*hivev1.ClusterClaim{"x": claim}}
			if err := newExecution(r, seen).bindCluster(t.Context(), pool.Step{Verb: pool.Bind, Cluster: "a", Claim: "x"}); !errors.Is(err, tc.err) {
				t.Errorf("the error of the hub is not returned: %v", err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			pending := condition.Find(claim.Status.Conditions, hivev1.ClaimPending)
			switch {
			case tc.want == "" && pending != nil:
				t.Errorf("it says %s: %s", pending.Reason, pending.Message)
			case tc.want != "" && (pending == nil || pending.Reason != hivev1.ReasonAssignmentRefused ||
				!strings.Contains(pending.Message, tc.want) || !strings.Contains(pending.Message, "Cluster a ")):
				t.Errorf("it says %+v, want reason %s and %q", pending, hivev1.ReasonAssignmentRefused, tc.want)
			}
		})
	}
}
