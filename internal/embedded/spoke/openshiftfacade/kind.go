package openshiftfacade

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind is an OpenShift type that local clusters have.
type kind struct {
	group, version, name, plural string
	scope                        apiextensionsv1.ResourceScope
}

var (
	machineKind         = kind{"machine.openshift.io", "v1beta1", "Machine", "machines", apiextensionsv1.NamespaceScoped}
	clusterVersionKind  = kind{"config.openshift.io", "v1", "ClusterVersion", "clusterversions", apiextensionsv1.ClusterScoped}
	clusterOperatorKind = kind{"config.openshift.io", "v1", "ClusterOperator", "clusteroperators", apiextensionsv1.ClusterScoped}
)

func (k kind) groupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural}
}

// newEmptyObject returns an object of the kind with only its type and name set.
func (k kind) newEmptyObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.group + "/" + k.version,
		"kind":       k.name,
		"metadata":   map[string]any{"name": name},
	}}
}

// customResourceDefinition returns the CRD of the kind. Its schema accepts any field, because local
// clusters only imitate types that other projects define.
func (k kind) customResourceDefinition() *apiextensionsv1.CustomResourceDefinition {
	anything := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: k.plural + "." + k.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: k.name, ListKind: k.name + "List", Plural: k.plural},
			Scope: k.scope,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: k.version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &anything,
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// ensureDefinition creates the CRD of the kind. It returns an error while the kind is not served
// yet.
func (m *facade) ensureDefinition(ctx context.Context, k kind) error {
	client := m.extensions.ApiextensionsV1().CustomResourceDefinitions()
	want := k.customResourceDefinition()
	crd, err := client.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		crd, err = client.Create(ctx, want, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("defining %s: %w", want.Name, err)
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("defining %s: not established yet", want.Name)
}
