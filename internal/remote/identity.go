package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where an OpenShift cluster reports its infrastructure, and any API server what its user may do.
const (
	infrastructurePath = "/apis/config.openshift.io/v1/infrastructures/cluster"
	accessReviewPath   = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// Identity is what a cluster reports about itself.
type Identity struct {
	// ID identifies the cluster worldwide: the cluster ID of OpenShift's ClusterVersion or, on other
	// clusters, the UID of namespace kube-system.
	ID string
	// InfraID is the infrastructure name of an OpenShift cluster, with which its installer marks its
	// machines; "" on other clusters.
	InfraID string
	// Nodes are the sorted names of its nodes.
	Nodes []string
	// IsAdmin is set if the kubeconfig's user may do everything in the cluster.
	IsAdmin bool
}

// ReadIdentity asks the cluster that a kubeconfig reaches. Like a Connector, it refuses kubeconfigs that
// would run programs or read files. Errors are fixed phrases without the kubeconfig's content.
func ReadIdentity(ctx context.Context, kubeconfig []byte) (Identity, error) {
	a, err := newSpokeClient(kubeconfig)
	if err != nil {
		return Identity{}, err
	}
	defer a.closeConnections()
	id, err := a.readIdentity(ctx)
	if err != nil {
		return Identity{}, errors.New(describeNoAnswer(err))
	}
	return id, nil
}

func (sc *spokeClient) readIdentity(ctx context.Context) (Identity, error) {
	nodes, err := sc.listNodes(ctx)
	if err != nil {
		return Identity{}, err
	}
	var id Identity
	for _, n := range nodes {
		id.Nodes = append(id.Nodes, n.Name)
	}
	slices.Sort(id.Nodes)
	var version struct {
		Spec struct {
			ClusterID string `json:"clusterID"`
		} `json:"spec"`
	}
	var infrastructure struct {
		Status struct {
			InfrastructureName string `json:"infrastructureName"`
		} `json:"status"`
	}
	if err := errors.Join(sc.readIfServed(ctx, clusterVersionPath, &version), sc.readIfServed(ctx, infrastructurePath, &infrastructure)); err != nil {
		return Identity{}, err
	}
	id.ID, id.InfraID = emptyIfTooLong(version.Spec.ClusterID), emptyIfTooLong(infrastructure.Status.InfrastructureName)
	if id.ID == "" {
		ns, err := sc.core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return Identity{}, fmt.Errorf("reading namespace %s: %w", metav1.NamespaceSystem, err)
		}
		id.ID = string(ns.UID)
	}
	id.IsAdmin = sc.mayDoEverything(ctx)
	return id, nil
}

// readIfServed reads JSON from a path. It leaves into unchanged if the API server does not serve it.
func (sc *spokeClient) readIfServed(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := sc.core.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading %s: the answer is not JSON", path)
	}
	return nil
}

// mayDoEverything reports whether the API server confirms that the user is an administrator of the
// cluster. A failed request counts as no.
func (sc *spokeClient) mayDoEverything(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	const review = `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"*","resource":"*","verb":"*"}}}`
	raw, err := sc.core.RESTClient().Post().AbsPath(accessReviewPath).SetHeader("Content-Type", "application/json").Body([]byte(review)).DoRaw(ctx)
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	return err == nil && json.Unmarshal(raw, &answer) == nil && answer.Status.Allowed
}
