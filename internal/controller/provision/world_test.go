package provision

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/metrics"
)

// key is the one cluster of a world.
var key = types.NamespacedName{Namespace: "ns", Name: "c1"}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is an API server with a cache in front of it, as informers are: kind by
// kind, it shows an earlier state, and never goes back. A process that works
// with it can be made to die right after any write.
type world struct {
	globalPullSecret types.NamespacedName
	// certificateAuthorities are Secrets that the executors read.
	certificateAuthorities []types.NamespacedName
	t                      *testing.T
	live                   client.WithWatch
	cache                  map[string]map[types.NamespacedName]client.Object
	clock                  *clocktesting.FakeClock
	lab                    *lab
	// storesBundles is set if bundles of diagnostics are stored.
	storesBundles bool
	// lag decides which kinds stay behind; nil: none does.
	lag *rand.Rand
	// crashAt is the write after which the process dies; 0: never.
	crashAt int
	writes  []string
	// events are the recorded events.
	events chan string
	// metrics count; nil counts nothing.
	metrics *metrics.Metrics
}

// crashed is what a dying process panics with.
type crashed struct{}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hivev1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{
		t:      t,
		cache:  map[string]map[types.NamespacedName]client.Object{},
		clock:  clocktesting.NewFakeClock(epoch),
		events: make(chan string, 1000),
		live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&hivev1.ClusterDeployment{}, &hivev1.ClusterProvision{}, &hivev1.ClusterDeprovision{}).
			Build(),
	}
	w.lab = newLab(w)
	return w
}

// reconciler is a process's, fresh from its start.
func (w *world) reconciler() *Reconciler {
	return &Reconciler{
		GlobalPullSecret:       w.globalPullSecret,
		CertificateAuthorities: w.certificateAuthorities,
		Client:                 interceptor.NewClient(w.live, w.funcs()),
		Live:                   w.live,
		Executors:              install.Registry{"aws": w.lab},
		Fake:                   w.lab,
		Clock:                  w.clock,
		Events:                 &events.FakeRecorder{Events: w.events},
		Metrics:                w.metrics,
		StoresBundles:          w.storesBundles,
	}
}

func (w *world) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			return w.get(key, obj)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return w.list(list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			obj.SetGeneration(1)
			return w.wrote("create", obj, c.Create(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.wrote("patch", obj, c.Patch(ctx, obj, p, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return w.wrote("delete", obj, c.Delete(ctx, obj, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, _ string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.wrote("report", obj, c.Status().Patch(ctx, obj, p, opts...))
		},
	}
}

// wrote counts a write, checks what must hold after each one, and dies if it is time.
func (w *world) wrote(verb string, obj client.Object, err error) error {
	if err != nil {
		return err
	}
	w.writes = append(w.writes, fmt.Sprintf("%s %s %s", verb, strings.TrimPrefix(kindOf(obj), "Cluster"), obj.GetName()))
	w.check()
	if len(w.writes) == w.crashAt {
		panic(crashed{})
	}
	return nil
}

// check holds the promise to clients: an installed cluster has its Secrets.
func (w *world) check() {
	w.t.Helper()
	cd := w.cluster()
	if cd == nil || !cd.Spec.Installed {
		return
	}
	names := []string{cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name, cd.Spec.ClusterMetadata.AdminPasswordSecretRef.Name}
	if ref := cd.Spec.ClusterMetadata.MetadataJSONSecretRef; ref != nil && !isDeleting(cd) {
		names = append(names, ref.Name)
	}
	for _, name := range names {
		var secret corev1.Secret
		if err := w.live.Get(w.t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &secret); err != nil {
			w.t.Errorf("the cluster is installed before its Secret is there: %v", err)
		}
	}
}

// pass makes one pass of a fresh process, which may die in it.
func (w *world) pass() (res ctrl.Result, err error) {
	defer func() {
		switch cause := recover(); cause.(type) {
		case nil, crashed:
		default:
			panic(cause)
		}
	}()
	w.catchUp()
	return w.reconciler().Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
}

// drive makes passes, each when the last one wanted it, until done.
func (w *world) drive(what string, done func() bool) {
	w.t.Helper()
	for range 400 {
		if done() {
			return
		}
		res, err := w.pass()
		if err != nil {
			w.t.Logf("pass: %v", err)
		}
		w.clock.Step(max(res.RequeueAfter, time.Second))
	}
	w.t.Fatalf("never %s; writes:\n%s\ncluster: %+v", what, strings.Join(w.writes, "\n"), w.cluster())
}

// cached are the kinds that are read from the cache.
func cached() []client.ObjectList {
	return []client.ObjectList{
		&hivev1.ClusterDeploymentList{}, &hivev1.ClusterProvisionList{},
		&hivev1.ClusterClaimList{}, &hivev1.ClusterDeprovisionList{}, &hivev1.ClusterImageSetList{}, &hivev1.ClusterDeploymentCustomizationList{},
	}
}

// catchUp brings the cache of each kind to the present, or leaves it behind.
func (w *world) catchUp() {
	for _, list := range cached() {
		kind := kindOf(list)
		if w.lag != nil && w.cache[kind] != nil && w.lag.IntN(2) == 0 {
			continue
		}
		if err := w.live.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			w.t.Fatal(err)
		}
		w.cache[kind] = map[types.NamespacedName]client.Object{}
		for _, item := range items {
			obj := item.(client.Object)
			w.cache[kind][client.ObjectKeyFromObject(obj)] = obj
		}
	}
}

func (w *world) get(key client.ObjectKey, into client.Object) error {
	found, ok := w.cache[kindOf(into)][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kindOf(into)}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (w *world) list(into client.ObjectList, opts ...client.ListOption) error {
	var by client.ListOptions
	by.ApplyOptions(opts)
	var found []runtime.Object
	for _, obj := range w.cache[kindOf(into)] {
		inNamespace := by.Namespace == "" || obj.GetNamespace() == by.Namespace
		matches := by.LabelSelector == nil || by.LabelSelector.Matches(labelSet(obj.GetLabels()))
		if inNamespace && matches {
			found = append(found, obj.DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}

type labelSet map[string]string

func (l labelSet) Has(k string) bool              { _, ok := l[k]; return ok }
func (l labelSet) Get(k string) string            { return l[k] }
func (l labelSet) Lookup(k string) (string, bool) { v, ok := l[k]; return v, ok }

func kindOf(obj runtime.Object) string {
	return strings.TrimSuffix(reflect.TypeOf(obj).Elem().Name(), "List")
}

// cluster is the cluster as stored, or nil.
func (w *world) cluster() *hivev1.ClusterDeployment {
	w.t.Helper()
	var cd hivev1.ClusterDeployment
	err := w.live.Get(w.t.Context(), key, &cd)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return &cd
}

// attempts are the ClusterProvisions as stored, by number.
func (w *world) attempts() map[int]hivev1.ClusterProvision {
	w.t.Helper()
	var list hivev1.ClusterProvisionList
	if err := w.live.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	found := map[int]hivev1.ClusterProvision{}
	for _, cp := range list.Items {
		if _, twice := found[cp.Spec.Attempt]; twice {
			w.t.Errorf("attempt %d was recorded twice", cp.Spec.Attempt)
		}
		found[cp.Spec.Attempt] = cp
	}
	return found
}

// edit changes the stored cluster, as a user does.
func (w *world) edit(change func(*hivev1.ClusterDeployment)) {
	w.t.Helper()
	cd := w.cluster()
	change(cd)
	if err := w.live.Update(w.t.Context(), cd); err != nil {
		w.t.Fatal(err)
	}
}

// delete deletes the cluster, as a user does.
func (w *world) delete() {
	w.t.Helper()
	if cd := w.cluster(); cd != nil {
		if err := w.live.Delete(w.t.Context(), cd); err != nil {
			w.t.Fatal(err)
		}
	}
}

// told returns the events since it was last called.
func (w *world) told() []string {
	var all []string
	for {
		select {
		case e := <-w.events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (w *world) gone() bool { return w.cluster() == nil }

// installed reports whether the cluster is installed and its attempt was completed.
func (w *world) installed() bool {
	cd := w.cluster()
	if cd == nil || !cd.Spec.Installed || cd.Status.InstalledTimestamp == nil {
		return false
	}
	attempts := w.attempts()
	last := attempts[slices.Max(slices.Collect(maps.Keys(attempts)))]
	return last.Spec.Stage == hivev1.StageComplete
}

// request is a cluster to install, with all it needs.
func request(edits ...func(*hivev1.ClusterDeployment)) []client.Object {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, UID: "uid-1", CreationTimestamp: metav1.NewTime(epoch.Add(-time.Hour)),
		},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName:   "c1",
			BaseDomain:    "example.com",
			Platform:      hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1"}`)}},
			PullSecretRef: &corev1.LocalObjectReference{Name: "pull"},
			Provisioning: &hivev1.Provisioning{
				ImageSetRef:            &hivev1.ClusterImageSetReference{Name: "v4"},
				InstallConfigSecretRef: &corev1.LocalObjectReference{Name: "config"},
			},
		},
	}
	for _, edit := range edits {
		edit(cd)
	}
	return []client.Object{cd, imageSet(), pullSecret(), installConfig("c1")}
}

func imageSet() client.Object {
	return &hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: "v4"},
		Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/ocp-release:4.18.20-x86_64"},
	}
}

func pullSecret() client.Object {
	return secret("pull", hivev1.SecretKeyPullSecret, `{"auths":{"quay.io":{"auth":"hunter2"}}}`)
}

func installConfig(name string) client.Object {
	return secret("config", hivev1.SecretKeyInstallConfig,
		"baseDomain: example.com\nmetadata: {name: "+name+"}\nplatform: {aws: {region: us-east-1}}\n")
}

func secret(name, key, value string) client.Object {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Data:       map[string][]byte{key: []byte(value)},
	}
}
