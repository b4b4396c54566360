package resourcemetrics

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trim is a cache.TransformFunc that keeps of an object what metrics-server and this package read.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Node:
		return &corev1.Node{ObjectMeta: trimMeta(&o.ObjectMeta), Status: corev1.NodeStatus{
			Conditions: o.Status.Conditions, Addresses: o.Status.Addresses, DaemonEndpoints: o.Status.DaemonEndpoints,
		}}, nil
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(&o.ObjectMeta)}, nil
	}
	return object, nil // a cache.DeletedFinalStateUnknown
}

func trimMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels}
}
