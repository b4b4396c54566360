package metrics

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// RecordInstall measures the installation of a cluster that has just been marked as installed.
func (m *Metrics) RecordInstall(cd *hivev1.ClusterDeployment) {
	began, ended := cd.Status.InstallStartedTimestamp, cd.Status.InstalledTimestamp
	if m == nil || began == nil || ended == nil {
		return
	}
	ref := poolRef(cd)
	m.install.WithLabelValues(ref.Namespace, ref.PoolName, cd.Spec.Platform.Name()).Observe(ended.Sub(began.Time).Seconds())
}

// RecordProvisionFailure counts a cluster once its status first reports that its installation was
// given up.
func (m *Metrics) RecordProvisionFailure(before, after *hivev1.ClusterDeployment) {
	const stopped = hivev1.ClusterProvisionStopped
	if m == nil || condition.IsTrue(before.Status.Conditions, stopped) || !condition.IsTrue(after.Status.Conditions, stopped) {
		return
	}
	ref, name := poolRef(after), ""
	if ref.PoolName != "" {
		name = ref.Namespace + "/" + ref.PoolName
	}
	reason := "unknown"
	if c := condition.Find(after.Status.Conditions, hivev1.ClusterProvisionFailed); c != nil && c.Status == corev1.ConditionTrue {
		reason = cmp.Or(c.Reason, reason)
	}
	m.terminal.WithLabelValues(name, m.installReasons.limitValue(reason)).Inc()
}

// RecordPowerTransition measures how long a cluster took to reach its desired power state, once its
// status first reports that it has. A cluster that started with its installation was not resumed:
// counting it would hide how long resumes take.
func (m *Metrics) RecordPowerTransition(before, after *hivev1.ClusterDeployment) {
	was, is := before.Status.PowerTransition, after.Status.PowerTransition
	if m == nil || is == nil || is.FinishedAt == nil || alreadyFinished(was, is) {
		return
	}
	slept := was != nil && was.Target == hivev1.PowerHibernating
	if !slept && is.Target == hivev1.PowerRunning && is.StartedAt.Equal(after.Status.InstalledTimestamp) {
		return
	}
	span := m.hibernate
	if is.Target == hivev1.PowerRunning {
		span = m.resume
	}
	ref := poolRef(after)
	span.WithLabelValues(m.versions.limitValue(installVersion(after)), after.Spec.Platform.Name(), ref.Namespace, ref.PoolName).
		Observe(is.FinishedAt.Sub(is.StartedAt.Time).Seconds())
}

// RecordCertificateApproval counts a node's CertificateSigningRequest that was approved.
func (m *Metrics) RecordCertificateApproval(signer string) {
	if m == nil {
		return
	}
	m.certificates.WithLabelValues(signer).Inc()
}

// RecordGateVerdict counts a verdict of the gates about a cluster that differs from the one before.
func (m *Metrics) RecordGateVerdict(cd *hivev1.ClusterDeployment, passed bool) {
	if m == nil {
		return
	}
	verdict := "failed"
	if passed {
		verdict = "passed"
	}
	ref := poolRef(cd)
	m.gates.WithLabelValues(ref.Namespace, ref.PoolName, verdict).Inc()
}

// RecordBootstrapStep counts a step of a bootstrap that is done, or that has begun to fail.
func (m *Metrics) RecordBootstrapStep(cd *hivev1.ClusterDeployment, done bool) {
	if m == nil {
		return
	}
	outcome := "failed"
	if done {
		outcome = "done"
	}
	ref := poolRef(cd)
	m.bootstrapSteps.WithLabelValues(ref.Namespace, ref.PoolName, outcome).Inc()
}

// alreadyFinished reports whether before is the same transition as now, and had finished.
func alreadyFinished(before, now *hivev1.PowerTransition) bool {
	return before != nil && before.FinishedAt != nil && before.Target == now.Target && before.StartedAt.Equal(&now.StartedAt)
}

func installVersion(cd *hivev1.ClusterDeployment) string {
	if v := cd.Status.InstallVersion; v != nil {
		return *v
	}
	return ""
}

func poolRef(cd *hivev1.ClusterDeployment) hivev1.ClusterPoolReference {
	if cd.Spec.ClusterPoolRef == nil {
		return hivev1.ClusterPoolReference{}
	}
	return *cd.Spec.ClusterPoolRef
}
