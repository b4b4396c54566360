package power

import (
	"context"
	"errors"
	"fmt"
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

// callTimeout limits each call to a platform.
const callTimeout = time.Minute

// observeCluster gathers the input of power.Decide. It asks the platform and the spoke only if
// the answer matters. Returned errors are the hub's own.
func (r *Reconciler) observeCluster(ctx context.Context, cd *hivev1.ClusterDeployment) (power.Snapshot, error) {
	s := describeCluster(cd)
	actuator := r.Actuators.ActuatorFor(cd.Spec.Platform)
	if p, ok := actuator.(cloud.HibernationPredictor); ok {
		s.PlatformObstacle = p.HibernationObstacle(cd.Spec.Platform)
	}
	s.Actuator = actuator != nil && s.PlatformObstacle == ""
	_, s.StopDeletesMachines = actuator.(cloud.LostInstanceLister)
	_, s.StopSuspendsControllers = actuator.(cloud.ResumeCompleter)
	if p, ok := actuator.(cloud.DepthReporter); ok {
		s.Depths = p.ReportDepths(cd.Spec.Platform)
	}
	if err := r.observeInactivity(ctx, actuator, cd, &s); err != nil {
		return s, err
	}
	if s.Deleted {
		r.Remote.ForgetClient(kubeconfigSecret(cd))
	}
	if s.ManagesMachines() && s.Actuator {
		var err error
		s.Machines, err = r.observeMachines(ctx, actuator, cd, s)
		s.MachinesFailure = power.NewFailure(err)
	}
	if !s.NeedsSpoke() {
		return s, nil
	}
	var err error
	s.Spoke, err = r.Remote.ObserveSpoke(ctx, kubeconfigSecret(cd), remote.ObserveOptions{
		Operators: s.NeedsOperators(), ResumeProbe: s.NeedsResumeProbe(), SpotMachines: s.NeedsSpotMachines(), RetryOnce: s.HasComeUp(), Version: s.NeedsVersion(),
		Activity: s.NeedsActivity(), IgnoredNamespaces: s.IgnoredNamespaces,
	})
	if err == nil && len(s.Spoke.SpotMachines) > 0 {
		s.SpotFailure = power.NewFailure(markGoneSpots(ctx, actuator, cd, &s))
	}
	if err != nil || !s.NeedsCertificateRequests(r.Clock.Now()) {
		return s, err
	}
	s.Spoke.Requests, err = r.Remote.ListCertificateRequests(ctx, kubeconfigSecret(cd), remote.ListRequestsOptions{Machines: !s.HasMachineNodes()})
	return s, err
}

// markGoneSpots marks the spot machines of the cluster that no longer exist at the platform.
func markGoneSpots(ctx context.Context, actuator cloud.Actuator, cd *hivev1.ClusterDeployment, s *power.Snapshot) error {
	var ids []string
	for _, m := range s.SuspectSpotMachines() {
		ids = append(ids, m.ProviderID)
	}
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	gone, err := actuator.(cloud.LostInstanceLister).ListLostInstances(ctx, cloudRef(cd), ids)
	if err != nil {
		return err
	}
	for i, m := range s.Spoke.SpotMachines {
		s.Spoke.SpotMachines[i].InstanceLost = slices.Contains(gone, m.ProviderID)
	}
	return nil
}

var errNoMetadata = errors.New("spec.clusterMetadata has no infraID")

// observeMachines reads the machines from the platform, after confirming that the cluster owns
// them.
func (r *Reconciler) observeMachines(ctx context.Context, actuator cloud.Actuator, cd *hivev1.ClusterDeployment, s power.Snapshot) (cloud.Machines, error) {
	ref := sleepRef(cd, s)
	if ref.InfraID == "" {
		return nil, errNoMetadata
	}
	if err := r.confirmOwner(ctx, cd, ref.InfraID); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return actuator.Observe(ctx, ref)
}

// confirmOwner returns a fault.Denied unless hotspare may start and stop the machines of an infraID from
// this ClusterDeployment.
func (r *Reconciler) confirmOwner(ctx context.Context, cd *hivev1.ClusterDeployment, infraID string) error {
	if err := ownership.ConfirmOwner(ctx, r.Client, cd, infraID); err != nil {
		return err
	}
	return ownership.ConfirmAdopter(ctx, r.Client, cd, infraID)
}

// describeCluster returns the part of the snapshot that the ClusterDeployment itself contains.
func describeCluster(cd *hivev1.ClusterDeployment) power.Snapshot {
	s := power.Snapshot{
		Seed:          string(cd.UID),
		DesiredState:  cd.Spec.PowerState,
		Deleted:       !cd.DeletionTimestamp.IsZero(),
		Installed:     cd.Spec.Installed,
		Paused:        hivev1.IsTrue(cd.Annotations, hivev1.AnnotationPowerPause),
		LeaveRequests: hivev1.IsTrue(cd.Annotations, hivev1.AnnotationLeaveRequests),
		Fake:          hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake),
		Platform:      cd.Spec.Platform.Name(),
		Version:       reportedVersion(cd.Status),
		InfraID:       cloudRef(cd).InfraID,
		SkipOperators: hivev1.IsTrue(cd.Labels, hivev1.LabelSkipClusterOperators),
		Record:        cd.Status.PowerTransition,
		InstalledAt:   timeOrZero(cd.Status.InstalledTimestamp),
	}
	if v := cd.Status.InstallVersion; v != nil {
		s.InstallVersion = *v
	}
	s.Limits, s.SpecProblem = parseLimits(cd.Spec)
	var err error
	if s.WantedDepth, err = cloud.ParseDepth(cd.Annotations[hivev1.AnnotationSleepDepth]); err != nil {
		s.WantedDepth = cloud.DepthStop
		s.SpecProblem = joinSentences(s.SpecProblem, fmt.Sprintf("The annotation %s is ignored: %s.", hivev1.AnnotationSleepDepth, err))
	}
	if p := cd.Spec.ClusterPoolRef; p != nil && p.PoolName != "" {
		s.Pooled = true
		if p.ClaimName != "" {
			s.ClaimedAt = timeOrZero(p.ClaimedTimestamp)
		}
	}
	return s
}

func joinSentences(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// parseLimits parses the durations in the specification. One that cannot be parsed counts as
// absent, and the returned complaint says so.
func parseLimits(spec hivev1.ClusterDeploymentSpec) (power.Limits, string) {
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

func cloudRef(cd *hivev1.ClusterDeployment) cloud.Ref {
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

// sleepRef is cloudRef with the depth at which the cluster should sleep.
func sleepRef(cd *hivev1.ClusterDeployment, s power.Snapshot) cloud.Ref {
	ref := cloudRef(cd)
	ref.Depth, ref.RefusedDepths = s.TargetDepth(), s.RefusedDepths()
	return ref
}

// kubeconfigSecret returns the name of the Secret with the cluster's admin kubeconfig.
func kubeconfigSecret(cd *hivev1.ClusterDeployment) types.NamespacedName {
	name := types.NamespacedName{Namespace: cd.Namespace}
	if md := cd.Spec.ClusterMetadata; md != nil {
		name.Name = md.AdminKubeconfigSecretRef.Name
	}
	return name
}

func timeOrZero(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
