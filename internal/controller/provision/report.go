package provision

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/provision"
)

// patchClusterStatus writes the cluster's status: once per pass, and only what changed.
func (p *pass) patchClusterStatus(ctx context.Context, plan provision.Plan) error {
	if len(plan.Conditions) == 0 {
		return nil
	}
	before := p.cluster.DeepCopy()
	p.reportConditions(plan)
	p.reportAttempts()
	p.reportImages()
	p.reportInstalled()
	if !p.cluster.Spec.Installed {
		p.cluster.Status.ObservedGeneration = p.cluster.Generation // for installed clusters, package power reports it
	}
	kstatus.ReportClusterDeployment(p.cluster, p.now)
	wrote, err := patch.Status(ctx, p.Client, before, p.cluster)
	if err != nil {
		return err
	}
	p.recordWrite(wrote)
	p.Metrics.RecordProvisionFailure(before, p.cluster)
	return client.IgnoreNotFound(p.patchDeprovisionStatus(ctx, func(*hivev1.ClusterDeprovisionStatus) {}))
}

// patchAttemptStatuses writes the kstatus conditions of each attempt, once per pass and after its
// last step. While a cluster is being deleted, its ClusterDeprovision shows the progress instead.
func (p *pass) patchAttemptStatuses(ctx context.Context, plan provision.Plan) error {
	if len(plan.Conditions) == 0 || isDeleting(p.cluster) {
		return nil
	}
	for _, cp := range p.attempts {
		before := cp.DeepCopy()
		kstatus.ReportClusterProvision(cp, p.cluster, p.now)
		if _, err := patch.Status(ctx, p.Client, before, cp); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reporting on ClusterProvision %s: %w", cp.Name, err)
		}
	}
	return nil
}

// reportConditions sets the conditions of the plan. Conditions that were never known are set to
// Unknown; clients hide them.
func (p *pass) reportConditions(plan provision.Plan) {
	conditions := &p.cluster.Status.Conditions
	for _, c := range plan.Conditions {
		condition.Apply(conditions, c.Type, c.Value, p.now)
	}
	for _, typ := range provision.ConditionTypes() {
		if condition.Find(*conditions, typ) == nil {
			condition.Set(conditions, typ, corev1.ConditionUnknown, hivev1.ReasonInitialized, "The state is not known yet.", p.now)
		}
	}
}

func (p *pass) reportAttempts() {
	last := p.latestAttempt()
	if last == nil {
		return
	}
	status := &p.cluster.Status
	status.ProvisionRef = &corev1.LocalObjectReference{Name: last.Name}
	status.InstallRestarts = last.Spec.Attempt
	if status.InstallStartedTimestamp == nil {
		status.InstallStartedTimestamp = p.passTimestamp()
	}
}

// reportImages records the images of the installer in use. Destroying the cluster uses them, too.
func (p *pass) reportImages() {
	if image := p.result.InstallerImage; image != "" {
		p.cluster.Status.InstallerImage = &image
	}
	if image := p.result.CLIImage; image != "" {
		p.cluster.Status.CLIImage = &image
	}
}

// reportInstalled sets the status of a cluster that is installed, or is about to be marked so.
func (p *pass) reportInstalled() {
	made := p.result.Phase == install.Succeeded
	if !p.cluster.Spec.Installed && !made {
		return
	}
	status := &p.cluster.Status
	if made {
		status.APIURL, status.WebConsoleURL = p.result.APIURL, p.result.WebConsoleURL
		status.InstallVersion = &p.result.Version
	}
	if status.InstalledTimestamp == nil {
		status.InstalledTimestamp = p.installedTimestamp()
	}
}

// installedTimestamp returns now for a cluster that hotspare has installed. The install time of
// an adopted cluster is unknown: the creation time of its object is used.
func (p *pass) installedTimestamp() *metav1.Time {
	if len(p.attempts) == 0 {
		return p.cluster.CreationTimestamp.DeepCopy()
	}
	return p.passTimestamp()
}

// passTimestamp returns the time of the pass, as precise as the API stores it.
func (p *pass) passTimestamp() *metav1.Time {
	now := metav1.NewTime(p.now).Rfc3339Copy()
	return &now
}
