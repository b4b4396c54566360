package capi

import (
	"context"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// missingRetry is how long Prepare waits for a ClusterClass or a template that does not exist.
const missingRetry = pollInterval * 6

// buildObjects returns the objects of an attempt, the Cluster last. Each records its
// ClusterDeployment. Settings that are not valid are fault.Denied; a ClusterClass or a template that
// does not exist is fault.Wait.
func (e *Executor) buildObjects(ctx context.Context, req install.Request, infraID string) ([]*unstructured.Unstructured, error) {
	set := req.Platform.CAPI
	var objects []*unstructured.Unstructured
	switch {
	case set == nil || set.ClassRef == nil && set.TemplateRef == nil:
		return nil, fault.NewDenied("spec.platform.capi of ClusterDeployment %s has neither classRef nor templateRef: name a ClusterClass or a template", req.Cluster)
	case set.ClassRef != nil:
		if err := e.confirmClass(ctx, req); err != nil {
			return nil, err
		}
		cluster, err := newTopologyCluster(req, infraID)
		if err != nil {
			return nil, err
		}
		objects = append(objects, cluster)
	default:
		texts, err := e.readTemplate(ctx, req)
		if err != nil {
			return nil, err
		}
		values, err := templateValues(req, infraID)
		if err != nil {
			return nil, err
		}
		if objects, err = renderTemplate(texts, values, req.Cluster.Namespace, infraID); err != nil {
			return nil, fault.NewDenied("ConfigMap %s, named by spec.platform.capi.templateRef: %w", set.TemplateRef.Name, err)
		}
	}
	for _, o := range objects {
		o.SetNamespace(req.Cluster.Namespace)
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[clusterapi.AnnotationOwner] = string(req.UID)
		o.SetAnnotations(annotations)
	}
	return objects, nil
}

// confirmClass returns fault.Wait if the ClusterClass does not exist.
func (e *Executor) confirmClass(ctx context.Context, req install.Request) error {
	ref := req.Platform.CAPI.ClassRef
	namespace := ref.Namespace
	if namespace == "" {
		namespace = req.Cluster.Namespace
	}
	_, err := e.hub.Resource(clusterapi.ClusterClasses).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case clusterapi.IsKindMissing(err):
		return clusterapi.NotInstalledError(clusterapi.ClusterClasses)
	case apierrors.IsNotFound(err):
		return fault.NewWait(missingRetry, "ClusterClass %s in namespace %s, named by spec.platform.capi.classRef, does not exist: create it, or correct classRef",
			ref.Name, namespace)
	case err != nil:
		return fmt.Errorf("reading ClusterClass %s in namespace %s: %w", ref.Name, namespace, err)
	}
	return nil
}

// versionTag matches the tag of a release image that is a version of Kubernetes.
var versionTag = regexp.MustCompile(`:v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)(?:@.*)?$`)

// kubernetesVersion returns the version of the cluster: the platform's, or that of the image set.
func kubernetesVersion(req install.Request) (string, error) {
	if v := req.Platform.CAPI.Version; v != "" {
		return v, nil
	}
	if tag := versionTag.FindStringSubmatch(req.ReleaseImage); tag != nil {
		return "v" + tag[1], nil
	}
	return "", fault.NewDenied("spec.platform.capi.version of ClusterDeployment %s is empty, and the tag of the release image %q is not a version: "+
		"set the version, such as v1.36.0", req.Cluster, req.ReleaseImage)
}

// newTopologyCluster returns the Cluster of an attempt that uses a ClusterClass.
func newTopologyCluster(req install.Request, infraID string) (*unstructured.Unstructured, error) {
	set := req.Platform.CAPI
	version, err := kubernetesVersion(req)
	if err != nil {
		return nil, err
	}
	class := map[string]any{"name": set.ClassRef.Name}
	if set.ClassRef.Namespace != "" {
		class["namespace"] = set.ClassRef.Namespace
	}
	topology := map[string]any{
		"classRef": class, "version": version,
		"controlPlane": map[string]any{"replicas": controlPlaneReplicas(set)},
	}
	if workers := listWorkers(set); len(workers) > 0 {
		topology["workers"] = map[string]any{"machineDeployments": workers}
	}
	if topology["variables"], err = listVariables(set); err != nil {
		return nil, err
	}
	if len(set.Variables) == 0 {
		delete(topology, "variables")
	}
	spec := map[string]any{"topology": topology}
	if network := clusterNetwork(set.ClusterNetwork); len(network) > 0 {
		spec["clusterNetwork"] = network
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterapi.Group + "/" + clusterapi.Version, "kind": "Cluster", "spec": spec,
	}}
	cluster.SetName(infraID)
	cluster.SetLabels(set.Labels)
	return cluster, nil
}

func controlPlaneReplicas(set *hivev1.CAPIPlatform) int64 {
	if set.ControlPlane == nil || set.ControlPlane.Replicas == nil {
		return 1
	}
	return int64(*set.ControlPlane.Replicas)
}

func listWorkers(set *hivev1.CAPIPlatform) []any {
	var out []any
	for _, w := range set.Workers {
		replicas := int64(1)
		if w.Replicas != nil {
			replicas = int64(*w.Replicas)
		}
		out = append(out, map[string]any{"class": w.Class, "name": w.Name, "replicas": replicas})
	}
	return out
}

func listVariables(set *hivev1.CAPIPlatform) ([]any, error) {
	var out []any
	for _, v := range set.Variables {
		var value any
		if v.Value == nil {
			return nil, fault.NewDenied("spec.platform.capi.variables: variable %q has no value: set it", v.Name)
		}
		if err := utiljson.Unmarshal(v.Value.Raw, &value); err != nil {
			return nil, fault.NewDenied("spec.platform.capi.variables: the value of variable %q is not JSON: %w", v.Name, err)
		}
		out = append(out, map[string]any{"name": v.Name, "value": value})
	}
	return out, nil
}

func clusterNetwork(n *hivev1.CAPIClusterNetwork) map[string]any {
	out := map[string]any{}
	if n == nil {
		return out
	}
	for key, cidrs := range map[string][]string{"pods": n.PodCIDRs, "services": n.ServiceCIDRs} {
		if len(cidrs) > 0 {
			blocks := make([]any, len(cidrs))
			for i, cidr := range cidrs {
				blocks[i] = cidr
			}
			out[key] = map[string]any{"cidrBlocks": blocks}
		}
	}
	return out
}
