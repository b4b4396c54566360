package cli

import (
	"context"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// served serves a claim with a cluster right after it has been seen to wait, so
// that only the watch can tell of it.
func served(t *testing.T, cluster string) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if claim, ok := o.(*hivev1.ClusterClaim); ok && err == nil && claim.Spec.Namespace == "" {
				bind(t, c, claim.DeepCopy(), cluster)
			}
			return err
		},
	}
}

func bind(t *testing.T, c client.Client, claim *hivev1.ClusterClaim, cluster string) {
	t.Helper()
	write := func(w func(*hivev1.ClusterClaim) error) error { // a heartbeat may come in between
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				return err
			}
			serve(claim, cluster)
			return w(claim)
		})
	}
	err := write(func(claim *hivev1.ClusterClaim) error { return c.Update(t.Context(), claim) })
	if err == nil {
		err = write(func(claim *hivev1.ClusterClaim) error { return c.Status().Update(t.Context(), claim) })
	}
	if err != nil {
		t.Error(err)
	}
}

func TestWaitSeesTheClaimServed(t *testing.T) {
	r := newRig(t, served(t, "dev-2bbbb"), world()...)
	compare(t, "claim-create-wait", transcript(r, []string{
		"claim create dev --name x --wait", "claim create dev --name y --wait -o name",
	}))
}

func TestWaitOnATerminalIsOneLine(t *testing.T) {
	r := newRig(t, served(t, "dev-2bbbb"), world()...)
	r.terminal = true
	if code := r.run("claim", "create", "dev", "--name", "x", "--wait"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	got := r.stderr.String()
	if strings.Contains(got, "\n") || !strings.HasPrefix(got, base.EraseLine+"claim x: Waiting, 0s") || !strings.HasSuffix(got, base.EraseLine) {
		t.Errorf("terminal shows %q", got)
	}
}

func TestWaitThatTimesOut(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, world()...)
	compare(t, "claim-create-timeout", transcript(r, []string{"claim create dev --name x --wait --timeout 1ms", "claim list -o name"}))
}

func TestWaitEndsWhenTheClaimIsDeleted(t *testing.T) {
	r := newRig(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if claim, ok := o.(*hivev1.ClusterClaim); ok && err == nil {
				return c.Delete(ctx, claim.DeepCopy())
			}
			return err
		},
	}, world()...)
	compare(t, "claim-create-deleted", transcript(r, []string{"claim create dev --name x --wait"}))
}

func TestWaitSurvivesARestartedHub(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:36443", Err: syscall.ECONNREFUSED}
	opened := 0
	with := served(t, "dev-2bbbb")
	get := with.Get
	with.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ok := o.(*hivev1.ClusterClaim); ok && opened < 5 {
			return c.Get(ctx, key, o, opts...) // not served yet
		}
		return get(ctx, c, key, o, opts...)
	}
	with.Watch = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
		opened++
		broken := watch.NewFakeWithChanSize(1, false)
		switch opened {
		case 1: // the connection breaks
			broken.Stop()
			return broken, nil
		case 2: // nothing listens
			return nil, refused
		case 3: // it is back, and does not know anybody's rights yet
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clusterclaims"}, "", nil)
		case 4: // it has forgotten where the watch was
			broken.Error(nil)
			return broken, nil
		default:
			return c.Watch(ctx, list, opts...)
		}
	}
	r := newRig(t, with, world()...)
	if code := r.run("claim", "create", "dev", "--name", "x", "--wait"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	if opened != 5 {
		t.Errorf("watch opened %d times, want 5", opened)
	}
}

func TestWaitForReleaseAndResume(t *testing.T) {
	r := newRig(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if cd, ok := o.(*hivev1.ClusterDeployment); ok && cd.Spec.PowerState == hivev1.PowerRunning && cd.Status.PowerState != hivev1.StatusRunning {
				awake := cd.DeepCopy()
				awake.Status.PowerState = hivev1.StatusRunning
				if err := c.Status().Update(ctx, awake); err != nil {
					t.Error(err)
				}
			}
			return err
		},
	}, append(world(), claimOn("dev", "carol", "dev-5eeee"), newCluster("dev-5eeee", "carol", hivev1.PowerHibernating, hivev1.StatusHibernating))...)
	compare(t, "wait-release-resume", transcript(r, []string{
		"cluster resume carol --wait", "claim release carol --wait", "cluster resume alice --wait",
	}))
}
