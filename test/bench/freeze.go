package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// freezes is how often a cluster is frozen and thawed; the table has the median.
const freezes = 5

// measureFreeze measures a freeze and a thaw of the claimed cluster.
func (b *bench) measureFreeze(ctx context.Context) ([]row, error) {
	if err := b.waitForReady(ctx, "local", 1); err != nil { // the replacement has been created: the machine is idle
		return nil, err
	}
	cd, err := b.getClaimedCluster(ctx, "one")
	if err != nil {
		return nil, err
	}
	api, err := b.newSpokeClient(ctx, cd)
	if err != nil {
		return nil, err
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hivev1.AnnotationSleepDepth, hivev1.DepthFreeze))
	if err := b.hub.Patch(ctx, cd, patch); err != nil {
		return nil, err
	}
	var asleep, answered, awake []time.Duration
	for range freezes {
		down, err := b.switchPower(ctx, hivev1.PowerHibernating)
		if err != nil {
			return nil, err
		}
		asleep = append(asleep, down)
		answer := make(chan time.Duration, 1)
		go func() { answer <- timeAnswer(ctx, api) }()
		up, err := b.switchPower(ctx, hivev1.PowerRunning)
		if err != nil {
			return nil, err
		}
		answered, awake = append(answered, <-answer), append(awake, up)
	}
	return []row{
		{"local cluster, running to frozen", formatMillis(median(asleep)), ""},
		{"local cluster, frozen to the first answer of its API", formatMillis(median(answered)), "< 300 ms"},
		{"local cluster, frozen to usable", formatSeconds(median(awake)), ""},
	}, nil
}

// timeAnswer returns how long it takes until the API says that it is ready.
func timeAnswer(ctx context.Context, api kubernetes.Interface) time.Duration {
	began := time.Now()
	_ = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) { // the caller sees when it takes too long
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return api.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	return time.Since(began)
}

// newSpokeClient returns a client of a cluster's API, with the kubeconfig that the claim's user gets.
func (b *bench) newSpokeClient(ctx context.Context, cd *hivev1.ClusterDeployment) (kubernetes.Interface, error) {
	var secret corev1.Secret
	if err := b.hub.Get(ctx, types.NamespacedName{Namespace: cd.Name, Name: cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name}, &secret); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[hivev1.SecretKeyKubeconfig])
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}

// median returns the median of durations.
func median(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
