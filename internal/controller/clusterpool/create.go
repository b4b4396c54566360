package clusterpool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// nameNewClusters chooses names for the clusters that the pass creates, after confirming that all
// existing clusters are known, and returns the plan with the names. If it cannot confirm that, the
// plan creates no new clusters.
func (t *execution) nameNewClusters(ctx context.Context, p pool.Plan) (pool.Plan, error) {
	due := len(p.DueStepsOf(pool.Create))
	if t.ended || due == 0 {
		return p, nil
	}
	p.Steps = slices.Clone(p.Steps)
	if err := t.confirmAllObserved(ctx); err != nil {
		p.Steps = slices.DeleteFunc(p.Steps, func(st pool.Step) bool { return st.Verb == pool.Create })
		return p, err
	}
	t.inventoryPlan.Entries, t.inventoryPlan.Assigned = maps.Clone(t.inventoryPlan.Entries), maps.Clone(t.inventoryPlan.Assigned)
	names := t.seen.generateNames(due, t.Suffix)
	for i := range p.Steps {
		st := &p.Steps[i]
		if st.Verb != pool.Create || st.Later {
			continue
		}
		st.Cluster, names = names[0], names[1:]
		if st.Customization != "" {
			st.Customization = t.inventoryPlan.ReserveFor(st.Cluster)
		}
	}
	return p, nil
}

// maxLabelLength is the maximum length of a label value; a cluster's name is used as one.
const maxLabelLength = 63

// maxNameLength returns the maximum length of the names of a pool's clusters.
func maxNameLength(p *hivev1.ClusterPool) int {
	if facts.IsFake(p) || p.Spec.Platform.Local != nil {
		return maxLabelLength
	}
	return config.MaxCloudName
}

// generateNames returns random names for n new clusters.
func (o *observation) generateNames(n int, suffix func() string) []string {
	var out []string
	for len(out) < n {
		name := clusterName(o.pool.Name, suffix(), maxNameLength(o.pool))
		if o.clusters[name] == nil && !slices.Contains(o.pool.Status.Pending, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// clusterName returns <pool>-<suffix>; it cuts a long pool name and inserts a hash of it.
func clusterName(poolName, suffix string, most int) string {
	if len(poolName)+1+len(suffix) <= most {
		return poolName + "-" + suffix
	}
	sum := sha256.Sum256([]byte(poolName))
	tail := "-" + hex.EncodeToString(sum[:])[:6] + "-" + suffix
	return poolName[:most-len(tail)] + tail
}

// prepareCreations confirms that clusters may be created for the pool, and reads the Secrets that
// they are created with. The observation does not include the Secrets: most passes create nothing.
func (t *execution) prepareCreations(ctx context.Context) error {
	if err := t.confirmAllObserved(ctx); err != nil {
		return err
	}
	if err := t.confirmPoolUnchanged(ctx); err != nil {
		return err
	}
	var err error
	t.builder, err = t.newClusterBuilder(ctx, t.seen)
	return err
}

// createCluster creates a cluster under a recorded name. It does not change objects that exist
// already.
//
// The lease of the customization is the first write of a creation, and no step of its own: without
// the lease, nothing may be created.
func (t *execution) createCluster(ctx context.Context, st pool.Step) error {
	c, err := t.acquireLease(ctx, st)
	if err != nil {
		return err
	}
	name := st.Cluster
	objects, cd, err := t.builder.buildObjects(name, c)
	if err != nil {
		return err
	}
	setFirstPowerState(cd, st)
	for _, o := range append(objects, cd) {
		err := t.Client.Create(ctx, o)
		if apierrors.IsAlreadyExists(err) {
			err = t.confirmExisting(ctx, o, *cd.Spec.ClusterPoolRef)
		}
		if err != nil {
			return fmt.Errorf("creating %s of cluster %s: %w", describeObject(o), name, err)
		}
	}
	if cd.ResourceVersion != "" {
		t.clusters.RecordWrite(cd, t.Clock.Now())
		t.Metrics.RecordPoolStep(t.seen.poolKey(), pool.Step{Verb: pool.Create})
		t.recordEvent(t.pool, cd, "Created", "Create", "cluster %s", name)
	}
	return nil
}

// setFirstPowerState sets the power state with which a cluster is created. A step without one leaves it to the next pass.
func setFirstPowerState(cd *hivev1.ClusterDeployment, st pool.Step) {
	cd.Spec.PowerState = hivev1.PowerState(st.Power)
	if st.Depth != "" {
		metav1.SetMetaDataAnnotation(&cd.ObjectMeta, hivev1.AnnotationSleepDepth, st.Depth)
	}
}

// acquireLease acquires the lease of the step's customization for a cluster that is about to be
// created, and returns the customization as written; nil if the cluster takes none. Losing a race
// for it is a Conflict.
func (t *execution) acquireLease(ctx context.Context, st pool.Step) (*hivev1.ClusterDeploymentCustomization, error) {
	if st.Customization == "" {
		return nil, nil
	}
	c := t.seen.customizations[st.Customization]
	if c == nil {
		return nil, fault.New(fault.Conflict, fmt.Errorf("customization %s for cluster %s does not exist", st.Customization, st.Cluster))
	}
	if holder, leased := lease.Holder(c); !leased || holder.Name != st.Cluster {
		var err error
		if c, err = t.patchLease(ctx, c, st.Cluster); err != nil {
			return nil, err
		}
	}
	return c, t.confirmRecorded(ctx, st.Cluster, st.Customization)
}

// patchLease gives the lease of a free customization to a cluster: first the finalizer, then the
// lease.
func (t *execution) patchLease(ctx context.Context, c *hivev1.ClusterDeploymentCustomization, cluster string) (*hivev1.ClusterDeploymentCustomization, error) {
	before := c.DeepCopy()
	c = c.DeepCopy()
	controllerutil.AddFinalizer(c, hivev1.FinalizerLease)
	if _, err := patch.Object(ctx, t.Client, before, c); err != nil {
		return nil, fmt.Errorf("adding the finalizer of cluster %s to customization %s: %w", cluster, before.Name, err)
	}
	applied, err := json.Marshal(c.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding customization %s: %w", c.Name, err)
	}
	before = c.DeepCopy()
	lease.Acquire(c, types.NamespacedName{Namespace: cluster, Name: cluster}, t.seen.poolKey(), t.Clock.Now(), string(applied))
	kstatus.ReportCustomization(c, t.Clock.Now())
	if _, err := patch.Status(ctx, t.Client, before, c); err != nil {
		return nil, fmt.Errorf("acquiring the lease of customization %s for cluster %s: %w", before.Name, cluster, err)
	}
	t.customizations.RecordWrite(c, t.Clock.Now())
	return c, nil
}

func describeObject(o client.Object) string {
	switch o.(type) {
	case *corev1.Namespace:
		return "the namespace"
	case *corev1.Secret:
		return "Secret " + o.GetName()
	default:
		return "the ClusterDeployment"
	}
}
