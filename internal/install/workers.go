package install

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Worker is a machine that runs pods, in a cluster whose platform has no machine
// controller of its own.
type Worker struct {
	// Name is the machine's and its node's.
	Name string
	// Taints are what the node registers with.
	Taints []corev1.Taint
	// Created is when the machine was made.
	Created time.Time
	// Trouble says why the machine does not run, if it cannot; no secrets.
	Trouble string
}

// Target names a cluster by its ClusterDeployment, and by the infraID that marks its machines.
type Target struct {
	Cluster types.NamespacedName
	InfraID string
}

// Workers adds worker machines to clusters that run, and removes them. Calls may be
// repeated. The error of each is fault.Denied if the infraID marks the machines of another
// ClusterDeployment.
type Workers interface {
	// List returns the workers of a cluster, sorted by name, however they were made.
	List(t Target) ([]Worker, error)
	// Add makes a worker and has it join, unless there is one of that name. Its node
	// comes by itself. The error is fault.Capacity while there is no room for it, and
	// fault.Wait while the cluster does not run.
	Add(t Target, w Worker) error
	// Remove stops a worker and destroys it, and waits until that is done. Its node
	// remains. That there is none is success.
	Remove(ctx context.Context, t Target, name string) error
}
