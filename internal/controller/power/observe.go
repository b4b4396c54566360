package power

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/ownership"
	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/remote"
)

// callTimeout bounds each call of a platform.
const callTimeout = time.Minute

// observe gathers what power.Next goes by. It asks the platform and the spoke
// only if the answer counts. Errors are the hub's own.
func (r *Reconciler) observe(ctx context.Context, cd *hivev1.ClusterDeployment) (power.Seen, error) {
	s := described(cd)
	actuator := r.Actuators.For(cd.Spec.Platform)
	s.Actuator = actuator != nil
	_, s.Ends = actuator.(cloud.Spot)
	if s.Deleted {
		r.Remote.Forget(kubeconfig(cd))
	}
	if s.Acting() && s.Actuator {
		var err error
		s.Machines, err = r.machines(ctx, actuator, cd)
		s.MachinesFault = power.FailureOf(err)
	}
	if !s.AsksSpoke() {
		return s, nil
	}
	var err error
	s.Spoke, err = r.Remote.Look(ctx, kubeconfig(cd), remote.Ask{
		Operators: s.AsksOperators(), Errand: s.AsksErrand(), Spots: s.AsksSpots(), Again: s.Arrived(), Version: s.AsksVersion(),
	})
	if err == nil && len(s.Spoke.Spots) > 0 {
		s.SpotFault = power.FailureOf(askSpots(ctx, actuator, cd, &s))
	}
	if err != nil || !s.AsksRequests(r.Clock.Now()) {
		return s, err
	}
	s.Spoke.Requests, err = r.Remote.Requests(ctx, kubeconfig(cd), remote.AskRequests{Machines: !s.KnowsNodes()})
	return s, err
}

// askSpots marks those spot machines of the cluster that are gone for good.
func askSpots(ctx context.Context, actuator cloud.Power, cd *hivev1.ClusterDeployment, s *power.Seen) error {
	var ids []string
	for _, m := range s.Suspects() {
		ids = append(ids, m.ProviderID)
	}
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	gone, err := actuator.(cloud.Spot).Lost(ctx, refOf(cd), ids)
	if err != nil {
		return err
	}
	for i, m := range s.Spoke.Spots {
		s.Spoke.Spots[i].Gone = slices.Contains(gone, m.ProviderID)
	}
	return nil
}

var errNoMetadata = errors.New("spec.clusterMetadata has no infraID")

// machines observes the machines of a cluster, if they are its own.
func (r *Reconciler) machines(ctx context.Context, actuator cloud.Power, cd *hivev1.ClusterDeployment) (cloud.Machines, error) {
	ref := refOf(cd)
	if ref.InfraID == "" {
		return nil, errNoMetadata
	}
	if err := ownership.Confirm(ctx, r.Client, cd, ref.InfraID); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return actuator.Observe(ctx, ref)
}

// described is what the ClusterDeployment itself says.
func described(cd *hivev1.ClusterDeployment) power.Seen {
	s := power.Seen{
		Seed:          string(cd.UID),
		Wanted:        cd.Spec.PowerState,
		Deleted:       !cd.DeletionTimestamp.IsZero(),
		Installed:     cd.Spec.Installed,
		Paused:        hivev1.IsTrue(cd.Annotations, hivev1.AnnotationPowerPause),
		LeaveRequests: hivev1.IsTrue(cd.Annotations, hivev1.AnnotationLeaveRequests),
		Fake:          hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake),
		Platform:      cd.Spec.Platform.Name(),
		Version:       reportedVersion(cd.Status),
		InfraID:       refOf(cd).InfraID,
		SkipOperators: hivev1.IsTrue(cd.Labels, hivev1.LabelSkipClusterOperators),
		Record:        cd.Status.PowerTransition,
		InstalledAt:   timeOf(cd.Status.InstalledTimestamp),
	}
	if v := cd.Status.InstallVersion; v != nil {
		s.InstallVersion = *v
	}
	s.Limits, s.Complaint = limitsOf(cd.Spec)
	if p := cd.Spec.ClusterPoolRef; p != nil && p.PoolName != "" {
		s.Pooled = true
		if p.ClaimName != "" {
			s.ClaimedAt = timeOf(p.ClaimedTimestamp)
		}
	}
	return s
}

// limitsOf reads the spans in the specification. One that cannot be read counts
// as absent, and the complaint says so.
func limitsOf(spec hivev1.ClusterDeploymentSpec) (power.Limits, string) {
	var limits power.Limits
	complaint := ""
	for _, f := range []struct {
		name string
		from *hivev1.Duration
		to   *time.Duration
	}{
		{"hibernateAfter", spec.HibernateAfter, &limits.HibernateAfter},
		{"powerstateTransitionToRunningTimeout", spec.PowerstateTransitionToRunningTimeout, &limits.ToRunning},
		{"powerstateTransitionToHibernatingTimeout", spec.PowerstateTransitionToHibernatingTimeout, &limits.ToHibernating},
	} {
		if f.from == nil {
			continue
		}
		span, err := f.from.Parse()
		if err != nil {
			complaint = "spec." + f.name + " is ignored: " + err.Error() + "."
		}
		*f.to = span
	}
	return limits, complaint
}

func refOf(cd *hivev1.ClusterDeployment) cloud.Ref {
	ref := cloud.Ref{
		Cluster:  client.ObjectKeyFromObject(cd),
		Platform: cd.Spec.Platform,
		Metadata: cd.Spec.ClusterMetadata,
		Shelve:   hivev1.IsTrue(cd.Annotations, hivev1.AnnotationShelve),
	}
	if ref.Metadata != nil {
		ref.InfraID = ref.Metadata.InfraID
	}
	if from := cd.Spec.Provisioning; from != nil && from.InstallConfigSecretRef != nil {
		ref.InstallConfig = from.InstallConfigSecretRef.Name
	}
	if t := cd.Status.PowerTransition; t != nil && t.Target == hivev1.PowerHibernating && t.FinishedAt == nil {
		ref.Since = t.StartedAt.Time
	}
	return ref
}

// kubeconfig names the Secret with the cluster's admin kubeconfig.
func kubeconfig(cd *hivev1.ClusterDeployment) types.NamespacedName {
	name := types.NamespacedName{Namespace: cd.Namespace}
	if md := cd.Spec.ClusterMetadata; md != nil {
		name.Name = md.AdminKubeconfigSecretRef.Name
	}
	return name
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
