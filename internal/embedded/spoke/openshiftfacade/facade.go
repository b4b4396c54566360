// Package openshiftfacade creates the objects and labels by which hotspare and other tools recognize an
// OpenShift cluster in a local cluster: the role of each node and a Machine for it, and the
// ClusterVersion and ClusterOperators if the cluster has an OpenShift version.
package openshiftfacade

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"hotspare.io/hotspare/internal/embedded/spoke/informerloop"
)

// retryInterval is the delay between attempts to create the objects that must exist before nodes
// can be marked.
const retryInterval = time.Second

// applyOptions are the options of all applies: they take over fields that other managers have set.
var applyOptions = metav1.ApplyOptions{FieldManager: "hotspare", Force: true}

// Options describe the cluster to mark.
type Options struct {
	// InfraID is the infraID of the cluster.
	InfraID string
	// ControlPlane is the name of the control plane's node; all others are workers.
	ControlPlane string
	// OpenShiftVersion is empty for a plain Kubernetes cluster.
	OpenShiftVersion string
}

type facade struct {
	Options
	core       kubernetes.Interface
	extensions apiextensions.Interface
	dynamic    dynamic.Interface
}

// Run marks the cluster, and each node that joins it, until ctx ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	m, err := newFacade(config, o)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	if err := informerloop.RetryUntilSuccess(ctx, retryInterval, m.ensureClusterObjects); err != nil {
		return nil //nolint:nilerr // stopped before it started
	}
	nodes := cache.NewListWatchFromClient(m.core.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll, fields.Everything())
	informerloop.Run(ctx, nodes, &corev1.Node{}, m.applyNodeObjects)
	return nil
}

func newFacade(config *rest.Config, o Options) (*facade, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	extensions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &facade{Options: o, core: core, extensions: extensions, dynamic: dynamic}, nil
}

// ensureClusterObjects creates the types, and the objects that exist once per cluster.
func (m *facade) ensureClusterObjects(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machineNamespace}}
	_, err := m.core.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", machineNamespace, err)
	}
	if err := m.ensureDefinition(ctx, machineKind); err != nil {
		return err
	}
	if m.OpenShiftVersion == "" {
		return nil
	}
	return m.ensureOpenShiftObjects(ctx)
}

func (m *facade) ensureOpenShiftObjects(ctx context.Context) error {
	for _, k := range []kind{clusterVersionKind, clusterOperatorKind} {
		if err := m.ensureDefinition(ctx, k); err != nil {
			return err
		}
	}
	err := m.applyWithStatus(ctx, clusterVersionKind, "version", func(since string) status {
		return versionStatus(m.OpenShiftVersion, since)
	})
	if err != nil {
		return err
	}
	for _, name := range operatorNames {
		err := m.applyWithStatus(ctx, clusterOperatorKind, name, func(since string) status {
			return operatorStatus(m.OpenShiftVersion, since)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// applyWithStatus applies the object of that kind and name, and sets the status that f returns for
// the creation time of the object.
func (m *facade) applyWithStatus(ctx context.Context, k kind, name string, f func(since string) status) error {
	client := m.dynamic.Resource(k.groupVersionResource())
	object, err := client.Apply(ctx, name, k.newEmptyObject(name), applyOptions)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", k.name, name, err)
	}
	stated := k.newEmptyObject(name)
	stated.Object["status"] = f(object.GetCreationTimestamp().UTC().Format(time.RFC3339))
	if _, err := client.ApplyStatus(ctx, name, stated, applyOptions); err != nil {
		return fmt.Errorf("applying status of %s %s: %w", k.name, name, err)
	}
	return nil
}

// applyNodeObjects sets the role of the node and applies its Machine.
func (m *facade) applyNodeObjects(ctx context.Context, node *corev1.Node) (time.Duration, error) {
	role := worker
	if node.Name == m.ControlPlane {
		role = master
	}
	nodes := m.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	_, err := nodes.Apply(ctx, node.Name, newNodeRoleLabels(node, role), applyOptions)
	if apierrors.IsConflict(err) { // the node was deleted; if it was created again, the informer reports it
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("labelling node %s: %w", node.Name, err)
	}
	client := m.dynamic.Resource(machineKind.groupVersionResource()).Namespace(machineNamespace)
	object := newMachineObject(node, role, m.InfraID)
	if _, err := client.Apply(ctx, node.Name, object, applyOptions); err != nil {
		return 0, fmt.Errorf("applying machine %s: %w", node.Name, err)
	}
	if _, err := client.ApplyStatus(ctx, node.Name, object, applyOptions); err != nil {
		return 0, fmt.Errorf("applying status of machine %s: %w", node.Name, err)
	}
	return 0, nil
}
