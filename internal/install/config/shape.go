package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// shape is the kind of value that a key requires. Keys that are not listed accept any kind.
type shape struct {
	paths string // separated by spaces
	want  string // as text
	fits  func(v any) bool
}

var shapes = []shape{
	{
		"sshKey additionalTrustBundle additionalTrustBundlePolicy publish credentialsMode featureSet cpuPartitioningMode " +
			"networking.networkType networking.type networking.serviceCIDR networking.machineCIDR " +
			"networking.clusterNetwork[].cidr networking.clusterNetworks[].cidr networking.machineNetwork[].cidr " +
			"controlPlane.name controlPlane.architecture controlPlane.hyperthreading compute[].name compute[].architecture compute[].hyperthreading " +
			"proxy.httpProxy proxy.httpsProxy proxy.noProxy bootstrapInPlace.installationDisk capabilities.baselineCapabilitySet " +
			"platform.aws.region platform.aws.amiID platform.aws.hostedZone platform.azure.region platform.azure.baseDomainResourceGroupName " +
			"platform.azure.cloudName platform.azure.resourceGroupName platform.gcp.region platform.gcp.projectID platform.gcp.network " +
			"platform.ibmcloud.region platform.ibmcloud.resourceGroupName platform.openstack.cloud platform.openstack.externalNetwork " +
			"platform.openstack.apiFloatingIP platform.openstack.ingressFloatingIP platform.openstack.lbFloatingIP platform.openstack.computeFlavor " +
			"platform.vsphere.vCenter platform.vsphere.username platform.vsphere.datacenter platform.vsphere.defaultDatastore " +
			"platform.vsphere.cluster platform.vsphere.network platform.vsphere.folder platform.vsphere.resourcePool platform.vsphere.diskType " +
			"platform.vsphere.vcenters[].server platform.vsphere.vcenters[].user platform.vsphere.failureDomains[].name " +
			"platform.vsphere.failureDomains[].region platform.vsphere.failureDomains[].zone platform.vsphere.failureDomains[].server " +
			"platform.nutanix.prismCentral.username platform.nutanix.prismCentral.endpoint.address " +
			"platform.baremetal.libvirtURI platform.baremetal.provisioningNetwork platform.baremetal.provisioningNetworkCIDR " +
			"platform.baremetal.hosts[].name platform.baremetal.hosts[].role platform.baremetal.hosts[].bootMACAddress " +
			"platform.baremetal.hosts[].bmc.address platform.baremetal.hosts[].bmc.username " +
			"platform.vsphere.apiVIP platform.vsphere.ingressVIP platform.baremetal.apiVIP platform.baremetal.ingressVIP " +
			"platform.openstack.apiVIP platform.openstack.ingressVIP platform.nutanix.apiVIP platform.nutanix.ingressVIP",
		"a string", isText,
	},
	{
		"platform.vsphere.password platform.vsphere.vcenters[].password platform.nutanix.prismCentral.password platform.baremetal.hosts[].bmc.password",
		"a string", isText,
	},
	{
		"fips platform.aws.propagateUserTags platform.aws.experimentalPropagateUserTags platform.baremetal.hosts[].bmc.disableCertificateVerification",
		"true or false, without quotes", isBool,
	},
	{
		"networking proxy capabilities bootstrapInPlace metadata.labels metadata.annotations controlPlane.platform compute[].platform " +
			"networking.clusterNetwork[] networking.clusterNetworks[] networking.machineNetwork[] " +
			"platform.aws.defaultMachinePlatform platform.azure.defaultMachinePlatform platform.gcp.defaultMachinePlatform " +
			"platform.openstack.defaultMachinePlatform platform.nutanix.prismCentral platform.nutanix.prismCentral.endpoint " +
			"platform.vsphere.vcenters[] platform.vsphere.failureDomains[] platform.vsphere.failureDomains[].topology platform.vsphere.loadBalancer " +
			"platform.baremetal.hosts[] platform.baremetal.hosts[].bmc platform.nutanix.prismElements[]",
		"a mapping", isMapping,
	},
	{
		"networking.clusterNetwork networking.clusterNetworks networking.machineNetwork imageContentSources imageDigestSources " +
			"platform.vsphere.vcenters platform.vsphere.failureDomains platform.baremetal.hosts platform.nutanix.prismElements " +
			"platform.nutanix.failureDomains platform.aws.serviceEndpoints",
		"a list", isList,
	},
	{
		"networking.serviceNetwork platform.aws.subnets platform.openstack.externalDNS platform.nutanix.subnetUUIDs " +
			"platform.vsphere.vcenters[].datacenters platform.vsphere.failureDomains[].topology.networks " +
			"platform.vsphere.apiVIPs platform.vsphere.ingressVIPs platform.baremetal.apiVIPs platform.baremetal.ingressVIPs " +
			"platform.openstack.apiVIPs platform.openstack.ingressVIPs platform.nutanix.apiVIPs platform.nutanix.ingressVIPs " +
			"capabilities.additionalEnabledCapabilities",
		"a list of strings", isTextList,
	},
	{"platform.aws.userTags platform.azure.userTags", "a mapping of strings", isTextMapping},
	{
		"networking.clusterNetwork[].hostPrefix networking.clusterNetworks[].hostPrefix networking.clusterNetworks[].hostSubnetLength " +
			"platform.vsphere.vcenters[].port platform.nutanix.prismCentral.endpoint.port",
		"a whole number, without quotes", isWholeNumber,
	},
}

// textChoices lists the keys that accept a fixed set of texts.
var textChoices = []struct{ paths, want string }{
	{"controlPlane.architecture compute[].architecture", "amd64 arm64 ppc64le s390x"},
	{"controlPlane.hyperthreading compute[].hyperthreading", "Enabled Disabled"},
	{"publish", "External Internal Mixed"},
	{"credentialsMode", "Mint Passthrough Manual"},
}

func (ps *problems) checkValueKinds(doc document) {
	for _, s := range shapes {
		for path := range strings.FieldsSeq(s.paths) {
			doc.visitValuesAt(path, func(at string, v any) {
				if !s.fits(v) {
					ps.addProblem(at, "is %s, want %s", describeKind(v), s.want)
				}
			})
		}
	}
	for _, c := range textChoices {
		for path := range strings.FieldsSeq(c.paths) {
			doc.visitValuesAt(path, func(at string, v any) {
				text, ok := v.(string)
				if allowed := strings.Fields(c.want); ok && text != "" && !slices.Contains(allowed, text) {
					ps.addProblem(at, "%q is not allowed: use %s", text, joinAlternatives(allowed))
				}
			})
		}
	}
}

// joinAlternatives returns "a, b or c".
func joinAlternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// isText reports whether v is a scalar: installers read numbers and booleans as texts where they
// expect a text.
func isText(v any) bool { return !isMapping(v) && !isList(v) }

func isBool(v any) bool    { _, ok := v.(bool); return ok }
func isMapping(v any) bool { _, ok := v.(map[string]any); return ok }
func isList(v any) bool    { _, ok := v.([]any); return ok }

func isWholeNumber(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	_, err := n.Int64()
	return err == nil
}

func isTextList(v any) bool {
	items, ok := v.([]any)
	return ok && !slices.ContainsFunc(items, func(item any) bool { return !isText(item) })
}

func isTextMapping(v any) bool {
	tags, ok := v.(map[string]any)
	return ok && !slices.ContainsFunc(slices.Collect(maps.Values(tags)), func(tag any) bool { return !isText(tag) })
}
