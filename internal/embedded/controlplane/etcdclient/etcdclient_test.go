package etcdclient

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/utils/clock"
)

const valuePrefix = "test!"

var codec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
}()

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

// startServer starts an etcd on the data in dir.
func startServer(t *testing.T, dir string) *embed.Etcd {
	t.Helper()
	sockets := t.TempDir()
	c := embed.NewConfig()
	c.Dir = dir
	c.UnsafeNoFsync = true // these tests do not end the computer
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(sockets, "c")}}
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(sockets, "p")}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd did not start")
	}
	return e
}

// newEnvironment starts an etcd.
func newEnvironment(t *testing.T, prefix string) environment {
	t.Helper()
	client := New(startServer(t, t.TempDir()).Server)
	t.Cleanup(func() { _ = client.Close() })
	compactor := etcd3.NewCompactor(client.Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	leases := etcd3.NewDefaultLeaseManagerConfig()
	leases.ReuseDurationSeconds = 1
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(client, compactor, codec, newPod, newPodList, "", prefix, schema.GroupResource{Resource: "pods"},
		storagetesting.NewPrefixTransformer([]byte(valuePrefix), false), leases, etcd3.NewDefaultDecoder(codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return environment{store, client}
}

// An environment is the API server's store of pods in an etcd, and the client that it uses.
type environment struct {
	storage.Interface
	client *kubernetes.Client
}

// needsNewStore has the tests that compact the store, and those that expect all of its history.
var needsNewStore = map[string]bool{
	"list pages that were compacted": true, "watch from the beginning": true, "watch with initial events": true, "watch with initial events, extended": true,
}

// TestStorage runs the tests of Kubernetes' own store with a client without a connection.
func TestStorage(t *testing.T) {
	shared := newEnvironment(t, "/pods/")
	increase := func(e environment) storagetesting.IncreaseRVFunc {
		return func(ctx context.Context, t *testing.T) int64 {
			r, err := e.client.Put(ctx, "increase", "ok")
			if err != nil {
				t.Fatal(err)
			}
			return r.Header.Revision
		}
	}
	compact := func(e environment) storagetesting.Compaction {
		return func(ctx context.Context, t *testing.T, version string) {
			revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(version)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := etcd3.Compact(ctx, e.client.Client, 0, int64(revision)); err != nil {
				t.Fatal(err)
			}
		}
	}
	isStored := func(e environment) storagetesting.KeyValidation {
		return func(ctx context.Context, t *testing.T, key string) {
			if r, err := e.client.KV.Get(ctx, key); err != nil || len(r.Kvs) != 1 {
				t.Errorf("%s: %v, %v", key, r, err)
			}
		}
	}
	alone := func(run func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, environment) {
		return func(ctx context.Context, t *testing.T, e environment) { run(ctx, t, e.Interface) }
	}
	for name, run := range map[string]func(context.Context, *testing.T, environment){
		"create": func(ctx context.Context, t *testing.T, e environment) {
			storagetesting.RunTestCreate(ctx, t, e, isStored(e))
		},
		"create with a time to live": alone(storagetesting.RunTestCreateWithTTL),
		"create twice":               alone(storagetesting.RunTestCreateWithKeyExist),
		"get":                        alone(storagetesting.RunTestGet),
		"delete":                     alone(storagetesting.RunTestUnconditionalDelete),
		"delete on a condition":      alone(storagetesting.RunTestConditionalDelete),
		"delete with a conflict":     alone(storagetesting.RunTestDeleteWithConflict),
		"delete what was deleted":    alone(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		"update with a conflict":     alone(storagetesting.RunTestGuaranteedUpdateWithConflict),
		"update with an old copy":    alone(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		"list pages":                 alone(storagetesting.RunTestListPaging),
		"list a prefix":              alone(storagetesting.RunTestGetListRecursivePrefix),
		"list a namespace":           alone(storagetesting.RunTestNamespaceScopedList),
		"list one object": func(ctx context.Context, t *testing.T, e environment) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, increase(e), e)
		},
		"list consistently": func(ctx context.Context, t *testing.T, e environment) {
			storagetesting.RunTestConsistentList(ctx, t, e, increase(e), false, true, false)
		},
		"list pages that were compacted": func(ctx context.Context, t *testing.T, e environment) {
			storagetesting.RunTestListInconsistentContinuation(ctx, t, e, compact(e))
		},
		"watch":                        alone(storagetesting.RunTestWatch),
		"watch a namespace":            alone(storagetesting.RunTestNamespaceScopedWatch),
		"watch cluster-scoped objects": alone(storagetesting.RunTestClusterScopedWatch),
		"watch from the beginning": func(ctx context.Context, t *testing.T, e environment) {
			storagetesting.RunTestWatchFromZero(ctx, t, e, compact(e))
		},
		"watch from a version":                alone(storagetesting.RunTestWatchFromNonZero),
		"watch deletions":                     alone(storagetesting.RunTestDeleteTriggerWatch),
		"watch the version of a deletion":     alone(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		"watch late":                          alone(storagetesting.RunTestDelayedWatchDelivery),
		"watch until canceled":                alone(storagetesting.RunTestWatchContextCancel),
		"watch until the limit":               alone(storagetesting.RunTestWatcherTimeout),
		"watch with initial events":           alone(storagetesting.RunWatchSemantics),
		"watch with initial events, extended": alone(storagetesting.RunWatchSemanticInitialEventsExtended),
		"watch and know when it is complete":  alone(storagetesting.RunTestWatchInitializationSignal),
	} {
		t.Run(name, func(t *testing.T) {
			e := shared
			if needsNewStore[name] {
				e = newEnvironment(t, "/pods/")
			}
			if _, err := e.client.Delete(t.Context(), "/pods/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			run(t.Context(), t, e)
		})
	}
}

// Two ends that send at the same time must not wait for each other, however many watches one stream has.
func TestWatchesThatBeginAndEndDuringEvents(t *testing.T) {
	client := New(startServer(t, t.TempDir()).Server)
	writes, stopWrites := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for writes.Err() == nil {
			if _, err := client.Put(t.Context(), "a", "b"); err != nil {
				t.Error(err)
			}
		}
	})
	var watchers sync.WaitGroup
	for range 8 {
		watchers.Go(func() {
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				watch := client.Watch(ctx, "a")
				if answer, open := <-watch; !open || answer.Err() != nil {
					t.Errorf("the watch ended: %v", answer.Err())
				}
				cancel()
			}
		})
	}
	watchers.Wait()
	stopWrites()
	writer.Wait()
}

// The API server must get the client from Use, also where nothing listens at the URL of etcd, and ask etcd how far
// watches are: else, it reads lists from etcd instead of from memory.
func TestAnAPIServerNeedsNoConnection(t *testing.T) {
	Use(t.Context(), startServer(t, t.TempDir()).Server, "unix:///nothing/listens/here")
	config := storagebackend.NewDefaultConfig("/registry", codec)
	config.Transport.ServerList = []string{"unix:///nothing/listens/here"}
	store, destroy, err := factory.Create(*config.ForResource(schema.GroupResource{Resource: "pods"}), newPod, newPodList, "/pods/")
	if err != nil {
		t.Fatal(err)
	}
	defer destroy()
	stored := &example.Pod{}
	if err := store.Create(t.Context(), "/pods/default/a", &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}, stored, 0); err != nil {
		t.Fatal(err)
	}
	if err := store.RequestWatchProgress(t.Context()); err != nil {
		t.Error(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return feature.DefaultFeatureSupportChecker.Supports(storage.RequestWatchProgress), nil
	})
	if err != nil {
		t.Fatalf("the API server does not know that this etcd reports the progress of watches: %v", err)
	}
	monitor, err := factory.CreateMonitor(*config)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := monitor.Monitor(t.Context()); err != nil || m.Size <= 0 {
		t.Errorf("the size of the database is %d, %v", m.Size, err)
	}
}

// Errors must be those that the API server knows from a client with a connection.
func TestErrors(t *testing.T) {
	server := startServer(t, t.TempDir())
	client := New(server.Server)
	ctx := t.Context()
	if _, err := client.Put(ctx, "a", strings.Repeat("x", 2<<20)); !errors.Is(err, rpctypes.ErrRequestTooLarge) {
		t.Errorf("a large object: %v", err)
	}
	for _, value := range []string{"1", "2"} {
		if _, err := client.Put(ctx, "a", value); err != nil {
			t.Fatal(err)
		}
	}
	r, err := client.KV.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(ctx, r.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := client.KV.Get(ctx, "a", clientv3.WithRev(r.Header.Revision-1)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a revision that was compacted: %v", err)
	}
	if _, err := client.KV.Get(ctx, "a", clientv3.WithRev(r.Header.Revision+1)); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("a revision of the future: %v", err)
	}
	for answer := range client.Watch(ctx, "a", clientv3.WithRev(r.Header.Revision-1)) {
		if !errors.Is(answer.Err(), rpctypes.ErrCompacted) || answer.CompactRevision != r.Header.Revision {
			t.Errorf("a watch from a revision that was compacted: %v, compacted at %d", answer.Err(), answer.CompactRevision)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := client.KV.Get(canceled, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled read: %v", err)
	}
	server.Server.Stop()
	if _, err := client.Put(ctx, "a", "3"); err == nil {
		t.Error("a write to a server that has stopped succeeded")
	}
}
