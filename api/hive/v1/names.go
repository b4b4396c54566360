package v1

import (
	"fmt"
	"strconv"
)

// Finalizers.
const (
	// FinalizerPool keeps a ClusterPool until its clusters are deleted.
	FinalizerPool = "hive.openshift.io/clusters"
	// FinalizerClaim keeps a ClusterClaim until its cluster is deleted.
	FinalizerClaim = "hive.openshift.io/claim"
	// FinalizerMachinePool keeps a MachinePool until its machines are deleted.
	FinalizerMachinePool = "hive.openshift.io/remotemachineset"
	// FinalizerDeprovision keeps a ClusterDeployment until its cluster is destroyed.
	FinalizerDeprovision = "hive.openshift.io/deprovision"
	// FinalizerLease keeps a ClusterDeployment until its customization has been released, and a
	// ClusterDeploymentCustomization while a cluster uses it.
	FinalizerLease = "hotspare.io/customization-lease"
)

// Labels.
const (
	// LabelPoolName and LabelPoolNamespace identify the pool of a cluster. They are set on the
	// ClusterDeployment and on its namespace.
	LabelPoolName      = "hive.openshift.io/clusterpool-name"
	LabelPoolNamespace = "hive.openshift.io/clusterpool-namespace"
	// LabelNamespacePoolName is the label that Hive sets on the namespace of a pool's cluster.
	LabelNamespacePoolName = "hive.openshift.io/cluster-pool-name"
	// LabelPlatform, LabelRegion and the version labels describe a ClusterDeployment.
	LabelPlatform               = "hive.openshift.io/cluster-platform"
	LabelRegion                 = "hive.openshift.io/cluster-region"
	LabelType                   = "hive.openshift.io/cluster-type"
	LabelVersion                = "hive.openshift.io/version"
	LabelVersionMajor           = "hive.openshift.io/version-major"
	LabelVersionMajorMinor      = "hive.openshift.io/version-major-minor"
	LabelVersionMajorMinorPatch = "hive.openshift.io/version-major-minor-patch"
	// LabelSkipClusterOperators, if true, makes a resume not wait for the cluster operators.
	LabelSkipClusterOperators = "hive.openshift.io/resume-skips-cluster-operators"
	// LabelClusterDeployment is set on objects that belong to a ClusterDeployment.
	LabelClusterDeployment = "hive.openshift.io/cluster-deployment-name"
	// LabelSecretType is the content of a Secret: kubeconfig, kubeadmincreds or metadata.
	LabelSecretType = "hive.openshift.io/secret-type"
	// LabelManaged is set on the MachineSets of a MachinePool, where users of Hive expect it.
	LabelManaged = "hive.openshift.io/managed"
	// LabelMachinePool is the MachinePool of a MachineSet, or of the Machine of a local worker.
	LabelMachinePool = "hive.openshift.io/machine-pool"
	// LabelInstaller is set on the Jobs that run an installer and on their pods. Its value is the
	// task of the Job.
	LabelInstaller = "hotspare.io/installer"
	// LabelJobType is set on the same Jobs and pods, with a value of JobType: clients of Hive use
	// it to find the logs of an installation. LabelInstall, LabelUninstall and LabelImageSet are
	// its older forms, with the value true.
	LabelJobType   = "hive.openshift.io/job-type"
	LabelInstall   = "hive.openshift.io/install"
	LabelUninstall = "hive.openshift.io/uninstall"
	LabelImageSet  = "hive.openshift.io/imageset"
	// LabelClusterProvision and LabelClusterDeprovision are the name of the object that a Job works
	// for.
	LabelClusterProvision   = "hive.openshift.io/cluster-provision-name"
	LabelClusterDeprovision = "hive.openshift.io/cluster-deprovision-name"
	// LabelInfraID is set on the Jobs that create resources with an infraID.
	LabelInfraID = "hotspare.io/infra-id"
	// LabelAccess is set on Roles and RoleBindings that hotspare creates, with AccessClaimOwner or
	// AccessPoolAdmin.
	LabelAccess = "hive.openshift.io/access"
)

// Values of LabelAccess: who gets access from a Role or RoleBinding.
const (
	AccessClaimOwner = "claim-owner"
	AccessPoolAdmin  = "pool-admin"
)

// Values of LabelJobType: the task of a Job.
const (
	JobTypeImageSet    = "imageset"
	JobTypeProvision   = "provision"
	JobTypeDeprovision = "deprovision"
)

// Values of LabelSecretType for Secrets through which the installer's pods and hotspare exchange
// state.
const (
	SecretTypeInstall = "install-state"
	SecretTypeDestroy = "destroy-state"
)

// Annotations.
const (
	// AnnotationFake makes a ClusterDeployment go through its whole life cycle immediately and
	// without a cloud.
	AnnotationFake = "hive.openshift.io/fake-cluster"
	// AnnotationPoolVersion is the version of the pool from which a cluster was created.
	AnnotationPoolVersion = "hive.openshift.io/cluster-pool-spec-hash"
	// AnnotationCustomizationVersion is the version of the customization with which a cluster was
	// created.
	AnnotationCustomizationVersion = "hotspare.io/customization-version"
	// AnnotationSourceVersion identifies the versions, without the content, of the Secrets and the
	// customization to which the pool referred when it created the cluster.
	AnnotationSourceVersion = "hotspare.io/source-version"
	// AnnotationRecipeVersion is status.recipeVersion of the pool when it created the cluster: the
	// version of the recipe on platform exec, of the ClusterClass or the template on platform capi.
	AnnotationRecipeVersion = "hotspare.io/recipe-version"
	// AnnotationRemove marks a cluster of a pool for removal.
	AnnotationRemove = "hive.openshift.io/remove-cluster-from-pool"
	// AnnotationRemoveLegacy is the older spelling of AnnotationRemove.
	AnnotationRemoveLegacy = "hive.openshift.io/remove-claimed-cluster-from-pool"
	// AnnotationReconcilePause makes hotspare not reconcile a ClusterDeployment.
	AnnotationReconcilePause = "hive.openshift.io/reconcile-pause"
	// AnnotationPowerPause makes hotspare neither start nor stop the machines of a
	// ClusterDeployment.
	AnnotationPowerPause = "hive.openshift.io/powerstate-pause"
	// AnnotationLeaveRequests makes hotspare approve no CertificateSigningRequests of the cluster's
	// nodes.
	AnnotationLeaveRequests = "hotspare.io/leave-certificate-requests"
	// AnnotationCreator, on a ClusterClaim, is the user who created it, and AnnotationCreatorGroups are
	// the groups of that user, one a line. An admission policy of the hub sets both and permits no
	// other values.
	AnnotationCreator       = "hotspare.io/creator"
	AnnotationCreatorGroups = "hotspare.io/creator-groups"
	// AnnotationHeartbeatTimeout, on a ClusterClaim or a ClaimSet, makes hotspare release the claim or the
	// set when its heartbeat is missing for this time, such as 90s: at least 10s.
	AnnotationHeartbeatTimeout = "hotspare.io/heartbeat-timeout"
	// AnnotationHeartbeat, on a ClusterClaim or a ClaimSet, is the heartbeat of the process that uses its
	// clusters. Every change of the value is a heartbeat; hotspare does not interpret the value.
	AnnotationHeartbeat = "hotspare.io/heartbeat"
	// AnnotationPriority, on a ClusterClaim, is its priority among the claims that wait: a whole number from
	// MinPriority to MaxPriority, 0 if unset. For each 1 of it, the claim counts as created a minute earlier.
	// ParsePriority reads it.
	AnnotationPriority = "hotspare.io/priority"
	// AnnotationDiagnoseAtRelease, on a ClusterClaim, requests a bundle of diagnostics of its cluster before the
	// cluster is destroyed: true or false. The destruction waits for the bundle for two minutes at most.
	AnnotationDiagnoseAtRelease = "hotspare.io/diagnose-at-release"
	// AnnotationShelve makes hibernation shelve OpenStack servers, which frees their hosts, instead
	// of stopping them.
	AnnotationShelve = "hotspare.io/shelve"
	// AnnotationSleepDepth is the depth at which the cluster sleeps while it hibernates: freeze, suspend or
	// stop, which is the default. A depth that the platform does not have becomes the next deeper one.
	AnnotationSleepDepth = "hotspare.io/sleep-depth"
	// AnnotationSleepLadder, on a ClusterPool, says at which depths its spare clusters sleep: freeze:1,stop
	// means one at depth freeze and the others at depth stop. hotspare then sets AnnotationSleepDepth of the
	// spares. A PoolPolicy with spec.sleep writes it.
	AnnotationSleepLadder = "hotspare.io/sleep-ladder"
	// AnnotationInactivity is hotspare's record of the inactivity of a claimed cluster: Hibernating while it
	// hibernates because nobody used it, and Woken while it runs because a client connected and no request of
	// anybody has followed. A number after it counts the wakes in a row that no request has followed.
	AnnotationInactivity = "hotspare.io/inactivity"
	// AnnotationProtectedDelete makes the API server reject the deletion of a ClusterDeployment.
	AnnotationProtectedDelete = "hive.openshift.io/protected-delete"
	// AnnotationTryInstallOnce limits a ClusterDeployment to one install attempt.
	AnnotationTryInstallOnce = "hive.openshift.io/try-install-once"
	// AnnotationEmptySince is set on a node of an autoscaled local pool: the time since which it
	// has run no pods that keep it from being removed.
	AnnotationEmptySince = "hotspare.io/empty-since"
	// AnnotationClaim is the claim, as namespace/name, for whose subjects a Role or RoleBinding was
	// created.
	AnnotationClaim = "hive.openshift.io/cluster-claim"
)

// The limits of AnnotationPriority.
const (
	MinPriority = -1000
	MaxPriority = 1000
)

// ParsePriority returns the value of AnnotationPriority; 0 if it is empty. If it returns an error, the priority is
// 0. It accepts one spelling of each number, as the admission policy of claims does.
func ParsePriority(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < MinPriority || n > MaxPriority {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d", text, MinPriority, MaxPriority)
	}
	return n, nil
}

// Names of objects that hotspare creates in a cluster's namespace.
const (
	// ClaimOwnerRole is the Role, and the RoleBinding, of a claim's subjects.
	ClaimOwnerRole = "hive-claim-owner"
	// PoolAdminClusterRole is a ClusterRole. If it is bound in a pool's namespace, hotspare binds
	// its subjects in the namespaces of the pool's clusters, too.
	PoolAdminClusterRole = "hive-cluster-pool-admin"
	// PoolAdminBinding is the name of the RoleBinding that hotspare creates there.
	PoolAdminBinding = "hive-cluster-pool-admin-binding"
)

// Keys of Secrets.
const (
	SecretKeyKubeconfig    = "kubeconfig"
	SecretKeyUsername      = "username"
	SecretKeyPassword      = "password"
	SecretKeyInstallConfig = "install-config.yaml"
	// SecretKeyManifestPatches is in the same Secret, for a cluster of a pool whose customizations
	// patch manifests: the patches at the time when the cluster was created.
	SecretKeyManifestPatches = "manifest-patches.json"
	SecretKeyPullSecret      = ".dockerconfigjson"
	SecretKeyMetadata        = "metadata.json"
	SecretKeySSHPublic       = "ssh-publickey"
	// SecretKeyClusterAPIKubeconfig is the key of the kubeconfig in the Secrets of Cluster API.
	SecretKeyClusterAPIKubeconfig = "value"
)

// KubeconfigOf returns the kubeconfig in the data of a Secret that spec.clusterMetadata names: that under
// key kubeconfig or, in a Secret of Cluster API, that under key value. It is empty if there is none.
func KubeconfigOf(data map[string][]byte) []byte {
	if raw := data[SecretKeyKubeconfig]; len(raw) > 0 {
		return raw
	}
	return data[SecretKeyClusterAPIKubeconfig]
}
