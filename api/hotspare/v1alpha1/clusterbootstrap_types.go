package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ClusterBootstrap says what the spare clusters of a pool need before a claim may get one. The PoolPolicy
// of a pool names it in spec.bootstrapRef; several pools of its namespace may use it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cb
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=='Valid')].status`
// +kubebuilder:printcolumn:name="Steps",type=string,JSONPath=`.spec.steps[*].name`
// +kubebuilder:printcolumn:name="Gates",type=string,JSONPath=`.spec.gates[*].name`
// +kubebuilder:printcolumn:name="Timeout",type=string,JSONPath=`.spec.gateTimeout`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterBootstrap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec ClusterBootstrapSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterBootstrapStatus `json:"status,omitempty"`
}

// ClusterBootstrapSpec lists the steps that hotspare takes in spare clusters, and their gates.
//
// +kubebuilder:validation:XValidation:rule="has(self.steps) || has(self.gates)",message="it has neither steps nor gates: add one of them"
type ClusterBootstrapSpec struct {
	// Steps are taken in each spare cluster, in their order, when it runs for the first time. A claim gets the
	// cluster only after every step is done. A change of a step, or of a ConfigMap or Secret that it refers to,
	// makes the spare clusters stale: the pool replaces them, one at a time.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Steps []BootstrapStep `json:"steps,omitempty"`
	// Gates are checks of a running spare cluster. A claim gets it only after every gate has passed in its
	// current run: hotspare checks them after the install, after each resume, and while it waits for a claim.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Gates []Gate `json:"gates,omitempty"`
	// GateTimeout is how long a gate of a spare cluster may fail. Then the cluster is broken, and the pool
	// replaces it. Defaults to 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9.hms]+$') || duration(self) > duration('0s')",message="it is 0: write a longer time, such as 10m"
	GateTimeout hivev1.Duration `json:"gateTimeout,omitempty"`
	// CheckInterval is how often hotspare rechecks the gates of a spare cluster that has passed them.
	// Defaults to 30s; a value below 1s counts as 1s.
	// +optional
	// +kubebuilder:default="30s"
	CheckInterval hivev1.Duration `json:"checkInterval,omitempty"`
}

// BootstrapStep is one step in a spare cluster.
//
// +kubebuilder:validation:XValidation:rule="[has(self.manifests), has(self.job), has(self.chart)].filter(x, x).size() == 1",message="set one of manifests, job and chart"
type BootstrapStep struct {
	// Name identifies the step in conditions and events.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Manifests are objects that hotspare applies to the cluster, with server-side apply and the cluster's
	// admin kubeconfig. The step is done when every object is there and current: a Deployment is available, a
	// CustomResourceDefinition is served.
	// +optional
	Manifests *BootstrapManifests `json:"manifests,omitempty"`
	// Job is a program that hotspare runs in the cluster, as a Job in namespace hotspare-bootstrap. The step is done
	// when the Job is complete.
	// +optional
	Job *BootstrapJob `json:"job,omitempty"`
	// Chart is a Helm chart that hotspare renders, and applies as it applies manifests. The step is done when every
	// object of the chart is there and current, and its hooks have succeeded.
	// +optional
	Chart *BootstrapChart `json:"chart,omitempty"`
	// Timeout is how long the step may take. Then the cluster is broken, and the pool replaces it. Time in which
	// the cluster does not run does not count. If a Job or Pod of the step has failed permanently, the cluster is
	// broken 30 seconds later. A change of it makes no cluster stale. Defaults to 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9.hms]+$') || duration(self) > duration('0s')",message="it is 0: write a longer time, such as 10m"
	Timeout hivev1.Duration `json:"timeout,omitempty"`
}

// BootstrapManifests are objects to apply: first those of objects, then those of from, in their order.
//
// +kubebuilder:validation:XValidation:rule="has(self.objects) || has(self.from)",message="it has no objects: set objects or from"
type BootstrapManifests struct {
	// Objects are the objects themselves. Everybody who may read the ClusterBootstrap can read them: keep
	// secrets in a Secret, and refer to it in from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:XEmbeddedResource
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`
	// From are ConfigMaps and Secrets in the namespace of the ClusterBootstrap. The value of each of their keys
	// is YAML with one or more objects. They are applied in the order of the keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	From []ManifestSource `json:"from,omitempty"`
}

// BootstrapJob is a program that runs in a spare cluster.
type BootstrapJob struct {
	// Image is the image of its container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`
	// Command is what the container runs. If unset, the image's entrypoint runs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	Command []string `json:"command,omitempty"`
	// EnvFrom are ConfigMaps and Secrets in the namespace of the ClusterBootstrap. Each of their keys becomes an
	// environment variable of the container; of two values of a key, the later one counts. hotspare copies them
	// into a Secret in the cluster, and deletes it when the Job has ended.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	EnvFrom []ManifestSource `json:"envFrom,omitempty"`
	// ClusterAdmin gives the program all rights in the cluster until the Job has ended: its pod has a token of a
	// ServiceAccount that is bound to ClusterRole cluster-admin. If false, its pod has no token.
	// +optional
	ClusterAdmin bool `json:"clusterAdmin,omitempty"`
}

// BootstrapChart is a packaged Helm chart, and the release that it becomes.
type BootstrapChart struct {
	// ArchiveFrom is the ConfigMap or Secret, in the namespace of the ClusterBootstrap, with the packaged chart as the value
	// of its only key, such as kubectl create configmap web-chart --from-file web-1.2.3.tgz creates.
	ArchiveFrom ManifestSource `json:"archiveFrom"`
	// ReleaseName is the name of the release. Defaults to the name of the step.
	// +optional
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName,omitempty"`
	// Namespace is the namespace of the release. hotspare creates it. Defaults to default.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// Values override the values of the chart. Everybody who may read the ClusterBootstrap can read them: keep
	// secrets in a Secret, and refer to it in valuesFrom.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// ValuesFrom are ConfigMaps and Secrets in the namespace of the ClusterBootstrap. The value of each of their keys
	// is YAML with values. They override those of values; of two of them, the later one counts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ValuesFrom []ManifestSource `json:"valuesFrom,omitempty"`
}

// ManifestSource is a ConfigMap or a Secret with manifests, the environment of a Job, or a chart or values for it.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.secretRef)",message="set either configMapRef or secretRef"
type ManifestSource struct {
	// ConfigMapRef names a ConfigMap.
	// +optional
	ConfigMapRef *ManifestReference `json:"configMapRef,omitempty"`
	// SecretRef names a Secret. Conditions and events name its objects, and show nothing else of it.
	// +optional
	SecretRef *ManifestReference `json:"secretRef,omitempty"`
}

// ManifestReference names an object in the namespace of the ClusterBootstrap.
type ManifestReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GateType is what a gate checks.
//
// +kubebuilder:validation:Enum=NodesReady;SystemDeploymentsAvailable;APIServicesAvailable;ServiceAccountToken;DNSAnswers;PodRuns;Object
type GateType string

// The types of gates.
const (
	// GateNodesReady passes if the cluster has a node and every node is ready.
	GateNodesReady GateType = "NodesReady"
	// GateSystemDeploymentsAvailable passes if every Deployment in namespace kube-system is available.
	GateSystemDeploymentsAvailable GateType = "SystemDeploymentsAvailable"
	// GateAPIServicesAvailable passes if every APIService is available.
	GateAPIServicesAvailable GateType = "APIServicesAvailable"
	// GateServiceAccountToken passes if the cluster issues a token for ServiceAccount default in namespace
	// default, and accepts it.
	GateServiceAccountToken GateType = "ServiceAccountToken"
	// GateDNSAnswers passes if a pod resolves the name kubernetes.default.svc, and connects to it.
	GateDNSAnswers GateType = "DNSAnswers"
	// GatePodRuns passes if a pod runs, or, with a command, ends with exit code 0.
	GatePodRuns GateType = "PodRuns"
	// GateObject passes if an expression about an object of the cluster is true.
	GateObject GateType = "Object"
)

// Gate is one check of a spare cluster.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Object') == has(self.object)",message="type Object needs object, and only that type has it: set object to the object and the expression"
// +kubebuilder:validation:XValidation:rule="self.type != 'PodRuns' || has(self.pod)",message="type PodRuns needs pod: set pod.image"
// +kubebuilder:validation:XValidation:rule="!has(self.pod) || self.type == 'PodRuns' || self.type == 'DNSAnswers' && !has(self.pod.command)",message="pod is for type PodRuns, and its image for type DNSAnswers: remove it"
type Gate struct {
	// Name identifies the gate in conditions and events.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Type is what the gate checks: NodesReady, SystemDeploymentsAvailable, APIServicesAvailable,
	// ServiceAccountToken, DNSAnswers, PodRuns or Object. DNSAnswers and PodRuns are checked once in each run
	// of a cluster, because they create a pod.
	Type GateType `json:"type"`
	// Object is the object that a gate of type Object checks.
	// +optional
	Object *GateObjectCheck `json:"object,omitempty"`
	// Pod is the pod of a gate of type PodRuns or DNSAnswers. DNSAnswers defaults to the image
	// docker.io/library/busybox:stable.
	// +optional
	Pod *GatePod `json:"pod,omitempty"`
}

// GateObjectCheck is an expression about an object of the cluster.
type GateObjectCheck struct {
	// APIVersion of the object, such as apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9.-]+/)?v[a-z0-9]+$`
	APIVersion string `json:"apiVersion"`
	// Kind of the object, such as Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind"`
	// Namespace of the object; empty for one that has none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	// +kubebuilder:validation:XValidation:rule="self != '.' && self != '..'",message="it is not a name of an object"
	Name string `json:"name"`
	// Expression is a CEL expression about the variable object that must be true, such as
	// object.status.readyReplicas >= 2. An expression that cannot be evaluated, and an object that does not
	// exist, count as false.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression"`
	// Message explains what is missing while the expression is false. Conditions and events show it. If
	// unset, they show the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Message string `json:"message,omitempty"`
}

// GatePod is the pod of a gate. hotspare creates it in namespace default of the cluster, and deletes it when
// the gate has passed.
type GatePod struct {
	// Image is the image of its container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	Image string `json:"image"`
	// Command is what the container runs. The gate passes when it ends with exit code 0; without a command,
	// the gate passes when the container runs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=2000
	Command []string `json:"command,omitempty"`
}

// ClusterBootstrapStatus is the observed state of a ClusterBootstrap. hotspare writes it.
type ClusterBootstrapStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the bootstrap: Valid. At most one of Reconciling and Stalled is present, and only while
	// it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of a ClusterBootstrap, with their reasons.
const (
	// BootstrapValid is False while the spec is not valid. No spare of its pools passes its gates then.
	BootstrapValid          = "Valid"
	ReasonInvalidExpression = "InvalidExpression"
	ReasonInvalidDuration   = "InvalidDuration"
	ReasonInvalidManifest   = "InvalidManifest"
	// ReasonUnderstood, of a PowerSchedule, too: the spec is valid.
)

// LabelGate, on a pod in a spare cluster, marks it as the pod of a gate. Its value identifies the run of the
// cluster.
const LabelGate = "hotspare.io/gate"

// LabelBootstrapVersion, on an object in a spare cluster, marks what hotspare has created to take a step, beside the
// manifests and charts of users. Its value is the version of the steps.
const LabelBootstrapVersion = "hotspare.io/bootstrap-version"

// ClusterBootstrapList is a list of ClusterBootstraps.
//
// +kubebuilder:object:root=true
type ClusterBootstrapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterBootstrap `json:"items"`
}
