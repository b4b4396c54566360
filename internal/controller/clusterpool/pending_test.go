package clusterpool_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

func TestACreationThatWasInterruptedIsCompletedOnlyWithTheSecretsOfToday(t *testing.T) {
	const name = "p-half"
	for of, want := range map[string]bool{"p.example.com": true, "older.example.com": false} {
		l := newLab(t)
		l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size, p.BaseDomain = 2, "p.example.com" })
		ref := &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: l.pool.Name}
		secret := func(domain string) *corev1.Secret {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-install-config"},
				Data:       map[string][]byte{hivev1.SecretKeyInstallConfig: installConfig(t, l.stored(), name, domain)},
			}
		}
		for _, err := range []error{
			l.store.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				hivev1.LabelPoolName: ref.PoolName, hivev1.LabelPoolNamespace: ref.Namespace, hivev1.LabelNamespacePoolName: ref.PoolName,
			}}}),
			l.store.Create(t.Context(), secret(of)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		p := l.stored().DeepCopy()
		l.store.EditObject(t.Context(), p, func() { p.Status.Pending = []string{name} })
		for range 3 {
			l.view.ShowAllWrites()
			_, err := l.pools.Reconcile(t.Context(), l.request())
			if err != nil {
				t.Log(err)
			}
		}
		made := l.store.GetSharedObject(&hivev1.ClusterDeployment{}, types.NamespacedName{Namespace: name, Name: name}) != nil
		if made != want || l.clusters() != 2 || slices.Contains(l.stored().Status.Pending, name) {
			t.Errorf("with Secrets for %s: its cluster exists: %t, %d clusters in all, recorded: %v", of, made, l.clusters(), l.stored().Status.Pending)
		}
	}
}

// installConfig is the install-config of a pool's cluster, for a base domain.
func installConfig(t *testing.T, p *hivev1.ClusterPool, cluster, domain string) []byte {
	t.Helper()
	p = p.DeepCopy()
	p.Spec.BaseDomain = domain
	raw, err := facts.RenderInstallConfig(nil, p, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
