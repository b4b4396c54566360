package v1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CAPIPlatform contains the settings of a cluster that Cluster API creates on the hub: hotspare
// creates one Cluster of cluster.x-k8s.io/v1beta2 in the cluster's namespace.
//
// A cluster that exists already needs neither classRef nor templateRef: see docs/capi.md.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.classRef) && has(self.templateRef))",message="set classRef or templateRef, not both: remove one"
// +kubebuilder:validation:XValidation:rule="!has(self.templateRef) || !has(self.workers) && !has(self.clusterNetwork) && !has(self.labels)",message="workers, clusterNetwork and labels need classRef: with templateRef, write them into the template"
type CAPIPlatform struct {
	// ClassRef is the ClusterClass of the Cluster.
	// +optional
	ClassRef *CAPIClassReference `json:"classRef,omitempty"`
	// TemplateRef is the name of a ConfigMap with Cluster API manifests, in the form that clusterctl
	// generate cluster reads. Its keys contain YAML documents, one of which is the Cluster. hotspare
	// replaces ${NAME} by the variable NAME; ${NAME:=text} sets a default. hotspare sets CLUSTER_NAME,
	// NAMESPACE, KUBERNETES_VERSION and CONTROL_PLANE_MACHINE_COUNT. The ConfigMap must be in the namespace
	// of the ClusterDeployment or, for a pool, of the ClusterPool.
	// +optional
	TemplateRef *corev1.LocalObjectReference `json:"templateRef,omitempty"`
	// Version is the Kubernetes version of the cluster, such as v1.36.0. If unset, it is the tag of the
	// release image.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^v[0-9]+[.][0-9]+[.][0-9]+([-+][0-9A-Za-z.+-]+)?$')",messageExpression="'\"' + self + '\" is not a Kubernetes version: write it as v1.36.0'",message="it is not a Kubernetes version: write it as v1.36.0"
	Version string `json:"version,omitempty"`
	// ControlPlane configures the control plane.
	// +optional
	ControlPlane *CAPIControlPlane `json:"controlPlane,omitempty"`
	// Workers are the MachineDeployments of the cluster.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	Workers []CAPIWorkers `json:"workers,omitempty"`
	// Variables are the variables of the ClusterClass, or of the template.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	Variables []CAPIVariable `json:"variables,omitempty"`
	// ClusterNetwork sets the networks of pods and services. If unset, the defaults of the provider
	// apply.
	// +optional
	ClusterNetwork *CAPIClusterNetwork `json:"clusterNetwork,omitempty"`
	// Labels are set on the Cluster. ClusterResourceSets, which install a network plugin for example,
	// select Clusters by label.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`
	// Providers contains the settings with which hotspare stops and starts machines. Without the
	// settings of the provider of its machines, the cluster cannot hibernate. Bare metal of Metal3
	// needs none.
	// +optional
	Providers *CAPIProviders `json:"providers,omitempty"`
}

// CAPIClassReference identifies a ClusterClass.
type CAPIClassReference struct {
	// Name is the name of the ClusterClass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace is the namespace of the ClusterClass. If unset, it is the cluster's namespace; the
	// clusters of a pool each have their own.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// CAPIControlPlane configures the control plane of a Cluster.
type CAPIControlPlane struct {
	// Replicas is the number of control plane machines.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Replicas *int32 `json:"replicas,omitempty"`
}

// CAPIWorkers is a MachineDeployment in the topology of a Cluster.
type CAPIWorkers struct {
	// Class is the name of the class of workers in the ClusterClass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Class string `json:"class"`
	// Name is the name of the MachineDeployment in the topology, such as md-0.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Replicas is the number of machines.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`
}

// CAPIVariable is a variable of a ClusterClass or of a template.
type CAPIVariable struct {
	// Name is the name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// Value is any JSON value that the ClusterClass accepts; a template accepts a string, a number, true
	// and false.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *runtime.RawExtension `json:"value"`
}

// CAPIClusterNetwork sets the networks of a Cluster.
type CAPIClusterNetwork struct {
	// PodCIDRs are the networks of pods, such as 192.168.0.0/16.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	PodCIDRs []string `json:"podCIDRs,omitempty"`
	// ServiceCIDRs are the networks of services, such as 10.128.0.0/12.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	ServiceCIDRs []string `json:"serviceCIDRs,omitempty"`
}

// CAPIProviders contains settings for the clouds on which Cluster API runs the cluster's machines,
// each as in spec.platform.
type CAPIProviders struct {
	// AWS contains region and credentialsSecretRef, as spec.platform.aws does.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	AWS *runtime.RawExtension `json:"aws,omitempty"`
	// GCP contains region and credentialsSecretRef, as spec.platform.gcp does.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	GCP *runtime.RawExtension `json:"gcp,omitempty"`
	// Azure contains credentialsSecretRef and optionally cloudName, as spec.platform.azure does.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Azure *runtime.RawExtension `json:"azure,omitempty"`
	// VSphere contains vCenter, credentialsSecretRef and certificatesSecretRef, as
	// spec.platform.vsphere does.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	VSphere *runtime.RawExtension `json:"vsphere,omitempty"`
	// OpenStack contains cloud, credentialsSecretRef and optionally certificatesSecretRef, as
	// spec.platform.openstack does.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	OpenStack *runtime.RawExtension `json:"openstack,omitempty"`
}

// Platforms returns, for each provider that is set, a Platform with its settings, in the order of
// the fields.
func (p *CAPIProviders) Platforms() []Platform {
	if p == nil {
		return nil
	}
	all := []Platform{{AWS: p.AWS}, {GCP: p.GCP}, {Azure: p.Azure}, {VSphere: p.VSphere}, {OpenStack: p.OpenStack}}
	return slices.DeleteFunc(all, func(one Platform) bool { return one.Name() == "" })
}
