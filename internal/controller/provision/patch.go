package provision

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/provision"
)

// patchCluster patches the cluster, except its status.
func (p *pass) patchCluster(ctx context.Context, edit func(*hivev1.ClusterDeployment)) error {
	before := p.cluster.DeepCopy()
	edit(p.cluster)
	wrote, err := patch.Object(ctx, p.Client, before, p.cluster)
	p.recordWrite(wrote && err == nil)
	return err
}

// recordWrite records the cluster as just written, if it was.
func (p *pass) recordWrite(wrote bool) {
	if wrote {
		p.clusters.RecordWrite(p.cluster.DeepCopy(), p.now)
	}
}

func (p *pass) patchAttempt(ctx context.Context, s provision.Step, edit func(*hivev1.ClusterProvisionSpec)) error {
	cp := p.attemptByName(s.Name)
	before := cp.DeepCopy()
	edit(&cp.Spec)
	_, err := patch.Object(ctx, p.Client, before, cp)
	return err
}

// setAttemptCondition sets a condition of the attempt to True.
func (p *pass) setAttemptCondition(ctx context.Context, s provision.Step, typ, reason, message string) error {
	cp := p.attemptByName(s.Name)
	before := cp.DeepCopy()
	condition.Set(&cp.Status.Conditions, typ, corev1.ConditionTrue, reason, message, p.now)
	_, err := patch.Status(ctx, p.Client, before, cp)
	return err
}

// addLabels sets labels and leaves others unchanged.
func addLabels(obj client.Object, add map[string]string) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, add)
	obj.SetLabels(labels)
}

// attemptByName returns the observed attempt of that name. Decide names no other.
func (p *pass) attemptByName(name string) *hivev1.ClusterProvision {
	for _, cp := range p.attempts {
		if cp.Name == name {
			return cp
		}
	}
	return nil
}

// latestAttempt returns the observed attempt with the highest number, or nil.
func (p *pass) latestAttempt() *hivev1.ClusterProvision {
	var last *hivev1.ClusterProvision
	for _, cp := range p.attempts {
		if last == nil || cp.Spec.Attempt > last.Spec.Attempt {
			last = cp
		}
	}
	return last
}
