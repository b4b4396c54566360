package v1

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Platform selects exactly one platform and contains its settings.
//
// Only the platforms that Hive lacks, local, exec and capi, have Go types. The settings of the others are
// stored as written: the package of each platform reads the settings that it needs.
type Platform struct {
	// AWS contains the settings for Amazon Web Services.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	AWS *runtime.RawExtension `json:"aws,omitempty"`
	// Azure contains the settings for Microsoft Azure.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Azure *runtime.RawExtension `json:"azure,omitempty"`
	// GCP contains the settings for Google Cloud.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	GCP *runtime.RawExtension `json:"gcp,omitempty"`
	// VSphere contains the settings for VMware vSphere.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	VSphere *runtime.RawExtension `json:"vsphere,omitempty"`
	// OpenStack contains the settings for OpenStack.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	OpenStack *runtime.RawExtension `json:"openstack,omitempty"`
	// BareMetal contains the settings for bare metal that openshift-install provisions.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	BareMetal *runtime.RawExtension `json:"baremetal,omitempty"`
	// AgentBareMetal contains the settings for bare metal that the assisted service installs.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	AgentBareMetal *runtime.RawExtension `json:"agentBareMetal,omitempty"`
	// IBMCloud contains the settings for IBM Cloud.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	IBMCloud *runtime.RawExtension `json:"ibmcloud,omitempty"`
	// Nutanix contains the settings for Nutanix.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Nutanix *runtime.RawExtension `json:"nutanix,omitempty"`
	// None is for a platform-agnostic installation. It has no settings.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	None *runtime.RawExtension `json:"none,omitempty"`
	// Local creates clusters of processes on the computer on which hotspare up runs.
	// +optional
	// +nullable
	Local *LocalPlatform `json:"local,omitempty"`
	// Exec creates clusters with a recipe: a folder of programs that create and destroy clusters
	// with a tool of your choice.
	// +optional
	// +nullable
	Exec *ExecPlatform `json:"exec,omitempty"`
	// CAPI creates clusters with the Cluster API that is installed on the hub.
	// +optional
	// +nullable
	CAPI *CAPIPlatform `json:"capi,omitempty"`
}

// LocalPlatform contains the settings of a cluster of processes on this computer.
// +kubebuilder:validation:XValidation:rule="!has(self.containers) || self.containers != 'Always' || !has(self.workers) || self.workers > 0",message="with containers: Always, workers must be at least 1, because the workers run the containers"
type LocalPlatform struct {
	// Workers is the number of worker machines, in addition to the one control plane machine. With
	// 0, the control plane machine's node reports that pods run, and there are no containers.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Workers *int32 `json:"workers,omitempty"`
	// CertificateDuration is how long the certificates of the cluster's nodes are valid. It must be
	// at least 1m.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?m|[0-9]{1,9}([.][0-9]+)?s|[0-9]{1,12}([.][0-9]+)?ms|[0-9]{1,15}([.][0-9]+)?(us|µs)|[0-9]{1,18}ns)+)$') || duration(self) >= duration('1m')",messageExpression="'\"' + self + '\" is shorter than one minute, and nodes cannot renew their certificates in less: write at least 1m, such as 24h'"
	CertificateDuration Duration `json:"certificateDuration,omitempty"`
	// Containers is whether the worker machines run the containers of pods: each worker is then a
	// real node with a kubelet, which needs Linux and the programs and rights that hotspare doctor
	// lists. Otherwise the nodes only report that pods run. With Auto, the default, the
	// workers run containers if this computer can when the cluster is created, and otherwise their
	// nodes say what is missing. With Always, no cluster is created until it can. With Never, nodes
	// only report that pods run, which takes less memory.
	// +optional
	Containers LocalContainers `json:"containers,omitempty"`
	// Images are the names of container images that workers that run containers pull before they are ready for the
	// first time, so that pods with these images start at once. The cluster is not installed before its workers have
	// them. They are pulled as for pods: those that were loaded with hotspare image load need no registry. Workers that
	// run no containers pull none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	Images []LocalImage `json:"images,omitempty"`
}

// LocalImage is the name of a container image, such as busybox:1.36 or registry.example.com/team/app:v1.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*(:[0-9]{1,5})?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*(:[_a-zA-Z0-9][-._a-zA-Z0-9]{0,127})?(@sha256:[0-9a-f]{64})?$')",messageExpression="'\"' + self + '\" is not the name of an image: write it like busybox:1.36 or registry.example.com/team/app:v1'"
type LocalImage string

// LocalContainers says whether the workers of a local cluster run containers.
// +kubebuilder:validation:Enum=Auto;Always;Never
type LocalContainers string

// The values of LocalContainers.
const (
	LocalContainersAuto   LocalContainers = "Auto"
	LocalContainersAlways LocalContainers = "Always"
	LocalContainersNever  LocalContainers = "Never"
)

// ExecPlatform contains the settings of a cluster that the programs of a recipe create.
type ExecPlatform struct {
	// Recipe is the name of the recipe: a folder below the one that hotspare up --recipes names, or on
	// another hub a folder in the release image. It consists of lower-case letters, digits and
	// dashes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Recipe string `json:"recipe"`
	// With contains the parameters of the recipe, by name. The recipe defines which there are, with
	// their defaults; hotspare recipe describe lists them. Do not write credentials here: use
	// credentialsSecretRef.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	With map[string]ExecParameter `json:"with,omitempty"`
	// CredentialsSecretRef is the name of a Secret in the same namespace. While a program of the
	// recipe runs, it finds each key as a file in the folder $HOTSPARE_SECRETS.
	// +optional
	// +nullable
	CredentialsSecretRef *corev1.LocalObjectReference `json:"credentialsSecretRef,omitempty"`
	// Timeouts limit how long one run of each program may take. Defaults to those of the recipe.
	// +optional
	Timeouts ExecTimeouts `json:"timeouts,omitempty,omitzero"`
}

// ExecParameter is the value of one parameter of a recipe.
//
// +kubebuilder:validation:MaxLength=4096
type ExecParameter string

// ExecTimeouts contains the time limits for one run of each program of a recipe. A program that
// exits with code 10 is run again, with the same limit.
type ExecTimeouts struct {
	// Prepare limits the program prepare.
	// +optional
	Prepare ExecTimeout `json:"prepare,omitempty"`
	// Create limits the program create.
	// +optional
	Create ExecTimeout `json:"create,omitempty"`
	// Destroy limits the program destroy.
	// +optional
	Destroy ExecTimeout `json:"destroy,omitempty"`
	// Observe limits the program observe.
	// +optional
	Observe ExecTimeout `json:"observe,omitempty"`
	// Kubeconfig limits the program kubeconfig.
	// +optional
	Kubeconfig ExecTimeout `json:"kubeconfig,omitempty"`
	// Stop limits the program stop.
	// +optional
	Stop ExecTimeout `json:"stop,omitempty"`
	// Start limits the program start.
	// +optional
	Start ExecTimeout `json:"start,omitempty"`
}

// ExecTimeout is a Duration of one second to one day.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?m|[0-9]{1,9}([.][0-9]+)?s)+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",messageExpression="'\"' + self + '\" is not a duration of one second to one day: write hours (h), minutes (m) and seconds (s), such as 20m or 1h30m'"
type ExecTimeout string

// Parse returns the duration; "" is 0. The error names the value and the remedy.
func (t ExecTimeout) Parse() (time.Duration, error) { return Duration(t).Parse() }

// PlatformSettings contains the settings that most platforms share.
type PlatformSettings struct {
	CredentialsSecretRef  *corev1.LocalObjectReference `json:"credentialsSecretRef,omitempty"`
	CertificatesSecretRef *corev1.LocalObjectReference `json:"certificatesSecretRef,omitempty"`
	Region                string                       `json:"region,omitempty"`
}

// FieldSettings contains settings and the path of the field that contains them.
//
// +kubebuilder:object:generate=false
type FieldSettings struct {
	PlatformSettings
	Field string
}

// section is one platform: its JSON key and its settings.
type section struct {
	name string
	raw  *runtime.RawExtension
}

func (p *Platform) sections() []section {
	return []section{
		{"aws", p.AWS},
		{"azure", p.Azure},
		{"gcp", p.GCP},
		{"vsphere", p.VSphere},
		{"openstack", p.OpenStack},
		{"baremetal", p.BareMetal},
		{"agentBareMetal", p.AgentBareMetal},
		{"ibmcloud", p.IBMCloud},
		{"nutanix", p.Nutanix},
		{"none", p.None},
	}
}

// Name returns the key of the platform that is set, such as "aws" or "local"; "" if none is set.
// If several are set, which the schema rejects, it returns the first in the order of the fields.
func (p Platform) Name() string {
	for _, s := range p.sections() {
		if s.raw != nil {
			return s.name
		}
	}
	switch {
	case p.Local != nil:
		return "local"
	case p.Exec != nil:
		return "exec"
	case p.CAPI != nil:
		return "capi"
	}
	return ""
}

// Settings returns the shared settings of the platform that is set. Settings that cannot be decoded
// are returned as empty.
func (p Platform) Settings() PlatformSettings {
	var out PlatformSettings
	if p.Exec != nil {
		out.CredentialsSecretRef = p.Exec.CredentialsSecretRef
	}
	for _, s := range p.sections() {
		if s.raw == nil {
			continue
		}
		if err := json.Unmarshal(s.raw.Raw, &out); err != nil {
			return PlatformSettings{}
		}
		return out
	}
	return out
}

// AllSettings returns the shared settings of the platform that is set; of capi, those of each of its
// providers. The field is where the settings are, such as spec.platform.capi.providers.aws.
func (p Platform) AllSettings() []FieldSettings {
	if p.CAPI == nil {
		return []FieldSettings{{Field: "spec.platform." + p.Name(), PlatformSettings: p.Settings()}}
	}
	var out []FieldSettings
	for _, one := range p.CAPI.Providers.Platforms() {
		out = append(out, FieldSettings{Field: "spec.platform.capi.providers." + one.Name(), PlatformSettings: one.Settings()})
	}
	return out
}
