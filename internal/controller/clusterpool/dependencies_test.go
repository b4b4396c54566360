package clusterpool_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

func TestAFailingInstallIsReplacedAfterItsTemplateWasMended(t *testing.T) {
	l := newLab(t)
	template := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "template"},
		Data:       map[string][]byte{hivev1.SecretKeyInstallConfig: []byte("compute: [{replicas: 98}]")},
	}
	if err := l.store.Create(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	l.edit(func(p *hivev1.ClusterPoolSpec) {
		p.Size, p.InstallConfigSecretTemplateRef = 2, &corev1.LocalObjectReference{Name: "template"}
	})
	settle := func() {
		t.Helper()
		for range 4 {
			l.clock.SetTime(l.clock.Now().Add(30 * time.Second))
			l.view.ShowAllWrites()
			l.pass()
		}
	}
	clusters := func() map[string]*hivev1.ClusterDeployment {
		out := map[string]*hivev1.ClusterDeployment{}
		for _, o := range l.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
			out[o.GetName()] = o.DeepCopyObject().(*hivev1.ClusterDeployment)
		}
		return out
	}
	settle()
	before, failing := clusters(), ""
	for name, cd := range before {
		failing = name
		l.store.EditObject(t.Context(), cd, func() {
			condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionFailed, corev1.ConditionTrue, "X", "", l.clock.Now())
		})
		break
	}
	settle()
	if len(before) != 2 || clusters()[failing] == nil {
		t.Fatalf("before the template was mended there are %d clusters, failing %s among them: %t", len(before), failing, clusters()[failing] != nil)
	}
	template = l.store.GetSharedObject(template, types.NamespacedName{Namespace: "pools", Name: "template"}).DeepCopyObject().(*corev1.Secret)
	l.store.EditObject(t.Context(), template, func() { template.Data[hivev1.SecretKeyInstallConfig] = []byte("compute: [{replicas: 99}]") })
	settle()
	after := clusters()
	if len(after) != 2 || after[failing] != nil {
		t.Fatalf("after it there are %d clusters, failing %s among them: %t", len(after), failing, after[failing] != nil)
	}
	for name := range after {
		secret := l.store.GetSharedObject(&corev1.Secret{}, types.NamespacedName{Namespace: name, Name: name + "-install-config"}).(*corev1.Secret)
		is := strings.Contains(string(secret.Data[hivev1.SecretKeyInstallConfig]), "99")
		if old := before[name] != nil; is == old {
			t.Errorf("cluster %s, which was there before: %t, has the mended template: %t", name, old, is)
		}
	}
}
