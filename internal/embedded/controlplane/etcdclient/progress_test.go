package etcdclient

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	clocktesting "k8s.io/utils/clock/testing"
)

// The cache asks etcd for its progress when its clock says so, which this test does itself, for the first list only.
func TestAConsistentListDoesNotWaitForTheClock(t *testing.T) {
	for _, prefix := range []string{"/pods/", "/pods"} { // an API server has the second
		t.Run(prefix, func(t *testing.T) { checkConsistentLists(t, prefix) })
	}
}

func checkConsistentLists(t *testing.T, prefix string) {
	e := newEnvironment(t, prefix)
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: e.Interface, Versioner: storage.APIObjectVersioner{}, GroupResource: schema.GroupResource{Resource: "pods"},
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: prefix,
		KeyFunc: func(o runtime.Object) (string, error) { return "/pods/default/" + o.(*example.Pod).Name, nil },
		GetAttrsFunc: func(o runtime.Object) (labels.Set, fields.Set, error) {
			return labels.Set{}, fields.Set{"metadata.name": o.(*example.Pod).Name}, nil
		},
		NewFunc: newPod, NewListFunc: newPodList, Codec: codec, Clock: clocktesting.NewFakeClock(time.Now()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cached.Stop)
	if err := cached.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	if err := e.Create(t.Context(), "/pods/default/a", pod, nil, 0); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		if _, err := e.client.Put(t.Context(), "/nodes/a", "a write of another kind"); err != nil {
			t.Fatal(err)
		}
		listed := make(chan error, 1)
		var list example.PodList
		go func() {
			listed <- cached.GetList(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, &list)
		}()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			// The cache asks for the first list when its clock says so; etcd does not answer while the new watch catches up.
			if n == 0 {
				if err := e.RequestWatchProgress(t.Context()); err != nil {
					return false, err
				}
			}
			select {
			case err := <-listed:
				return true, err
			default:
				return false, nil
			}
		})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("list %d has %d pods, want one: %v", n, len(list.Items), err)
		}
	}
}

// A watch that goes to the store must not get the progress of a cache that does not exist.
func TestNoProgressIsSentBeforeTheAPIServerAsks(t *testing.T) {
	client := newEnvironment(t, "/pods/").client
	events := client.Watch(clientv3.WithRequireLeader(t.Context()), "/events/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if r := <-events; !r.Created {
		t.Fatalf("the watch begins with %v", r)
	}
	if _, err := client.Kubernetes.Get(t.Context(), "/events", kubernetes.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), "/events/a", "an event"); err != nil {
		t.Fatal(err)
	}
	if r := <-events; len(r.Events) != 1 {
		t.Errorf("the watch has %v, want the event", r)
	}
}
