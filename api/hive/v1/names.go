package v1

// Finalizers.
const (
	// FinalizerPool holds a ClusterPool until its clusters are gone.
	FinalizerPool = "hive.openshift.io/clusters"
	// FinalizerClaim holds a ClusterClaim until its cluster is gone.
	FinalizerClaim = "hive.openshift.io/claim"
	// FinalizerMachinePool holds a MachinePool until its machines are gone.
	FinalizerMachinePool = "hive.openshift.io/remotemachineset"
	// FinalizerDeprovision holds a ClusterDeployment until its cluster is destroyed.
	FinalizerDeprovision = "hive.openshift.io/deprovision"
	// FinalizerLease holds a ClusterDeployment until its customization has been released,
	// and a ClusterDeploymentCustomization while a cluster uses it.
	FinalizerLease = "hotspare.io/customization-lease"
)

// Labels.
const (
	// LabelPoolName and LabelPoolNamespace tell a cluster's pool, on the ClusterDeployment and on its namespace.
	LabelPoolName      = "hive.openshift.io/clusterpool-name"
	LabelPoolNamespace = "hive.openshift.io/clusterpool-namespace"
	// LabelNamespacePoolName is what Hive puts on the namespace of a pool's cluster.
	LabelNamespacePoolName = "hive.openshift.io/cluster-pool-name"
	// LabelPlatform, LabelRegion and the version labels describe a ClusterDeployment.
	LabelPlatform               = "hive.openshift.io/cluster-platform"
	LabelRegion                 = "hive.openshift.io/cluster-region"
	LabelType                   = "hive.openshift.io/cluster-type"
	LabelVersion                = "hive.openshift.io/version"
	LabelVersionMajor           = "hive.openshift.io/version-major"
	LabelVersionMajorMinor      = "hive.openshift.io/version-major-minor"
	LabelVersionMajorMinorPatch = "hive.openshift.io/version-major-minor-patch"
	// LabelSkipClusterOperators, when true, makes a resume not wait for cluster operators.
	LabelSkipClusterOperators = "hive.openshift.io/resume-skips-cluster-operators"
	// LabelClusterDeployment is on what belongs to a ClusterDeployment.
	LabelClusterDeployment = "hive.openshift.io/cluster-deployment-name"
	// LabelSecretType tells what a Secret holds: kubeconfig, kubeadmincreds, metadata.
	LabelSecretType = "hive.openshift.io/secret-type"
	// LabelManaged is on what Hive's users expect it on in a cluster: MachineSets of a MachinePool.
	LabelManaged = "hive.openshift.io/managed"
	// LabelMachinePool tells the MachinePool of a MachineSet, or of a local worker's Machine.
	LabelMachinePool = "hive.openshift.io/machine-pool"
	// LabelInstaller is on the Jobs that run an installer and on their pods, and tells what it does.
	LabelInstaller = "hotspare.io/installer"
	// LabelJobType is on the same, with a value of JobType: clients of Hive find the logs of
	// an install by it. LabelInstall, LabelUninstall and LabelImageSet are its older forms,
	// with value true.
	LabelJobType   = "hive.openshift.io/job-type"
	LabelInstall   = "hive.openshift.io/install"
	LabelUninstall = "hive.openshift.io/uninstall"
	LabelImageSet  = "hive.openshift.io/imageset"
	// LabelClusterProvision and LabelClusterDeprovision name the object that a Job works for.
	LabelClusterProvision   = "hive.openshift.io/cluster-provision-name"
	LabelClusterDeprovision = "hive.openshift.io/cluster-deprovision-name"
	// LabelInfraID is on those that make what an infraID marks.
	LabelInfraID = "hotspare.io/infra-id"
	// LabelAccess is on Roles and RoleBindings that hotspare makes, with AccessClaimOwner or AccessPoolAdmin.
	LabelAccess = "hive.openshift.io/access"
)

// Values of LabelAccess: to whom a Role or RoleBinding gives access.
const (
	AccessClaimOwner = "claim-owner"
	AccessPoolAdmin  = "pool-admin"
)

// Values of LabelJobType: what a Job is for.
const (
	JobTypeImageSet    = "imageset"
	JobTypeProvision   = "provision"
	JobTypeDeprovision = "deprovision"
)

// Values of LabelSecretType for what an installer's pods and hotspare tell each other.
const (
	SecretTypeInstall = "install-state"
	SecretTypeDestroy = "destroy-state"
)

// Annotations.
const (
	// AnnotationFake makes a ClusterDeployment go through its whole life without any cloud, at once.
	AnnotationFake = "hive.openshift.io/fake-cluster"
	// AnnotationPoolVersion is the version of the pool that a cluster was made from.
	AnnotationPoolVersion = "hive.openshift.io/cluster-pool-spec-hash"
	// AnnotationCustomizationVersion is the version of the customization that a cluster was made with.
	AnnotationCustomizationVersion = "hotspare.io/customization-version"
	// AnnotationSourceVersion identifies the versions, without the content, of the Secrets and the
	// customization that the pool referred to when it created the cluster.
	AnnotationSourceVersion = "hotspare.io/source-version"
	// AnnotationRemove marks a pool's cluster for removal.
	AnnotationRemove = "hive.openshift.io/remove-cluster-from-pool"
	// AnnotationRemoveLegacy is its older spelling.
	AnnotationRemoveLegacy = "hive.openshift.io/remove-claimed-cluster-from-pool"
	// AnnotationReconcilePause makes hotspare leave a ClusterDeployment alone.
	AnnotationReconcilePause = "hive.openshift.io/reconcile-pause"
	// AnnotationPowerPause makes hotspare leave its machines alone.
	AnnotationPowerPause = "hive.openshift.io/powerstate-pause"
	// AnnotationLeaveRequests makes hotspare approve no certificate requests of the cluster's nodes.
	AnnotationLeaveRequests = "hotspare.io/leave-certificate-requests"
	// AnnotationShelve makes hibernating shelve servers of OpenStack, which gives their hosts back, instead of stopping them.
	AnnotationShelve = "hotspare.io/shelve"
	// AnnotationProtectedDelete makes a ClusterDeployment refuse to be deleted.
	AnnotationProtectedDelete = "hive.openshift.io/protected-delete"
	// AnnotationTryInstallOnce limits a ClusterDeployment to one install attempt.
	AnnotationTryInstallOnce = "hive.openshift.io/try-install-once"
	// AnnotationEmptySince is on a node of an autoscaled local pool, from when it runs no pods that count.
	AnnotationEmptySince = "hotspare.io/empty-since"
	// AnnotationClaim tells the claim, as namespace/name, whose subjects a Role or RoleBinding is for.
	AnnotationClaim = "hive.openshift.io/cluster-claim"
)

// Names of what hotspare makes in a cluster's namespace.
const (
	// ClaimOwnerRole is the Role and the RoleBinding of a claim's subjects.
	ClaimOwnerRole = "hive-claim-owner"
	// PoolAdminClusterRole, when bound in a pool's namespace, reaches into the namespaces of its clusters.
	PoolAdminClusterRole = "hive-cluster-pool-admin"
	// PoolAdminBinding is the RoleBinding by which it does.
	PoolAdminBinding = "hive-cluster-pool-admin-binding"
)

// Keys of Secrets.
const (
	SecretKeyKubeconfig    = "kubeconfig"
	SecretKeyUsername      = "username"
	SecretKeyPassword      = "password"
	SecretKeyInstallConfig = "install-config.yaml"
	// SecretKeyManifestPatches stands beside it, in a cluster of a pool whose
	// customizations patch manifests: the patches, as they were when it was made.
	SecretKeyManifestPatches = "manifest-patches.json"
	SecretKeyPullSecret      = ".dockerconfigjson"
	SecretKeyMetadata        = "metadata.json"
	SecretKeySSHPublic       = "ssh-publickey"
)
