package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// bareFills is how many clusters the bare loop creates.
const bareFills = 100

// measureBareFill measures a bare loop of the ten writes that a fake cluster takes: its namespace, ClusterDeployment,
// ClusterProvision and four Secrets, a patch of the ClusterDeployment, and two of its status. No controller of hotspare reconciles
// what it creates; the hub adds a ServiceAccount and a ConfigMap to each namespace, as it does for a pool's cluster. Afterwards it deletes all.
func (b *bench) measureBareFill(ctx context.Context, prefix string) (cost, error) {
	if err := b.waitForNoWrites(ctx); err != nil {
		return cost{}, err
	}
	name := func(i int) string { return fmt.Sprintf("%s-%d", prefix, i) }
	spent, err := b.measureCost(ctx, func() error {
		return runConcurrently(bareFills, writers, func(i int) error { return b.writeBareCluster(ctx, name(i)) })
	})
	return spent, errors.Join(err, runConcurrently(bareFills, writers, func(i int) error {
		return b.hub.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name(i)}})
	}))
}

func (b *bench) writeBareCluster(ctx context.Context, name string) error {
	if err := b.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	cd := newIdleCluster(name)
	cd.Namespace = name
	if err := b.hub.Create(ctx, cd); err != nil {
		return err
	}
	meta := func(suffix string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: name, Name: name + suffix} }
	infraID := "bare-" + name
	attempt := &hivev1.ClusterProvision{ObjectMeta: meta("-0"), Spec: hivev1.ClusterProvisionSpec{
		ClusterDeploymentRef: corev1.LocalObjectReference{Name: name}, Stage: hivev1.StageComplete, InfraID: &infraID,
	}}
	if err := b.hub.Create(ctx, attempt); err != nil {
		return err
	}
	for _, suffix := range []string{"-install-config", "-admin-kubeconfig", "-admin-password", "-metadata-json"} {
		if err := b.hub.Create(ctx, &corev1.Secret{ObjectMeta: meta(suffix), Data: map[string][]byte{"content": make([]byte, 300)}}); err != nil {
			return err
		}
	}
	return errors.Join(
		b.hub.Status().Patch(ctx, cd, newMergePatch(`{"status":{"apiURL":"https://%s.example.com:6443"}}`, name)),
		b.hub.Patch(ctx, cd, newMergePatch(`{"metadata":{"annotations":{"installed":"true"}}}`)),
		b.hub.Status().Patch(ctx, cd, newMergePatch(`{"status":{"powerState":"Running"}}`)),
	)
}
