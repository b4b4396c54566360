package provision

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/provision"
)

// pass is one pass over one cluster: what was observed, and what executors have answered since.
// Steps update its objects to what is stored.
type pass struct {
	*Reconciler
	now         time.Time
	cluster     *hivev1.ClusterDeployment
	attempts    []*hivev1.ClusterProvision
	deprovision *hivev1.ClusterDeprovision
	// claim is the claim of a cluster that is being deleted; nil if it has none.
	claim *hivev1.ClusterClaim
	needs provision.Needs
	// request is the request for the next attempt, without its number; valid if the needs are
	// met.
	request install.Request

	prepare, install *provision.Answer
	destroy          map[string]provision.Answer
	// result is the last result of Install.
	result install.Result
}

// observeCluster reads all input of the decision; nil if the cluster was deleted. For a cluster
// that could not be decoded completely, it reads only the cluster.
func (r *Reconciler) observeCluster(ctx context.Context, key types.NamespacedName) (*pass, error) {
	p := &pass{
		Reconciler: r,
		now:        r.Clock.Now(),
		cluster:    &hivev1.ClusterDeployment{},
		destroy:    map[string]provision.Answer{},
	}
	if err := r.Client.Get(ctx, key, p.cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.clusters.ForgetKey(key)
		}
		return nil, client.IgnoreNotFound(err)
	}
	if newest := r.clusters.NewestVersion(p.cluster); newest != p.cluster {
		p.cluster = newest.DeepCopy()
	}
	if p.cluster.Unreadable != "" {
		return p, nil
	}
	if err := p.observeAttempts(ctx); err != nil {
		return nil, fmt.Errorf("reading the attempts of %s: %w", key, err)
	}
	if err := p.observeDeprovision(ctx); err != nil {
		return nil, fmt.Errorf("reading ClusterDeprovision %s: %w", key, err)
	}
	if err := p.observeClaim(ctx); err != nil {
		return nil, fmt.Errorf("reading the claim of %s: %w", key, err)
	}
	if err := p.observeNeeds(ctx); err != nil {
		return nil, fmt.Errorf("reading what %s needs: %w", key, err)
	}
	return p, nil
}

// observeAttempts reads the attempts. It reads them live if the cluster names one that is not in
// the cache and it matters whose that is.
func (p *pass) observeAttempts(ctx context.Context) error {
	if err := p.listAttempts(ctx, p.Client); err != nil {
		return err
	}
	cd := p.cluster
	id := recordedInfraID(cd)
	isReported := cd.Spec.Installed && cd.Status.InstalledTimestamp != nil
	if id == "" || p.attemptByInfraID(id) != nil || isReported || isDeleting(cd) {
		return nil
	}
	return p.listAttempts(ctx, p.Live)
}

func (p *pass) listAttempts(ctx context.Context, from client.Reader) error {
	var list hivev1.ClusterProvisionList
	err := from.List(ctx, &list, client.InNamespace(p.cluster.Namespace),
		client.MatchingLabels{hivev1.LabelClusterDeployment: p.cluster.Name})
	if err != nil {
		return err
	}
	p.attempts = nil
	for i := range list.Items {
		if err := list.Items[i].Whole(); err != nil {
			return fmt.Errorf("reading ClusterProvision %s: %w: correct it", list.Items[i].Name, err)
		}
		// One without infraID belongs to another controller, and names nothing to destroy.
		if cp := &list.Items[i]; metav1.IsControlledBy(cp, p.cluster) && cp.Spec.InfraID != nil {
			p.attempts = append(p.attempts, cp)
		}
	}
	return nil
}

// observeDeprovision reads the ClusterDeprovision. It ignores one that another cluster of that
// name left behind.
func (p *pass) observeDeprovision(ctx context.Context) error {
	if !isDeleting(p.cluster) {
		return nil
	}
	var found hivev1.ClusterDeprovision
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(p.cluster), &found)
	if err == nil && metav1.IsControlledBy(&found, p.cluster) {
		p.deprovision = &found
	}
	return client.IgnoreNotFound(err)
}

// observeClaim reads the claim of a cluster that is being deleted. The claim exists until the cluster does not. The
// cache shows it as it was when the claim was deleted, or later: the controllers that delete the cluster because of
// it read the same cache.
func (p *pass) observeClaim(ctx context.Context) error {
	ref := p.cluster.Spec.ClusterPoolRef
	if !isDeleting(p.cluster) || ref == nil || ref.ClaimName == "" {
		return nil
	}
	var found hivev1.ClusterClaim
	err := p.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.ClaimName}, &found)
	if err == nil {
		p.claim = &found
	}
	return client.IgnoreNotFound(err)
}

// attemptByInfraID returns the recorded attempt with an infraID, or nil.
func (p *pass) attemptByInfraID(id string) *hivev1.ClusterProvision {
	for _, cp := range p.attempts {
		if *cp.Spec.InfraID == id {
			return cp
		}
	}
	return nil
}

// clusterExecutor returns the executor for the cluster, or nil.
func (p *pass) clusterExecutor() install.Executor {
	if p.isFake() {
		return p.Fake
	}
	return p.Executors[p.cluster.Spec.Platform.Name()]
}

// isFake reports whether the cluster exists only as API objects.
func (p *pass) isFake() bool { return hivev1.IsTrue(p.cluster.Annotations, hivev1.AnnotationFake) }

func isDeleting(cd *hivev1.ClusterDeployment) bool { return !cd.DeletionTimestamp.IsZero() }

func recordedInfraID(cd *hivev1.ClusterDeployment) string {
	if m := cd.Spec.ClusterMetadata; m != nil {
		return m.InfraID
	}
	return ""
}
