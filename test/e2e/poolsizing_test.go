package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing/record"
)

// recordedPool is the record of a pool whose clusters take half an hour to resume and forty minutes to be
// installed, with three weeks of six claims an hour. With a shorter resume, counts would be smaller, and go down less often.
func recordedPool(t *testing.T, p *hivev1.ClusterPool) *corev1.ConfigMap {
	t.Helper()
	now := time.Now().UTC()
	r := record.Record{Details: record.Details{Since: now.AddDate(0, 0, -21), Until: now}}
	var times []time.Time
	for at := r.Since; at.Before(now); at = at.Add(10 * time.Minute) {
		times = append(times, at)
	}
	r.Demand.AddImported(times, now, now)
	for i := range 100 {
		at := now.Add(-time.Duration(i) * time.Hour)
		name := fmt.Sprint("earlier-", i)
		r.Resumes = append(record.Durations{{Cluster: name, At: at, Seconds: 1800}}, r.Resumes...)
		r.Installs = append(record.Durations{{Cluster: name, At: at, Seconds: 2400}}, r.Installs...)
	}
	claims, details, err := r.Encode(now)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: record.ConfigMapName(p.Name), Labels: map[string]string{v1alpha1.LabelDemandRecord: p.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterPool", Name: p.Name, UID: p.UID}},
		},
		BinaryData: map[string][]byte{record.ClaimsKey: claims}, Data: map[string]string{record.DetailsKey: details},
	}
}

// sizedTo waits until a policy has set a running count that is as wanted, and returns it.
func (h *hub) sizedTo(t *testing.T, p *hivev1.ClusterPool, what string, as func(running int32) bool) int32 {
	t.Helper()
	running := int32(0)
	eventually(t, what, func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if running = p.Spec.RunningCount; p.Annotations[v1alpha1.AnnotationSizing] == "" || !as(running) {
			return fmt.Errorf("it has %s, set by %q", describeCounts(p), p.Annotations[v1alpha1.AnnotationSizing])
		}
		return nil
	})
	return running
}

// sizings returns what events say about the running count of a pool, in the order of time.
func (h *hub) sizings(t *testing.T, p *hivev1.ClusterPool) []string {
	t.Helper()
	var all eventsv1.EventList
	if err := h.List(t.Context(), &all, client.InNamespace(p.Namespace)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all.Items {
		if e.Regarding.Kind == "ClusterPool" && e.Reason == "Sized" && strings.Contains(e.Note, "spec.runningCount") {
			out = append(out, e.Note)
		}
	}
	return out
}

// Sixty claims come within a minute to a pool that is used to six an hour: its running count goes up, and
// when no more come it goes down by one a minute. Events say why.
func TestAPolicyFollowsDemandUpAndDown(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "steps", 12, 2)
	h.create(t, pool)
	h.settled(t, pool)
	h.create(t, recordedPool(t, pool))
	most := int32(60)
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "steps"},
		Spec:       v1alpha1.PoolPolicySpec{Mode: v1alpha1.PolicyAuto, Size: &v1alpha1.CountLimits{Max: &most}},
	}
	h.create(t, policy)
	quiet := h.sizedTo(t, pool, "the policy sets the counts", func(int32) bool { return true })
	for i := range 60 {
		h.create(t, claimOn(pool, fmt.Sprint("burst-", i)))
	}
	busy := h.sizedTo(t, pool, "the running count goes up", func(n int32) bool { return n >= quiet+4 })
	idle(func() {
		h.sizedTo(t, pool, "the running count goes down", func(n int32) bool {
			busy = max(busy, n)
			return n < busy
		})
	})
	// About thirty claims an hour are expected after sixty: fifteen within a resume. One burst is no reason for sixty clusters.
	if busy > 50 {
		t.Errorf("%d run", busy)
	}
	var said []string
	eventually(t, "events say why", func(context.Context) error { // they are written after the counts
		said = h.sizings(t, pool)
		if up, down := directionsExplained(said); !up || !down {
			return fmt.Errorf("events say:\n%s", strings.Join(said, "\n"))
		}
		return nil
	})
	t.Logf("%d running at first, %d at most:\n%s", quiet, busy, strings.Join(said, "\n"))
}

// directionsExplained reports whether notes of events explain a step up of a running count, and a small step down.
func directionsExplained(notes []string) (up, down bool) {
	for _, note := range notes {
		up = up || strings.Contains(note, "claims an hour expected, a resume takes 30 min: ")
		var from, to int
		if _, after, found := strings.Cut(note, "spec.runningCount from "); found {
			_, err := fmt.Sscanf(after, "%d to %d:", &from, &to)
			down = down || err == nil && to < from && to >= from-2 && strings.Contains(note, "claims an hour expected")
		}
	}
	return up, down
}
