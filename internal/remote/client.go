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

// The kinds of OpenShift that hotspare writes in clusters. They are read and written
// without types: a few fields do not warrant OpenShift's modules.
var (
	Machine           = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}
	MachineSet        = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"}
	MachineAutoscaler = schema.GroupVersionKind{Group: "autoscaling.openshift.io", Version: "v1beta1", Kind: "MachineAutoscaler"}
	ClusterAutoscaler = schema.GroupVersionKind{Group: "autoscaling.openshift.io", Version: "v1", Kind: "ClusterAutoscaler"}
)

// agentKinds are the kinds of which an agent consists in a cluster. They are written without
// types, too.
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
		panic(err) // two kinds of one name: a mistake in this program
	}
	return s
})

// newRESTMapper knows the few kinds that are asked for, so that nobody need ask a cluster for
// all kinds that it has.
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

// Client returns a client of the cluster whose admin kubeconfig is in the Secret, for
// nodes, pods, what an agent consists of, and the kinds above; or trouble, which says why there can be none. An
// error is the hub's own.
func (c *Connector) Client(ctx context.Context, secret types.NamespacedName) (kube client.Client, trouble string, err error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return nil, trouble, err
	}
	return a.kube, "", nil
}

// DescribeFailure says in a few words why a call of a cluster failed. What the cluster itself
// objects to is quoted: it names the field.
func DescribeFailure(err error) string {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return "it answers: " + err.Error()
	}
	return describeNoAnswer(err)
}
