package provision

import (
	"context"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// blurred reads objects as if not all of them could be read.
type blurred struct {
	client.Client
	cluster, imageSet, attempts string
}

func (b blurred) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := b.Client.Get(ctx, key, o, opts...)
	switch o := o.(type) {
	case *hivev1.ClusterDeployment:
		o.Unreadable = b.cluster
	case *hivev1.ClusterImageSet:
		o.Unreadable = b.imageSet
	}
	return err
}

func (b blurred) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	err := b.Client.List(ctx, l, opts...)
	if all, is := l.(*hivev1.ClusterProvisionList); is {
		for i := range all.Items {
			all.Items[i].Unreadable = b.attempts
		}
	}
	return err
}

func TestWhatCouldNotBeReadIsNotActedOn(t *testing.T) {
	for name, tt := range map[string]struct {
		blur blurred
		says string
	}{
		"a cluster is left alone, and says why": {blurred{cluster: "spec.platform: 7 is not an object"}, ""},
		"an image set is an error":              {blurred{imageSet: "spec.releaseImage: 7 is not a string"}, "ClusterImageSet v4: spec.releaseImage: 7 is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, request()...)
			w.catchUp()
			r := w.reconciler()
			tt.blur.Client = r.Client
			r.Client = tt.blur
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("it says %v, want %q", err, tt.says)
			}
			wantEqual(t, 0, w.lab.prepared)
			if tt.says == "" {
				wantEqual(t, true, strings.Contains(<-w.events, tt.blur.cluster))
			}
		})
	}
	t.Run("an attempt is an error", func(t *testing.T) {
		w := newWorld(t, request()...)
		w.drive("installed", w.installed)
		w.catchUp()
		r := w.reconciler()
		r.Client = blurred{Client: r.Client, attempts: "spec.attempt: x"}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil || !strings.Contains(err.Error(), "spec.attempt: x") {
			t.Errorf("it says %v", err)
		}
	})
}
