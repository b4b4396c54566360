package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterDeployment is a cluster: made, kept awake or asleep, and destroyed by hotspare.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cd
// +kubebuilder:printcolumn:name="InfraID",type=string,JSONPath=`.spec.clusterMetadata.infraID`
// +kubebuilder:printcolumn:name="Platform",type=string,JSONPath=`.metadata.labels.hive\.openshift\.io/cluster-platform`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.metadata.labels.hive\.openshift\.io/cluster-region`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.metadata.labels.hive\.openshift\.io/version`
// +kubebuilder:printcolumn:name="ClusterType",type=string,JSONPath=`.metadata.labels.hive\.openshift\.io/cluster-type`
// +kubebuilder:printcolumn:name="ProvisionStatus",type=string,JSONPath=`.status.conditions[?(@.type=='Provisioned')].reason`
// +kubebuilder:printcolumn:name="PowerState",type=string,JSONPath=`.status.powerState`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.clusterPoolRef.poolName`,priority=1
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.clusterPoolRef.claimName`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name is longer than the 63 characters that fit in a label: choose a shorter one"
type ClusterDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterDeploymentSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterDeploymentStatus `json:"status,omitempty"`
}

// PowerState is whether a cluster's machines should run.
//
// +kubebuilder:validation:Enum="";Running;Hibernating
type PowerState string

// The states that can be asked for. Empty means Running, except for an
// unclaimed cluster of a pool, which the pool sets.
const (
	PowerRunning     PowerState = "Running"
	PowerHibernating PowerState = "Hibernating"
)

// ClusterDeploymentSpec is what the cluster should be.
//
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.installed) && oldSelf.installed) || (has(self.installed) && self.installed)",message="installed cannot be taken back: delete the ClusterDeployment instead"
// +kubebuilder:validation:XValidation:rule="!has(self.installed) || !self.installed || has(self.clusterMetadata)",message="an installed cluster needs clusterMetadata with infraID and adminKubeconfigSecretRef"
// +kubebuilder:validation:XValidation:rule="(has(self.installed) && self.installed) || has(self.provisioning) != has(self.clusterInstallRef)",message="a cluster that is not installed needs exactly one of provisioning and clusterInstallRef"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.clusterPoolRef) == has(self.clusterPoolRef)",message="clusterPoolRef cannot be added or taken away: a cluster belongs to its pool for life"
type ClusterDeploymentSpec struct {
	// ClusterName is the cluster's name below baseDomain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed: delete the cluster and make another"
	ClusterName string `json:"clusterName"`
	// BaseDomain is the DNS domain below which the cluster is named.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="baseDomain cannot be changed: delete the cluster and make another"
	BaseDomain string `json:"baseDomain"`
	// Platform is where the cluster is.
	// +kubebuilder:validation:XValidation:rule="[has(self.aws),has(self.azure),has(self.gcp),has(self.vsphere),has(self.openstack),has(self.baremetal),has(self.agentBareMetal),has(self.ibmcloud),has(self.nutanix),has(self.none),has(self.local)].filter(p, p).size() <= 1",message="name only one platform"
	// +kubebuilder:validation:XValidation:rule="![has(oldSelf.aws),has(oldSelf.azure),has(oldSelf.gcp),has(oldSelf.vsphere),has(oldSelf.openstack),has(oldSelf.baremetal),has(oldSelf.agentBareMetal),has(oldSelf.ibmcloud),has(oldSelf.nutanix),has(oldSelf.none),has(oldSelf.local)].exists(p, p) || [has(self.aws),has(self.azure),has(self.gcp),has(self.vsphere),has(self.openstack),has(self.baremetal),has(self.agentBareMetal),has(self.ibmcloud),has(self.nutanix),has(self.none),has(self.local)].exists(p, p)",message="it names no platform: write the platform that the cluster is on, such as {local: {}}; without it nothing could destroy the cluster"
	Platform Platform `json:"platform"`
	// PullSecretRef names a Secret with key .dockerconfigjson.
	// +optional
	// +nullable
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// PreserveOnDelete keeps the cluster when the ClusterDeployment is deleted.
	// +optional
	PreserveOnDelete bool `json:"preserveOnDelete,omitempty"`
	// Installed is true when the cluster is installed, or was not installed by hotspare.
	// +optional
	Installed bool `json:"installed,omitempty"`
	// Provisioning says how to install the cluster.
	// +optional
	// +nullable
	Provisioning *Provisioning `json:"provisioning,omitempty"`
	// ClusterInstallRef names an object of another installer that installs the cluster.
	// +optional
	// +nullable
	ClusterInstallRef *ClusterInstallReference `json:"clusterInstallRef,omitempty"`
	// ClusterMetadata names what the installer made. Written before anything is made.
	// +optional
	// +nullable
	ClusterMetadata *ClusterMetadata `json:"clusterMetadata,omitempty"`
	// ClusterPoolRef tells the cluster's pool and claim.
	// +optional
	// +nullable
	ClusterPoolRef *ClusterPoolReference `json:"clusterPoolRef,omitempty"`
	// PowerState is whether the machines should run. Empty: Running.
	// +optional
	PowerState PowerState `json:"powerState,omitempty"`
	// HibernateAfter hibernates the cluster when it has been running this long.
	// +optional
	// +nullable
	HibernateAfter *Duration `json:"hibernateAfter,omitempty"`
	// PowerstateTransitionToRunningTimeout is how long a resume may take before it
	// counts as failed. Absent: for ever.
	// +optional
	// +nullable
	PowerstateTransitionToRunningTimeout *Duration `json:"powerstateTransitionToRunningTimeout,omitempty"`
	// PowerstateTransitionToHibernatingTimeout is the same for hibernating.
	// +optional
	// +nullable
	PowerstateTransitionToHibernatingTimeout *Duration `json:"powerstateTransitionToHibernatingTimeout,omitempty"`
	// InstallAttemptsLimit is how often the install is tried. Absent: until it works.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	InstallAttemptsLimit *int32 `json:"installAttemptsLimit,omitempty"`

	// What follows is kept as written; hotspare does not act on it.

	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	ControlPlaneConfig *runtime.RawExtension `json:"controlPlaneConfig,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Ingress []runtime.RawExtension `json:"ingress,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	CertificateBundles []runtime.RawExtension `json:"certificateBundles,omitempty"`
	// +optional
	ManageDNS bool `json:"manageDNS,omitempty"`
	// +optional
	// +nullable
	BoundServiceAccountSigningKeySecretRef *corev1.LocalObjectReference `json:"boundServiceAccountSigningKeySecretRef,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	MachineManagement *runtime.RawExtension `json:"machineManagement,omitempty"`
}

// Provisioning says how to install a cluster.
type Provisioning struct {
	// InstallConfigSecretRef names a Secret with key install-config.yaml.
	// +optional
	// +nullable
	InstallConfigSecretRef *corev1.LocalObjectReference `json:"installConfigSecretRef,omitempty"`
	// ImageSetRef names the ClusterImageSet to install.
	// +optional
	// +nullable
	ImageSetRef *ClusterImageSetReference `json:"imageSetRef,omitempty"`
	// ReleaseImage overrides the image set's.
	// +optional
	ReleaseImage string `json:"releaseImage,omitempty"`
	// InstallerImageOverride is the image that holds the installer.
	// +optional
	InstallerImageOverride string `json:"installerImageOverride,omitempty"`
	// ManifestsConfigMapRef names a ConfigMap with manifests to add.
	// +optional
	// +nullable
	ManifestsConfigMapRef *corev1.LocalObjectReference `json:"manifestsConfigMapRef,omitempty"`
	// ManifestsSecretRef names a Secret with manifests to add.
	// +optional
	// +nullable
	ManifestsSecretRef *corev1.LocalObjectReference `json:"manifestsSecretRef,omitempty"`
	// CustomizationRef names a ClusterDeploymentCustomization with manifest patches.
	// +optional
	// +nullable
	CustomizationRef *corev1.LocalObjectReference `json:"customizationRef,omitempty"`
	// SSHPrivateKeySecretRef names a Secret with key ssh-privatekey.
	// +optional
	// +nullable
	SSHPrivateKeySecretRef *corev1.LocalObjectReference `json:"sshPrivateKeySecretRef,omitempty"`
	// +optional
	// +nullable
	SSHKnownHosts []string `json:"sshKnownHosts,omitempty"`
	// InstallerEnv is added to the installer's environment.
	// +optional
	// +nullable
	InstallerEnv []corev1.EnvVar `json:"installerEnv,omitempty"`
}

// ClusterInstallReference names an object that follows Hive's ClusterInstall contract.
type ClusterInstallReference struct {
	// +optional
	Group string `json:"group"`
	// +optional
	Version string `json:"version"`
	// +optional
	Kind string `json:"kind"`
	// +optional
	Name string `json:"name"`
}

// ClusterMetadata names what the installer made.
type ClusterMetadata struct {
	// ClusterID is the cluster's universal ID.
	ClusterID string `json:"clusterID"`
	// InfraID marks everything that the installer made for the cluster.
	InfraID string `json:"infraID"`
	// AdminKubeconfigSecretRef names a Secret with key kubeconfig.
	AdminKubeconfigSecretRef corev1.LocalObjectReference `json:"adminKubeconfigSecretRef"`
	// AdminPasswordSecretRef names a Secret with keys username and password.
	// +optional
	// +nullable
	AdminPasswordSecretRef *corev1.LocalObjectReference `json:"adminPasswordSecretRef,omitempty"`
	// MetadataJSONSecretRef names a Secret with key metadata.json: all that is needed to destroy the cluster.
	// +optional
	// +nullable
	MetadataJSONSecretRef *corev1.LocalObjectReference `json:"metadataJSONSecretRef,omitempty"`
	// Platform holds what the platform's installer adds.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform *runtime.RawExtension `json:"platform,omitempty"`
}

// ClusterPoolReference tells a cluster's pool and claim.
//
// +kubebuilder:validation:XValidation:rule="self.__namespace__ == oldSelf.__namespace__ && self.poolName == oldSelf.poolName",message="a cluster stays in its pool: namespace and poolName cannot be changed"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimName) || oldSelf.claimName.size() == 0 || (has(self.claimName) && self.claimName == oldSelf.claimName)",message="claimName cannot be changed once it is set: a cluster is claimed once"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimedTimestamp) || (has(self.claimedTimestamp) && self.claimedTimestamp == oldSelf.claimedTimestamp)",message="claimedTimestamp cannot be changed once it is set: lifetimes and hibernateAfter count from it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterDeploymentCustomization) || (has(self.clusterDeploymentCustomization) && self.clusterDeploymentCustomization == oldSelf.clusterDeploymentCustomization)",message="clusterDeploymentCustomization cannot be changed once it is set: the cluster was made with it"
type ClusterPoolReference struct {
	// Namespace of the pool and of the claim.
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// PoolName names the pool.
	// +kubebuilder:validation:MaxLength=253
	PoolName string `json:"poolName"`
	// ClaimName names the claim that has this cluster. Set once.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`
	// ClaimedTimestamp is when it got it. Written with ClaimName, never changed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ClaimedTimestamp *metav1.Time `json:"claimedTimestamp,omitempty"`
	// CustomizationRef names the customization that the cluster was made with.
	// +optional
	// +nullable
	CustomizationRef *corev1.LocalObjectReference `json:"clusterDeploymentCustomization,omitempty"`
}

// ClusterDeploymentStatus is what the cluster is.
type ClusterDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// PowerState is what the machines are doing, in one word.
	// +optional
	PowerState string `json:"powerState,omitempty"`
	// PowerTransition is the current or last change of power state; timeouts count from it.
	// +optional
	// +nullable
	PowerTransition *PowerTransition `json:"powerTransition,omitempty"`
	// Conditions tell more.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// APIURL is the cluster's API.
	// +optional
	APIURL string `json:"apiURL,omitempty"`
	// WebConsoleURL is the cluster's console.
	// +optional
	WebConsoleURL string `json:"webConsoleURL,omitempty"`
	// InstallVersion is the version that was installed.
	// +optional
	// +nullable
	InstallVersion *string `json:"installVersion,omitempty"`
	// InstallStartedTimestamp is when the first attempt began.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	InstallStartedTimestamp *metav1.Time `json:"installStartedTimestamp,omitempty"`
	// InstalledTimestamp is when the install succeeded. Never changed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	InstalledTimestamp *metav1.Time `json:"installedTimestamp,omitempty"`
	// ClaimedTimestamp mirrors spec.clusterPoolRef.claimedTimestamp.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ClaimedTimestamp *metav1.Time `json:"claimedTimestamp,omitempty"`
	// InstallRestarts counts attempts after the first.
	// +optional
	InstallRestarts int `json:"installRestarts,omitempty"`
	// ProvisionRef names the ClusterProvision of the current attempt.
	// +optional
	// +nullable
	ProvisionRef *corev1.LocalObjectReference `json:"provisionRef,omitempty"`
	// ClusterVersionStatus is what the cluster reports of its version, in the form of
	// OpenShift's ClusterVersionStatus: desired, and the three latest of history. Of a
	// cluster that is not OpenShift it is the version of its API server, in desired.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterVersionStatus *runtime.RawExtension `json:"clusterVersionStatus,omitempty"`
	// InstallerImage and CLIImage are resolved from the release image.
	// +optional
	// +nullable
	InstallerImage *string `json:"installerImage,omitempty"`
	// +optional
	// +nullable
	CLIImage *string `json:"cliImage,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	CertificateBundles []runtime.RawExtension `json:"certificateBundles,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	PlatformStatus *runtime.RawExtension `json:"platformStatus,omitempty"`
}

// PowerTransition records one change of power state. A flip in its middle
// begins a new one.
type PowerTransition struct {
	// Target is the state that is being reached.
	Target PowerState `json:"target"`
	// StartedAt is when the machines were first told.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when the target was reached.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Attempts counts the times that starting or stopping was tried and refused.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// LastError is what the platform last answered.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// MachinesFailed is set when the machines themselves went wrong on the way: one
	// failed, or there is none. It is cleared when the target is reached. An
	// unclaimed cluster of a pool that does not get there soon is broken.
	// +optional
	MachinesFailed bool `json:"machinesFailed,omitempty"`
	// Deadline is when the transition times out; absent when it has no timeout.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Deadline *metav1.Time `json:"deadline,omitempty"`
}

// Conditions of a ClusterDeployment about its install, with their reasons.
const (
	// ClusterProvisioned tells how far the cluster's life is.
	ClusterProvisioned        = "Provisioned"
	ReasonProvisioning        = "Provisioning"
	ReasonProvisionStopped    = "ProvisionStopped"
	ReasonProvisioned         = "Provisioned"
	ReasonDeprovisioning      = "Deprovisioning"
	ReasonDeprovisionFailed   = "DeprovisionFailed"
	ReasonDeprovisioned       = "Deprovisioned"
	ReasonInitializing        = "Initializing"
	ReasonProvisionSuccessful = "ProvisionSucceeded"

	// ClusterProvisionStopped is True when no further attempt will be made.
	ClusterProvisionStopped     = "ProvisionStopped"
	ReasonInstallAttemptsUsedUp = "InstallAttemptsLimitReached"
	ReasonProvisionNotStopped   = "ProvisionNotStopped"

	// ClusterProvisionFailed is True while the last attempt failed.
	ClusterProvisionFailed = "ProvisionFailed"

	// ClusterAuthenticationFailure is True after an attempt in which the platform refused
	// its credentials.
	ClusterAuthenticationFailure = "AuthenticationFailure"
	ReasonPlatformAuthError      = "PlatformAuthError"
	// ReasonInvalidCredentials is that of an attempt, in ProvisionFailed.
	ReasonInvalidCredentials = "InvalidCredentials"

	// ClusterInstallLaunchError is True while a pod of the installer cannot begin.
	ClusterInstallLaunchError = "InstallLaunchError"
	ReasonPodPending          = "PodInPendingPhase"

	// ClusterRequirementsMet is False while something that the install needs is missing or wrong.
	ClusterRequirementsMet              = "RequirementsMet"
	ReasonAllRequirementsMet            = "AllRequirementsMet"
	ReasonImageSetNotFound              = "ClusterImageSetNotFound"
	ReasonInstallConfigValidationFailed = "InstallConfigValidationFailed"
	ReasonNoExecutor                    = "UnsupportedPlatform"
	ReasonSecretNotFound                = "SecretNotFound"

	ReasonClusterInstallNotFound   = "ClusterInstallNotFound"
	ReasonClusterInstallUnreadable = "ClusterInstallUnreadable"

	// What the object that spec.clusterInstallRef names says, as it says it.
	ClusterInstallRequirementsMet = "ClusterInstallRequirementsMet"
	ClusterInstallCompleted       = "ClusterInstallCompleted"
	ClusterInstallFailed          = "ClusterInstallFailed"
	ClusterInstallStopped         = "ClusterInstallStopped"

	// ClusterDeprovisionLaunchError is True while destroying cannot begin.
	ClusterDeprovisionLaunchError = "DeprovisionLaunchError"
)

// Conditions of a ClusterDeployment about its power, with their reasons.
const (
	// ClusterHibernating is True while the cluster sleeps.
	ClusterHibernating  = "Hibernating"
	ReasonHibernating   = "Hibernating"
	ReasonStopping      = "Stopping"
	ReasonUnsupported   = "Unsupported"
	ReasonFailedToStop  = "FailedToStop"
	ReasonFailedToStart = "FailedToStart"
	ReasonPowerPaused   = "PowerStatePaused"
	ReasonClusterGoing  = "ClusterDeploymentDeleted"

	// ClusterReady is True while the cluster can be used.
	ClusterReady                = "Ready"
	ReasonStartingMachines      = "StartingMachines"
	ReasonWaitingForMachines    = "WaitingForMachines"
	ReasonWaitingForNodes       = "WaitingForNodes"
	ReasonWaitingForControllers = "WaitingForControllers"
	ReasonWaitingForOperators   = "WaitingForClusterOperators"
	ReasonPausingForOperators   = "PausingForClusterOperatorsToSettle"
	ReasonStoppingOrHibernating = "StoppingOrHibernating"
	ReasonWaitingToStop         = "WaitingForMachinesToStop"

	// ClusterUnreachable is True while the cluster's API cannot be reached.
	ClusterUnreachable    = "Unreachable"
	ReasonReachable       = "ClusterReachable"
	ReasonErrorConnecting = "ErrorConnectingToCluster"
)

// Values of ClusterDeployment.status.powerState that clients decide by.
// Others are reasons of the two power conditions.
const (
	StatusRunning     = "Running"
	StatusHibernating = "Hibernating"
	StatusUnknown     = "Unknown"
)

// ClusterDeploymentList is a list of ClusterDeployments.
//
// +kubebuilder:object:root=true
type ClusterDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterDeployment `json:"items"`
}
