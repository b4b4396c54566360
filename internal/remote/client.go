package remote

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The OpenShift kinds that hotspare writes in clusters. They are read and written as unstructured
// objects: a few fields do not justify a dependency on OpenShift's modules.
var (
	Machine           = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}
	MachineSet        = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"}
	MachineAutoscaler = schema.GroupVersionKind{Group: "autoscaling.openshift.io", Version: "v1beta1", Kind: "MachineAutoscaler"}
	ClusterAutoscaler = schema.GroupVersionKind{Group: "autoscaling.openshift.io", Version: "v1", Kind: "ClusterAutoscaler"}
)

// agentKinds are the kinds of the objects that make up an agent in a cluster. They, too, are
// written as unstructured objects.
var agentKinds = map[schema.GroupVersionKind]meta.RESTScope{
	{Version: "v1", Kind: "Namespace"}:                                                               meta.RESTScopeRoot,
	{Version: "v1", Kind: "ServiceAccount"}:                                                          meta.RESTScopeNamespace,
	{Version: "v1", Kind: "Secret"}:                                                                  meta.RESTScopeNamespace,
	{Group: "apps", Version: "v1", Kind: "Deployment"}:                                               meta.RESTScopeNamespace,
	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}:                               meta.RESTScopeRoot,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}:                         meta.RESTScopeRoot,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}:                  meta.RESTScopeRoot,
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}:        meta.RESTScopeRoot,
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"}: meta.RESTScopeRoot,
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}:                 meta.RESTScopeRoot,
}

var coreScheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		panic(err) // two kinds have the same name: a bug
	}
	return s
})

// newRESTMapper returns a mapper for the few kinds that are used, so that no client has to
// discover all kinds of a cluster.
func newRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(Machine, meta.RESTScopeNamespace)
	m.Add(MachineSet, meta.RESTScopeNamespace)
	m.Add(MachineAutoscaler, meta.RESTScopeNamespace)
	m.Add(ClusterAutoscaler, meta.RESTScopeRoot)
	for kind, scope := range agentKinds {
		m.Add(kind, scope)
	}
	return m
}

// Client returns a client of the cluster whose admin kubeconfig is in the Secret, for nodes,
// pods, the objects of an agent and the kinds above; or trouble, which says why there is no
// client. An error is the hub's own.
func (c *Connector) Client(ctx context.Context, secret types.NamespacedName) (kube client.Client, trouble string, err error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return nil, trouble, err
	}
	return a.kube, "", nil
}

// DescribeFailure says in a few words why a call to a cluster failed. It quotes an objection of
// the cluster itself, because that names the field.
func DescribeFailure(err error) string {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return "it responds: " + err.Error()
	}
	return describeNoAnswer(err)
}
