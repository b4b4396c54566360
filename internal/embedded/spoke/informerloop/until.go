package informerloop

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// RetryUntilSuccess calls f immediately and then after each interval until it succeeds, and logs
// each error. It returns an error only if ctx ends first.
func RetryUntilSuccess(ctx context.Context, interval time.Duration, f func(context.Context) error) error {
	return wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "will retry")
		}
		return err == nil, nil
	})
}
