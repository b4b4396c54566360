package v1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Platform names exactly one platform and carries its settings.
//
// Only the local platform is described here. The settings of the others are
// kept exactly as written: each platform's own package reads what it needs.
type Platform struct {
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	AWS *runtime.RawExtension `json:"aws,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Azure *runtime.RawExtension `json:"azure,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	GCP *runtime.RawExtension `json:"gcp,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	VSphere *runtime.RawExtension `json:"vsphere,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	OpenStack *runtime.RawExtension `json:"openstack,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	BareMetal *runtime.RawExtension `json:"baremetal,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	AgentBareMetal *runtime.RawExtension `json:"agentBareMetal,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	IBMCloud *runtime.RawExtension `json:"ibmcloud,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Nutanix *runtime.RawExtension `json:"nutanix,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	None *runtime.RawExtension `json:"none,omitempty"`
	// Local makes clusters from processes on the computer that runs hotspare up.
	// +optional
	// +nullable
	Local *LocalPlatform `json:"local,omitempty"`
}

// LocalPlatform is a cluster of processes on this computer.
type LocalPlatform struct {
	// Workers is the number of worker machines beside the one control plane; with 0 pods run on the control plane.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Workers *int32 `json:"workers,omitempty"`
	// CertificateDuration is how long the certificates of the cluster's nodes live. At least 1m.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?m|[0-9]{1,9}([.][0-9]+)?s|[0-9]{1,12}([.][0-9]+)?ms|[0-9]{1,15}([.][0-9]+)?(us|µs)|[0-9]{1,18}ns)+)$') || duration(self) >= duration('1m')",messageExpression="'\"' + self + '\" is shorter than a minute, in which no node could renew its certificate: write at least 1m, such as 24h'"
	CertificateDuration Duration `json:"certificateDuration,omitempty"`
}

// PlatformSettings are the few settings that most platforms share.
type PlatformSettings struct {
	CredentialsSecretRef  *corev1.LocalObjectReference `json:"credentialsSecretRef,omitempty"`
	CertificatesSecretRef *corev1.LocalObjectReference `json:"certificatesSecretRef,omitempty"`
	Region                string                       `json:"region,omitempty"`
}

// section is one platform's key in JSON with what stands there.
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

// Name is the key of the platform that is set: "aws", "local"; "" when none is.
// Were several set, the first in the order of the fields counts; the schema refuses that.
func (p Platform) Name() string {
	for _, s := range p.sections() {
		if s.raw != nil {
			return s.name
		}
	}
	if p.Local != nil {
		return "local"
	}
	return ""
}

// Settings are the shared settings of the platform that is set. A section of
// another shape than expected reads as empty.
func (p Platform) Settings() PlatformSettings {
	var out PlatformSettings
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
