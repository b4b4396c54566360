package install

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Worker is a machine that runs pods, in a cluster whose platform has no machine controller of its
// own.
type Worker struct {
	// Name is the name of the machine and its node.
	Name string
	// Taints are the taints with which the node registers.
	Taints []corev1.Taint
	// Created is when the machine was created.
	Created time.Time
	// Problem says why the machine does not run, if it cannot; it contains no secrets.
	Problem string
	// Obstacle says why the node of a machine that runs cannot become ready; empty if that is not known. It contains no
	// secrets.
	Obstacle string
}

// Target identifies a cluster by its ClusterDeployment, and by the infraID that marks its machines.
type Target struct {
	Cluster types.NamespacedName
	InfraID string
}

// Workers adds worker machines to running clusters, and removes them. Calls may be repeated. Each
// call returns fault.Denied if the infraID marks the machines of another ClusterDeployment.
type Workers interface {
	// List returns the workers of a cluster, sorted by name, however they were created.
	List(t Target) ([]Worker, error)
	// Add creates a worker, which then joins, unless there is one with that name. Its node registers
	// automatically. The error is fault.Capacity while there is no room for it, and fault.Wait while
	// the cluster does not run.
	Add(t Target, w Worker) error
	// Remove stops a worker, destroys it, and waits until that is done. Its node object remains. A
	// missing worker is success.
	Remove(ctx context.Context, t Target, name string) error
}
