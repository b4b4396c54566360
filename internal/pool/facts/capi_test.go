package facts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAPoolOnClusterAPINeedsItsTemplateAndTheSecretsOfItsProviders(t *testing.T) {
	secret := func(name string) *runtime.RawExtension {
		return &runtime.RawExtension{Raw: []byte(`{"credentialsSecretRef":{"name":"` + name + `"}}`)}
	}
	p := &hivev1.ClusterPool{Spec: hivev1.ClusterPoolSpec{Platform: hivev1.Platform{CAPI: &hivev1.CAPIPlatform{
		TemplateRef: &corev1.LocalObjectReference{Name: "template"},
		Providers: &hivev1.CAPIProviders{
			AWS: secret("aws"), GCP: secret("gcp"), Azure: secret("azure"), OpenStack: secret("openstack"),
			VSphere: &runtime.RawExtension{Raw: []byte(`{"credentialsSecretRef":{"name":"vsphere"},"certificatesSecretRef":{"name":"ca"}}`)},
		},
	}}}}
	var got []string
	for _, d := range ListDependencies(p) {
		if d.Kind != ImageSet {
			got = append(got, d.NotFoundMessage())
		}
	}
	want := []string{
		`credentials secret: Secret "aws" does not exist: create it, or change spec.platform.capi.providers.aws.credentialsSecretRef`,
		`credentials secret: Secret "gcp" does not exist: create it, or change spec.platform.capi.providers.gcp.credentialsSecretRef`,
		`credentials secret: Secret "azure" does not exist: create it, or change spec.platform.capi.providers.azure.credentialsSecretRef`,
		`credentials secret: Secret "vsphere" does not exist: create it, or change spec.platform.capi.providers.vsphere.credentialsSecretRef`,
		`certificates secret: Secret "ca" does not exist: create it, or change spec.platform.capi.providers.vsphere.certificatesSecretRef`,
		`credentials secret: Secret "openstack" does not exist: create it, or change spec.platform.capi.providers.openstack.credentialsSecretRef`,
		`template: ConfigMap "template" does not exist: create it, or change spec.platform.capi.templateRef`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPoolOnClusterAPINeedsItsClusterClass(t *testing.T) {
	for namespace, want := range map[string]string{
		"classes": `cluster class: ClusterClass "quick-start" does not exist in namespace "classes": create it, or change spec.platform.capi.classRef`,
		"":        "", // that of each cluster, which does not exist yet
	} {
		p := &hivev1.ClusterPool{Spec: hivev1.ClusterPoolSpec{Platform: hivev1.Platform{CAPI: &hivev1.CAPIPlatform{
			ClassRef: &hivev1.CAPIClassReference{Name: "quick-start", Namespace: namespace},
		}}}}
		got := ""
		for _, d := range ListDependencies(p) {
			if d.Kind == ClusterClass {
				got = d.NotFoundMessage()
			}
		}
		if got != want {
			t.Errorf("namespace %q: got %q, want %q", namespace, got, want)
		}
	}
}
