package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// sizedBy waits until a policy reports a reason why its counts are applied or not.
func (h *hub) sizedBy(t *testing.T, p *v1alpha1.PoolPolicy, reason string) string {
	t.Helper()
	message := ""
	eventually(t, "policy "+p.Name+" is "+reason, func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyApplied)
		if c == nil || c.Reason != reason || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("it is %+v", c)
		}
		message = c.Message
		return nil
	})
	return message
}

func describeCounts(p *hivev1.ClusterPool) string {
	return fmt.Sprintf("%d of %d", p.Spec.RunningCount, p.Spec.Size)
}

// zoneAtNoon returns the name of a time zone in which it is about noon: a change by hand ends at midnight.
func zoneAtNoon() string { return fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12) }

// A policy sets the counts, keeps a change by hand and who has made it, and ends it on request; the claims
// are recorded. An API server refuses what the schema refuses, and those who may not change the pool.
func TestAPolicySetsTheCountsOfAPool(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "dev", 3, 1)
	h.create(t, pool)
	h.settled(t, pool)
	mine := claimOn(pool, "mine")
	h.create(t, mine)
	h.served(t, mine)
	most := int32(2)
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dev"},
		Spec:       v1alpha1.PoolPolicySpec{Mode: v1alpha1.PolicyAuto, TimeZone: zoneAtNoon()},
	}
	if err := h.Create(t.Context(), policy); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "mode Auto needs size.max") {
		t.Fatalf("a policy without a limit: %v", err)
	}
	policy.Spec.Size = &v1alpha1.CountLimits{Max: &most}
	h.kubectl(t, "create", "role", "policies", "-n", ns, "--verb=*", "--resource=poolpolicies.hotspare.io")
	h.kubectl(t, "create", "rolebinding", "policies", "-n", ns, "--role=policies", "--user=bob")
	person{h, "bob"}.may(t, "get", "poolpolicies", "-n", ns) // the API server has read his rights
	for mode, refusal := range map[v1alpha1.PolicyMode]string{v1alpha1.PolicyAuto: "ask somebody who may patch the pool", v1alpha1.PolicyRecommend: ""} {
		manifest := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"PoolPolicy","metadata":{"name":"dev","namespace":%q},"spec":{"mode":%q,"size":{"max":2}}}`, ns, mode)
		r := h.run(t, manifest, "kubectl", "--as", "bob", "create", "--dry-run=server", "-f", "-")
		if (r.code != 0) != (refusal != "") || !strings.Contains(r.all(), refusal) {
			t.Errorf("somebody who may not change the pool creates a policy in mode %s: %s", mode, r.all())
		}
	}
	h.create(t, policy)
	h.sizedBy(t, policy, v1alpha1.ReasonApplied)
	if got := describeCounts(get(t, h, pool)); got != "1 of 2" {
		t.Errorf("the pool has %s, want 1 of 2: the limit", got)
	}
	var record corev1.ConfigMap
	eventually(t, "the claim is recorded", func(ctx context.Context) error {
		return h.Get(ctx, client.ObjectKey{Namespace: ns, Name: "dev.demand"}, &record)
	})
	if n := policy.Status.Record.Claims; n != 1 || record.Labels[v1alpha1.LabelDemandRecord] != "dev" {
		t.Errorf("%d claims in %+v", n, record.ObjectMeta)
	}

	h.kubectl(t, "patch", "clusterpool", "dev", "-n", ns, "--type=merge", "-p", `{"spec":{"runningCount":2}}`)
	said := h.sizedBy(t, policy, v1alpha1.ReasonManualChange)
	says(t, said, "by kubectl-patch", "midnight in "+policy.Spec.TimeZone)
	if by := policy.Status.ManualChange.By; by != "kubectl-patch" {
		t.Errorf("%q has made the change", by)
	}
	h.kubectl(t, "annotate", "-n", ns, "poolpolicy", "dev", v1alpha1.AnnotationResumeSizing+"=") // the condition says so
	h.sizedBy(t, policy, v1alpha1.ReasonApplied)
	if policy.Status.ManualChange != nil || len(policy.Annotations) > 0 {
		t.Errorf("the change has not ended: %+v, %v", policy.Status.ManualChange, policy.Annotations)
	}
	says(t, h.hotspare(t, "-n", ns, "explain", "pool", "dev"), "Policy", "Auto: sets 2 running of 2")
	says(t, h.hotspare(t, "-n", ns, "simulate", "--from-hub", "dev", "--no-hindsight"), "1 claims", "auto", "99% of the claims get a running cluster at once")
	h.kubectl(t, "patch", "poolpolicy", "dev", "-n", ns, "--type=merge", "-p", `{"spec":{"objective":{"maxWait":"2m","quantile":"95%"},"prices":{"running":"1.5"}}}`)
	says(t, h.hotspare(t, "-n", ns, "simulate", "--from-hub", "dev", "--no-hindsight"), "95% of the claims wait at most 2m0s", "COST")
	says(t, h.hotspare(t, "-n", ns, "simulate", "--from-hub", "dev", "--no-hindsight", "--at-once", "90"), "90% of the claims get a running cluster at once")
}
