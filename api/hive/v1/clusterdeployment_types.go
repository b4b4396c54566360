package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterDeployment is one cluster. hotspare installs it, hibernates and resumes it, and destroys
// it.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name is longer than 63 characters, the limit of a label value: choose a shorter name"
type ClusterDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterDeploymentSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterDeploymentStatus `json:"status,omitempty"`
}

// PowerState is the desired power state of a cluster's machines.
//
// +kubebuilder:validation:Enum="";Running;Hibernating
type PowerState string

// The desired power states. An empty value means Running, except on an unclaimed cluster of a pool:
// there the pool sets it.
const (
	PowerRunning     PowerState = "Running"
	PowerHibernating PowerState = "Hibernating"
)

// ClusterDeploymentSpec is the desired state of a ClusterDeployment.
//
// +kubebuilder:validation:XValidation:rule="!oldSelf.?installed.orValue(false) || self.?installed.orValue(false)",message="installed cannot be set back to false: delete the ClusterDeployment instead"
// +kubebuilder:validation:XValidation:rule="!self.?installed.orValue(false) || has(self.clusterMetadata)",message="an installed cluster needs clusterMetadata with infraID and adminKubeconfigSecretRef"
// +kubebuilder:validation:XValidation:rule="self.?installed.orValue(false) || has(self.provisioning) != has(self.clusterInstallRef)",message="a cluster that is not installed needs exactly one of provisioning and clusterInstallRef"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.clusterPoolRef) == has(self.clusterPoolRef)",message="clusterPoolRef cannot be added or removed: a cluster stays in its pool"
type ClusterDeploymentSpec struct {
	// ClusterName is the name of the cluster below baseDomain, such as c1 in c1.ci.example.com. It
	// cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed: delete this ClusterDeployment and create another"
	ClusterName string `json:"clusterName"`
	// BaseDomain is the parent DNS domain of the cluster, such as ci.example.com. It cannot be
	// changed.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="baseDomain cannot be changed: delete this ClusterDeployment and create another"
	BaseDomain string `json:"baseDomain"`
	// Platform is the platform of the cluster and its settings. Set exactly one.
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || [has(self.aws),has(self.azure),has(self.gcp),has(self.vsphere),has(self.openstack),has(self.baremetal),has(self.agentBareMetal),has(self.ibmcloud),has(self.nutanix),has(self.none),has(self.local),has(self.exec),has(self.capi)].filter(p, p).size() <= 1",message="set only one platform",optionalOldSelf=true
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || ![has(oldSelf.aws),has(oldSelf.azure),has(oldSelf.gcp),has(oldSelf.vsphere),has(oldSelf.openstack),has(oldSelf.baremetal),has(oldSelf.agentBareMetal),has(oldSelf.ibmcloud),has(oldSelf.nutanix),has(oldSelf.none),has(oldSelf.local),has(oldSelf.exec),has(oldSelf.capi)].exists(p, p) || [has(self.aws),has(self.azure),has(self.gcp),has(self.vsphere),has(self.openstack),has(self.baremetal),has(self.agentBareMetal),has(self.ibmcloud),has(self.nutanix),has(self.none),has(self.local),has(self.exec),has(self.capi)].exists(p, p)",message="no platform is set: set the platform that the cluster is on, such as {local: {}}; without it hotspare could not destroy the cluster"
	Platform Platform `json:"platform"`
	// PullSecretRef is the name of a Secret in the same namespace with the key .dockerconfigjson.
	// If unset, only the global pull secret is used, if there is one.
	// +optional
	// +nullable
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// PreserveOnDelete keeps the cluster when the ClusterDeployment is deleted. Defaults to false:
	// deleting the ClusterDeployment destroys the cluster.
	// +optional
	PreserveOnDelete bool `json:"preserveOnDelete,omitempty"`
	// Installed is true once the cluster is installed. hotspare sets it. Set it yourself, together
	// with clusterMetadata, to adopt a cluster that hotspare did not install. It cannot be set back
	// to false.
	// +optional
	Installed bool `json:"installed,omitempty"`
	// Provisioning configures the installation. A cluster that is not installed needs either
	// provisioning or clusterInstallRef.
	// +optional
	// +nullable
	Provisioning *Provisioning `json:"provisioning,omitempty"`
	// ClusterInstallRef refers to an object of another installer, such as an AgentClusterInstall,
	// that installs and destroys the cluster instead of hotspare.
	// +optional
	// +nullable
	ClusterInstallRef *ClusterInstallReference `json:"clusterInstallRef,omitempty"`
	// ClusterMetadata identifies the installed cluster and its Secrets. hotspare sets it before the
	// installer creates any resource.
	// +optional
	// +nullable
	ClusterMetadata *ClusterMetadata `json:"clusterMetadata,omitempty"`
	// ClusterPoolRef is the pool and the claim of the cluster. The pool sets it. It is unset on a
	// cluster that does not belong to a pool.
	// +optional
	// +nullable
	ClusterPoolRef *ClusterPoolReference `json:"clusterPoolRef,omitempty"`
	// PowerState is the desired power state: Running or Hibernating. If empty, the cluster runs. On
	// an unclaimed cluster of a pool, the pool sets it and reverts other changes.
	// +optional
	PowerState PowerState `json:"powerState,omitempty"`
	// HibernateAfter is how long the cluster runs before it hibernates, such as 8h. It counts from
	// the latest of the installation, the claim and the end of the last resume. If unset, the
	// cluster does not hibernate automatically.
	// +optional
	// +nullable
	HibernateAfter *Duration `json:"hibernateAfter,omitempty"`
	// PowerstateTransitionToRunningTimeout is how long a resume may take, such as 20m. After that
	// the cluster reports FailedToStart, and hotspare continues to try. If unset, there is no
	// timeout.
	// +optional
	// +nullable
	PowerstateTransitionToRunningTimeout *Duration `json:"powerstateTransitionToRunningTimeout,omitempty"`
	// PowerstateTransitionToHibernatingTimeout is how long hibernation may take, such as 20m. After
	// that the cluster reports FailedToStop, and hotspare continues to try. If unset, there is no
	// timeout.
	// +optional
	// +nullable
	PowerstateTransitionToHibernatingTimeout *Duration `json:"powerstateTransitionToHibernatingTimeout,omitempty"`
	// InstallAttemptsLimit is the maximum number of install attempts. The wait between attempts
	// doubles from 1 minute to 1 hour. If unset, there is no limit.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	InstallAttemptsLimit *int32 `json:"installAttemptsLimit,omitempty"`

	// The remaining fields are stored as written; hotspare does not act on them.

	// ControlPlaneConfig is accepted for compatibility with Hive and has no effect.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	ControlPlaneConfig *runtime.RawExtension `json:"controlPlaneConfig,omitempty"`
	// Ingress is accepted for compatibility with Hive and has no effect.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Ingress []runtime.RawExtension `json:"ingress,omitempty"`
	// CertificateBundles is accepted for compatibility with Hive and has no effect.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	CertificateBundles []runtime.RawExtension `json:"certificateBundles,omitempty"`
	// ManageDNS is accepted for compatibility with Hive and has no effect.
	// +optional
	ManageDNS bool `json:"manageDNS,omitempty"`
	// BoundServiceAccountSigningKeySecretRef is accepted for compatibility with Hive and has no
	// effect.
	// +optional
	// +nullable
	BoundServiceAccountSigningKeySecretRef *corev1.LocalObjectReference `json:"boundServiceAccountSigningKeySecretRef,omitempty"`
	// MachineManagement is accepted for compatibility with Hive and has no effect.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	MachineManagement *runtime.RawExtension `json:"machineManagement,omitempty"`
}

// Provisioning configures the installation of a cluster.
type Provisioning struct {
	// InstallConfigSecretRef is the name of a Secret with the key install-config.yaml. If unset,
	// hotspare generates the install-config.
	// +optional
	// +nullable
	InstallConfigSecretRef *corev1.LocalObjectReference `json:"installConfigSecretRef,omitempty"`
	// ImageSetRef is the ClusterImageSet from which the cluster is installed. Set either
	// imageSetRef or releaseImage.
	// +optional
	// +nullable
	ImageSetRef *ClusterImageSetReference `json:"imageSetRef,omitempty"`
	// ReleaseImage is the image of the release to install. It takes precedence over imageSetRef.
	// +optional
	ReleaseImage string `json:"releaseImage,omitempty"`
	// InstallerImageOverride is the image that contains the installer. If unset, hotspare uses the
	// installer of the release.
	// +optional
	InstallerImageOverride string `json:"installerImageOverride,omitempty"`
	// ManifestsConfigMapRef is the name of a ConfigMap with manifests that are added to those of
	// the installer.
	// +optional
	// +nullable
	ManifestsConfigMapRef *corev1.LocalObjectReference `json:"manifestsConfigMapRef,omitempty"`
	// ManifestsSecretRef is the name of a Secret with manifests that are added to those of the
	// installer.
	// +optional
	// +nullable
	ManifestsSecretRef *corev1.LocalObjectReference `json:"manifestsSecretRef,omitempty"`
	// CustomizationRef is the name of a ClusterDeploymentCustomization in the same namespace. Its
	// installerManifestPatches apply to the manifests of the installer.
	// +optional
	// +nullable
	CustomizationRef *corev1.LocalObjectReference `json:"customizationRef,omitempty"`
	// SSHPrivateKeySecretRef is the name of a Secret with the key ssh-privatekey, with which the
	// installer gathers logs of a failed bootstrap machine. Its key ssh-publickey is added to an
	// install-config that has no sshKey.
	// +optional
	// +nullable
	SSHPrivateKeySecretRef *corev1.LocalObjectReference `json:"sshPrivateKeySecretRef,omitempty"`
	// SSHKnownHosts is accepted for compatibility with Hive and has no effect.
	// +optional
	// +nullable
	SSHKnownHosts []string `json:"sshKnownHosts,omitempty"`
	// InstallerEnv is a list of environment variables for the installer.
	// +optional
	// +nullable
	InstallerEnv []corev1.EnvVar `json:"installerEnv,omitempty"`
}

// ClusterInstallReference refers to an object that implements Hive's ClusterInstall contract.
type ClusterInstallReference struct {
	// Group is the API group of the object.
	// +optional
	Group string `json:"group"`
	// Version is the API version of the object.
	// +optional
	Version string `json:"version"`
	// Kind is the kind of the object.
	// +optional
	Kind string `json:"kind"`
	// Name is the name of the object, in the namespace of the ClusterDeployment.
	// +optional
	Name string `json:"name"`
}

// ClusterMetadata identifies an installed cluster and its Secrets.
type ClusterMetadata struct {
	// ClusterID is the unique ID of the cluster.
	ClusterID string `json:"clusterID"`
	// InfraID marks every resource that the installer creates for the cluster on its platform.
	InfraID string `json:"infraID"`
	// AdminKubeconfigSecretRef is the name of a Secret with the key kubeconfig, the kubeconfig of
	// the cluster's administrator. In a Secret of Cluster API, the key is value.
	AdminKubeconfigSecretRef corev1.LocalObjectReference `json:"adminKubeconfigSecretRef"`
	// AdminPasswordSecretRef is the name of a Secret with the keys username and password of the
	// cluster's administrator. It is unset if the cluster has no password.
	// +optional
	// +nullable
	AdminPasswordSecretRef *corev1.LocalObjectReference `json:"adminPasswordSecretRef,omitempty"`
	// MetadataJSONSecretRef is the name of a Secret with the key metadata.json, which the installer
	// needs to destroy the cluster.
	// +optional
	// +nullable
	MetadataJSONSecretRef *corev1.LocalObjectReference `json:"metadataJSONSecretRef,omitempty"`
	// Platform contains the metadata that is specific to the platform.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform *runtime.RawExtension `json:"platform,omitempty"`
}

// ClusterPoolReference is the pool and the claim of a cluster.
//
// +kubebuilder:validation:XValidation:rule="self.__namespace__ == oldSelf.__namespace__ && self.poolName == oldSelf.poolName",message="namespace and poolName cannot be changed: a cluster stays in its pool"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimName) || oldSelf.claimName.size() == 0 || (has(self.claimName) && self.claimName == oldSelf.claimName)",message="claimName cannot be changed once it is set: a cluster is claimed once"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimedTimestamp) || (has(self.claimedTimestamp) && self.claimedTimestamp == oldSelf.claimedTimestamp)",message="claimedTimestamp cannot be changed once it is set: lifetimes and hibernateAfter count from it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterDeploymentCustomization) || (has(self.clusterDeploymentCustomization) && self.clusterDeploymentCustomization == oldSelf.clusterDeploymentCustomization)",message="clusterDeploymentCustomization cannot be changed once it is set: the cluster was created with it"
type ClusterPoolReference struct {
	// Namespace is the namespace of the pool and of the claim.
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// PoolName is the name of the pool.
	// +kubebuilder:validation:MaxLength=253
	PoolName string `json:"poolName"`
	// ClaimName is the name of the claim to which the cluster is assigned. It is empty while the
	// cluster is unclaimed, and cannot be changed once it is set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`
	// ClaimedTimestamp is when the cluster was assigned to its claim. hotspare sets it together
	// with claimName and never changes it.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ClaimedTimestamp *metav1.Time `json:"claimedTimestamp,omitempty"`
	// CustomizationRef is the name of the customization with which the cluster was created.
	// +optional
	// +nullable
	CustomizationRef *corev1.LocalObjectReference `json:"clusterDeploymentCustomization,omitempty"`
}

// ClusterDeploymentStatus is the observed state of a ClusterDeployment. hotspare writes it.
type ClusterDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// PowerState is the current power state: Running, Hibernating, or a step between them such as
	// WaitingForMachines.
	// +optional
	PowerState string `json:"powerState,omitempty"`
	// PowerTransition is the power transition in progress, or the last one. Timeouts count from its
	// start.
	// +optional
	// +nullable
	PowerTransition *PowerTransition `json:"powerTransition,omitempty"`
	// Gates is what the gates of the pool's ClusterBootstrap found in the current run of the cluster. It is
	// unset if the pool has no gates.
	// +optional
	// +nullable
	Gates *GateRecord `json:"gates,omitempty"`
	// Bootstrap is how far the cluster has come in the steps of the pool's ClusterBootstrap. It is unset until
	// the first step begins.
	// +optional
	// +nullable
	Bootstrap *BootstrapRecord `json:"bootstrap,omitempty"`
	// Conditions of the cluster: its installation and its power state. At most one of Reconciling
	// and Stalled is present, and only while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// APIURL is the URL of the cluster's API.
	// +optional
	APIURL string `json:"apiURL,omitempty"`
	// WebConsoleURL is the URL of the cluster's web console, if it has one.
	// +optional
	WebConsoleURL string `json:"webConsoleURL,omitempty"`
	// InstallVersion is the version that was installed.
	// +optional
	// +nullable
	InstallVersion *string `json:"installVersion,omitempty"`
	// InstallStartedTimestamp is when the first install attempt started.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	InstallStartedTimestamp *metav1.Time `json:"installStartedTimestamp,omitempty"`
	// InstalledTimestamp is when the installation succeeded. It is never changed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	InstalledTimestamp *metav1.Time `json:"installedTimestamp,omitempty"`
	// ClaimedTimestamp is a copy of spec.clusterPoolRef.claimedTimestamp.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ClaimedTimestamp *metav1.Time `json:"claimedTimestamp,omitempty"`
	// InstallRestarts is the number of install attempts after the first one.
	// +optional
	InstallRestarts int `json:"installRestarts,omitempty"`
	// ProvisionRef is the name of the ClusterProvision of the current install attempt.
	// +optional
	// +nullable
	ProvisionRef *corev1.LocalObjectReference `json:"provisionRef,omitempty"`
	// ClusterVersionStatus is the version that the cluster reports, in the form of OpenShift's
	// ClusterVersionStatus: desired, and the three latest entries of history. For a cluster that is
	// not OpenShift, desired is the version of its API server.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterVersionStatus *runtime.RawExtension `json:"clusterVersionStatus,omitempty"`
	// InstallerImage is the installer image of the release. hotspare sets it when a Job installs
	// the cluster.
	// +optional
	// +nullable
	InstallerImage *string `json:"installerImage,omitempty"`
	// CLIImage is the image of the release that contains oc. hotspare sets it when a Job installs
	// the cluster.
	// +optional
	// +nullable
	CLIImage *string `json:"cliImage,omitempty"`
	// CertificateBundles exists for compatibility with Hive. hotspare never sets it.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	CertificateBundles []runtime.RawExtension `json:"certificateBundles,omitempty"`
	// PlatformStatus exists for compatibility with Hive. hotspare never sets it.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	PlatformStatus *runtime.RawExtension `json:"platformStatus,omitempty"`
}

// PowerTransition is one change of the power state. If the desired state changes before the
// transition ends, a new transition starts.
type PowerTransition struct {
	// Target is the power state to reach: Running or Hibernating.
	Target PowerState `json:"target"`
	// StartedAt is when hotspare sent the first request to start or stop the machines.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when the cluster reached the target state. It is unset while the transition is
	// in progress.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Attempts is the number of times that the platform rejected a request to start or stop the
	// machines.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// LastError is the last error that the platform returned.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// MachinesFailed is true if a machine failed, or if there are no machines, during the
	// transition. hotspare clears it when the target is reached. An unclaimed cluster of a pool
	// that does not recover soon is broken.
	// +optional
	MachinesFailed bool `json:"machinesFailed,omitempty"`
	// Depth is the depth at which the cluster sleeps, which is that of its deepest machine: freeze, suspend
	// or stop. While the target is Running, it is the depth from which the cluster was resumed.
	// +optional
	Depth string `json:"depth,omitempty"`
	// LastRequestAt is when the last known request that counts as use ended; while one is open, it is when
	// hotspare saw it last. It is known on platforms that report requests, while the target is Running.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastRequestAt *metav1.Time `json:"lastRequestAt,omitempty"`
	// RefusedDepths are the depths of sleep that the platform refused in this hibernation. hotspare
	// tries them again in the next one.
	// +optional
	// +listType=map
	// +listMapKey=depth
	RefusedDepths []RefusedDepth `json:"refusedDepths,omitempty"`
	// Deadline is when the transition times out. It is unset if there is no timeout.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Deadline *metav1.Time `json:"deadline,omitempty"`
}

// GateRecord is what gates found in one run of a cluster: from its resume, or its install, until it does not
// run any more. hotspare clears it, except firstPassedAt, in the same write that ends the run.
type GateRecord struct {
	// Version identifies the gates that were checked. It is empty until they are, in each run.
	// +optional
	Version string `json:"version,omitempty"`
	// RunStartedAt is the start of the run in which the gates were checked.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	RunStartedAt *metav1.Time `json:"runStartedAt,omitempty"`
	// Passed is true if every gate passed when it was checked last.
	// +optional
	Passed bool `json:"passed,omitempty"`
	// FailedSince is when a gate started to fail in this run. It is unset while all pass.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FailedSince *metav1.Time `json:"failedSince,omitempty"`
	// Deadline is when the cluster is broken if a gate still fails. It is unset while all pass.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// PassedOnce lists the gates that have passed in this run and are not checked again in it.
	// +optional
	// +listType=set
	PassedOnce []string `json:"passedOnce,omitempty"`
	// FirstPassedAt is when every gate had passed for the first time. A spare cluster runs until then, even if
	// enough others run.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FirstPassedAt *metav1.Time `json:"firstPassedAt,omitempty"`
}

// BootstrapRecord is the progress of a cluster in the steps of a ClusterBootstrap. A cluster takes the steps once,
// in their order, and all of one version.
type BootstrapRecord struct {
	// Version identifies the steps and the content of the ConfigMaps and Secrets that they refer to. It is
	// recorded before the first step begins.
	// +optional
	Version string `json:"version,omitempty"`
	// StepsDone lists the steps that are done, in their order.
	// +optional
	// +listType=atomic
	StepsDone []string `json:"stepsDone,omitempty"`
	// Step is the step in progress. It is unset while none is: the cluster does not run, or every step is done.
	// +optional
	Step string `json:"step,omitempty"`
	// RunStartedAt is the start of the run in which the step is in progress.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	RunStartedAt *metav1.Time `json:"runStartedAt,omitempty"`
	// StepStartedAt is when the step started in this run.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	StepStartedAt *metav1.Time `json:"stepStartedAt,omitempty"`
	// Deadline is when the cluster is broken if the step is not done.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// FinishedAt is when every step was done. No claim gets the cluster before.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// Depths of sleep, from the shallowest to the deepest.
const (
	DepthFreeze  = "freeze"
	DepthSuspend = "suspend"
	DepthStop    = "stop"
)

// RefusedDepth is a depth of sleep that the platform refused.
type RefusedDepth struct {
	// Depth is the depth: freeze or suspend.
	Depth string `json:"depth"`
	// Reason is what the platform said, with the name of the machine.
	Reason string `json:"reason"`
}

// Conditions of a ClusterDeployment about its install, with their reasons.
const (
	// ClusterProvisioned reports the stage of the cluster's life cycle: its reason is one of those
	// below.
	ClusterProvisioned        = "Provisioned"
	ReasonProvisioning        = "Provisioning"
	ReasonProvisionStopped    = "ProvisionStopped"
	ReasonProvisioned         = "Provisioned"
	ReasonDeprovisioning      = "Deprovisioning"
	ReasonAwaitingBundle      = "AwaitingBundle"
	ReasonDeprovisionFailed   = "DeprovisionFailed"
	ReasonDeprovisioned       = "Deprovisioned"
	ReasonInitializing        = "Initializing"
	ReasonProvisionSuccessful = "ProvisionSucceeded"

	// ClusterProvisionStopped is True when hotspare makes no further install attempt.
	ClusterProvisionStopped     = "ProvisionStopped"
	ReasonInstallAttemptsUsedUp = "InstallAttemptsLimitReached"
	ReasonProvisionNotStopped   = "ProvisionNotStopped"

	// ClusterProvisionFailed is True while the last install attempt failed.
	ClusterProvisionFailed = "ProvisionFailed"

	// ClusterAuthenticationFailure is True after an attempt in which the platform rejected the
	// credentials.
	ClusterAuthenticationFailure = "AuthenticationFailure"
	ReasonPlatformAuthError      = "PlatformAuthError"
	// ReasonInvalidCredentials is the reason of ProvisionFailed for such an attempt.
	ReasonInvalidCredentials = "InvalidCredentials"
	// ReasonPrepareFailed is the reason of ProvisionFailed while the installer fails to prepare an attempt.
	ReasonPrepareFailed = "PrepareFailed"

	// ClusterInstallLaunchError is True while a pod of the installer cannot start.
	ClusterInstallLaunchError = "InstallLaunchError"
	ReasonPodPending          = "PodInPendingPhase"

	// ClusterRequirementsMet is False while a requirement of the installation is missing or
	// invalid.
	ClusterRequirementsMet              = "RequirementsMet"
	ReasonAllRequirementsMet            = "AllRequirementsMet"
	ReasonImageSetNotFound              = "ClusterImageSetNotFound"
	ReasonInstallConfigValidationFailed = "InstallConfigValidationFailed"
	ReasonNoExecutor                    = "UnsupportedPlatform"
	ReasonSecretNotFound                = "SecretNotFound"

	ReasonClusterInstallNotFound   = "ClusterInstallNotFound"
	ReasonClusterInstallUnreadable = "ClusterInstallUnreadable"

	// These conditions are copied from the object that spec.clusterInstallRef refers to.
	ClusterInstallRequirementsMet = "ClusterInstallRequirementsMet"
	ClusterInstallCompleted       = "ClusterInstallCompleted"
	ClusterInstallFailed          = "ClusterInstallFailed"
	ClusterInstallStopped         = "ClusterInstallStopped"

	// ClusterDeprovisionLaunchError is True while the destruction of the cluster cannot start.
	ClusterDeprovisionLaunchError = "DeprovisionLaunchError"
)

// Conditions of a ClusterDeployment about its power, with their reasons.
const (
	// ClusterHibernating is True while the cluster hibernates.
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

	// ClusterGatesPassed is True while an unclaimed cluster has passed the gates of its pool in its current
	// run. A cluster of a pool without gates does not have it.
	ClusterGatesPassed    = "GatesPassed"
	ReasonGatesPassed     = "GatesPassed"
	ReasonGateFailed      = "GateFailed"
	ReasonGatesNotChecked = "NotChecked"

	// ClusterBootstrapped is True when an unclaimed cluster has taken every step of the bootstrap of its pool. A
	// cluster of a pool without steps does not have it.
	ClusterBootstrapped    = "Bootstrapped"
	ReasonStepsDone        = "StepsDone"
	ReasonStepInProgress   = "StepInProgress"
	ReasonStepFailed       = "StepFailed"
	ReasonBootstrapChanged = "BootstrapChanged"
	ReasonStepsNotTaken    = "NotTaken"

	// ClusterDiagnosed is True when a bundle of diagnostics was stored about the last failure of the cluster, or
	// its release, and False if it could not be stored. The message has the name of the bundle.
	ClusterDiagnosed       = "Diagnosed"
	ReasonBundleWritten    = "BundleWritten"
	ReasonBundleDelayed    = "BundleDelayed"
	ReasonBundleNotWritten = "BundleNotWritten"
)

// Values of ClusterDeployment.status.powerState on which clients base decisions. All other values
// are reasons of the two power conditions.
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
