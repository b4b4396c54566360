package loop

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// RetryUntilSuccess calls f until it succeeds, at once and then after each interval, and logs
// why it did not. It returns an error only if ctx ends before.
func RetryUntilSuccess(ctx context.Context, interval time.Duration, f func(context.Context) error) error {
	return wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "will retry")
		}
		return err == nil, nil
	})
}
