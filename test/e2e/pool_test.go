package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// namespace makes a namespace for one test. What is in it goes with the test.
func (h *hub) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	h.create(t, ns)
	t.Cleanup(func() {
		if err := h.Delete(context.Background(), ns); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

func (h *hub) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := h.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (h *hub) delete(t *testing.T, o client.Object) {
	t.Helper()
	if err := h.Delete(t.Context(), o); err != nil {
		t.Fatalf("deleting %T %s: %v", o, o.GetName(), err)
	}
}

// get reads an object anew.
func get[T client.Object](t *testing.T, h *hub, o T) T {
	t.Helper()
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatalf("reading %T %s: %v", o, o.GetName(), err)
	}
	return o
}

// gone waits until an object is.
func (h *hub) gone(t *testing.T, o client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s goes", o, o.GetName()), func(ctx context.Context) error {
		err := h.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("it is there, held by %v", o.GetFinalizers())
		}
		return client.IgnoreNotFound(err)
	})
}

// localPool is a pool of clusters with one worker each; running of them are awake.
func localPool(namespace, name string, size, running int32) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: hivev1.ClusterPoolSpec{
			Platform: hivev1.Platform{Local: &hivev1.LocalPlatform{Workers: ptr.To[int32](1)}},
			Size:     size, RunningCount: running,
			BaseDomain:  "example.com",
			ImageSetRef: hivev1.ClusterImageSetReference{Name: "kubernetes"},
		},
	}
}

// fakePool is a pool of clusters on paper.
func fakePool(namespace, name string, size, running int32) *hivev1.ClusterPool {
	p := localPool(namespace, name, size, running)
	p.Spec.Platform = hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1"}`)}}
	p.Spec.Annotations = map[string]string{hivev1.AnnotationFake: "true"}
	return p
}

// claimOn is a claim on a pool.
func claimOn(p *hivev1.ClusterPool, name string) *hivev1.ClusterClaim {
	return &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: p.Name},
	}
}

// secretOf is a Secret with one key.
func secretOf(namespace, name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		StringData: map[string]string{key: value},
	}
}

// settled waits until a pool has all it wants: size clusters, runningCount of
// them running and the others asleep.
func (h *hub) settled(t *testing.T, p *hivev1.ClusterPool) {
	t.Helper()
	eventually(t, "pool "+p.Name+" settles", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		running := min(p.Spec.Size, p.Spec.RunningCount)
		st := p.Status
		if st.ObservedGeneration != p.Generation || st.Size != p.Spec.Size || st.Ready != running || st.Standby != p.Spec.Size-running {
			return fmt.Errorf("it should have %d clusters, %d of them running: size %d, ready %d, standby %d, plan %q",
				p.Spec.Size, running, st.Size, st.Ready, st.Standby, st.Plan)
		}
		spares := int32(0) // the status follows a little later what happens to clusters
		for _, cd := range h.clusters(t, p) {
			if ref := cd.Spec.ClusterPoolRef; cd.Spec.Installed && cd.DeletionTimestamp == nil && ref != nil && ref.ClaimName == "" {
				spares++
			}
		}
		if spares != p.Spec.Size {
			return fmt.Errorf("it should have %d spares, and has %d: plan %q", p.Spec.Size, spares, st.Plan)
		}
		return nil
	})
}

// served waits until a claim's cluster can be used, and returns the cluster.
func (h *hub) served(t *testing.T, c *hivev1.ClusterClaim) *hivev1.ClusterDeployment {
	t.Helper()
	h.conditioned(t, c, hivev1.ClaimClusterRunning, corev1.ConditionTrue)
	return get(t, h, cluster(c.Spec.Namespace))
}

// cluster is the cluster of that name, to be read.
func cluster(name string) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
}

// conditioned waits until an object has a condition, and returns it.
func (h *hub) conditioned(t *testing.T, o client.Object, typ string, status corev1.ConditionStatus) hivev1.Condition {
	t.Helper()
	var found hivev1.Condition
	eventually(t, fmt.Sprintf("%T %s has %s=%s", o, o.GetName(), typ, status), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		all := conditionsOf(o)
		for _, found = range all {
			if found.Type == typ && found.Status == status {
				return nil
			}
		}
		return fmt.Errorf("it has %+v", all)
	})
	return found
}

func conditionsOf(o client.Object) []hivev1.Condition {
	switch o := o.(type) {
	case *hivev1.ClusterPool:
		return o.Status.Conditions
	case *hivev1.ClusterClaim:
		return o.Status.Conditions
	case *hivev1.ClusterDeployment:
		return o.Status.Conditions
	}
	return nil
}

// clusters are those of a pool, claimed ones too.
func (h *hub) clusters(t *testing.T, p *hivev1.ClusterPool) []hivev1.ClusterDeployment {
	t.Helper()
	var list hivev1.ClusterDeploymentList
	if err := h.List(t.Context(), &list, client.MatchingLabels{
		hivev1.LabelPoolName: p.Name, hivev1.LabelPoolNamespace: p.Namespace,
	}); err != nil {
		t.Fatalf("listing the clusters of pool %s: %v", p.Name, err)
	}
	return list.Items
}

// byPower sorts the names of clusters by status.powerState.
func byPower(clusters []hivev1.ClusterDeployment) map[string][]string {
	out := map[string][]string{}
	for _, cd := range clusters {
		out[cd.Status.PowerState] = append(out[cd.Status.PowerState], cd.Name)
	}
	return out
}

// sound is an error as long as something does not fit together on the hub: claims
// and clusters, or clusters and their namespaces, folders and processes.
func (h *hub) sound(ctx context.Context) error {
	var claims hivev1.ClusterClaimList
	var clusters hivev1.ClusterDeploymentList
	var namespaces corev1.NamespaceList
	if err := errors.Join(h.List(ctx, &claims), h.List(ctx, &clusters), h.List(ctx, &namespaces, client.HasLabels{hivev1.LabelPoolName})); err != nil {
		return err
	}
	return errors.Join(pairs(claims.Items, clusters.Items), homes(namespaces.Items, clusters.Items), h.remains(clusters.Items))
}

// pairs is an error unless each claim has one cluster and no cluster two claims.
func pairs(claims []hivev1.ClusterClaim, clusters []hivev1.ClusterDeployment) error {
	var errs []error
	given := map[string][]string{} // clusters by claim, as the clusters say
	for _, cd := range clusters {
		if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.ClaimName != "" {
			key := ref.Namespace + "/" + ref.ClaimName
			given[key] = append(given[key], cd.Name)
		}
	}
	holders := map[string]string{}
	for _, c := range claims {
		key := c.Namespace + "/" + c.Name
		if has := given[key]; len(has) != 1 || has[0] != c.Spec.Namespace {
			errs = append(errs, fmt.Errorf("claim %s has cluster %q, but clusters %v were given to it", key, c.Spec.Namespace, has))
		}
		if other := holders[c.Spec.Namespace]; other != "" {
			errs = append(errs, fmt.Errorf("claims %s and %s both have cluster %s", other, key, c.Spec.Namespace))
		}
		holders[c.Spec.Namespace] = key
		delete(given, key)
	}
	for claim, has := range given {
		errs = append(errs, fmt.Errorf("clusters %v belong to claim %s, which does not exist", has, claim))
	}
	return errors.Join(errs...)
}

// homes is an error unless each namespace of a cluster has its cluster.
func homes(namespaces []corev1.Namespace, clusters []hivev1.ClusterDeployment) error {
	var errs []error
	exist := map[string]bool{}
	for _, cd := range clusters {
		exist[cd.Namespace] = true
	}
	for _, ns := range namespaces {
		if !exist[ns.Name] {
			errs = append(errs, fmt.Errorf("namespace %s (%s) has no cluster", ns.Name, ns.Status.Phase))
		}
	}
	return errors.Join(errs...)
}

// remains is an error when there are folders or machines of clusters that do not exist.
func (h *hub) remains(clusters []hivev1.ClusterDeployment) error {
	var errs []error
	exist := map[string]bool{}
	for _, cd := range clusters {
		if md := cd.Spec.ClusterMetadata; md != nil {
			exist[md.InfraID] = true
		}
	}
	for _, dir := range []string{h.machines(), h.installs()} {
		folders, err := foldersIn(dir)
		errs = append(errs, err)
		for _, infraID := range folders {
			if !exist[infraID] {
				running, err := processesOf(dir + "/" + infraID)
				errs = append(errs, err, fmt.Errorf("folder %s/%s has no cluster; its processes: %v", dir, infraID, running))
			}
		}
	}
	return errors.Join(errs...)
}
