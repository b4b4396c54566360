package config

import (
	"encoding/json"
	"maps"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// sharedSettings lists the settings that mean the same in a ClusterDeployment's platform and in an
// install-config's. Other settings, such as references to Secrets with credentials, do not belong
// in an install-config.
var sharedSettings = map[string][]string{
	"aws": {
		"region", "userTags", "propagateUserTags", "defaultMachinePlatform", "amiID", "subnets", "vpc",
		"hostedZone", "hostedZoneRole", "serviceEndpoints", "lbType",
	},
	"azure": {
		"region", "baseDomainResourceGroupName", "cloudName", "userTags", "defaultMachinePlatform", "armEndpoint", "resourceGroupName",
		"networkResourceGroupName", "virtualNetwork", "controlPlaneSubnet", "computeSubnet", "outboundType",
	},
	"gcp": {
		"projectID", "region", "userLabels", "userTags", "defaultMachinePlatform", "network", "networkProjectID",
		"controlPlaneSubnet", "computeSubnet",
	},
	"ibmcloud": {
		"region", "resourceGroupName", "networkResourceGroupName", "vpcName", "controlPlaneSubnets", "computeSubnets",
		"defaultMachinePlatform", "serviceEndpoints",
	},
	"openstack": {
		"cloud", "externalNetwork", "externalDNS", "apiFloatingIP", "ingressFloatingIP", "apiVIPs", "ingressVIPs", "apiVIP", "ingressVIP",
		"computeFlavor", "machinesSubnet", "controlPlanePort", "defaultMachinePlatform", "clusterOSImage", "loadBalancer",
	},
	"vsphere": {
		"vCenter", "datacenter", "defaultDatastore", "folder", "cluster", "network", "resourcePool", "diskType",
		"apiVIPs", "ingressVIPs", "apiVIP", "ingressVIP", "loadBalancer",
	},
	"nutanix": {"prismElements", "subnetUUIDs", "apiVIPs", "ingressVIPs", "apiVIP", "ingressVIP", "defaultMachinePlatform", "loadBalancer"},
	"baremetal": {
		"libvirtURI", "apiVIPs", "ingressVIPs", "apiVIP", "ingressVIP", "hosts", "provisioningNetwork", "provisioningNetworkCIDR",
		"provisioningNetworkInterface", "provisioningDHCPRange", "provisioningBridge", "externalBridge", "bootstrapProvisioningIP",
		"clusterProvisioningIP", "loadBalancer",
	},
}

// preparedAddresses are the platforms where the addresses of a cluster are allocated in advance,
// not by the installer.
var preparedAddresses = map[string]bool{"vsphere": true, "openstack": true, "nutanix": true, "baremetal": true}

// manualCredentials are the platforms for which openshift-install supports only the manual
// credentials mode.
var manualCredentials = map[string]bool{"ibmcloud": true, "nutanix": true}

// hasOwnInstaller reports whether openshift-install does not know the platform: its installer reads
// only the parts of an install-config that it documents.
func hasOwnInstaller(p hivev1.Platform) bool { return p.Local != nil || p.Exec != nil || p.CAPI != nil }

// platformSection returns the platform key of an install-config for p; nil when p names none.
func platformSection(p hivev1.Platform) any {
	name := p.Name()
	switch name {
	case "":
		return nil
	case "exec":
		return map[string]any{name: map[string]any{"recipe": p.Exec.Recipe}}
	case "local":
		return map[string]any{name: localSection(p.Local)}
	case "capi":
		return map[string]any{name: map[string]any{}} // its installer reads the ClusterDeployment
	case "agentBareMetal":
		return map[string]any{"none": map[string]any{}} // agents are not a platform of an installer
	}
	written := platformSettings(p)
	kept := map[string]any{}
	for _, key := range sharedSettings[name] {
		if value, ok := written[key]; ok && value != nil {
			kept[key] = value
		}
	}
	switch name {
	case "vsphere":
		kept = vsphereSection(kept, written)
	case "openstack":
		if written["trunkSupport"] == true {
			kept["trunkSupport"] = "1" // a text there; newer installers detect it automatically
		}
	case "nutanix":
		nutanixSection(kept, written)
	}
	return map[string]any{name: kept}
}

// vsphereSection prefers the newer form, which is an install-config's: a cluster that was converted
// to it may still have the old fields.
func vsphereSection(flat, written map[string]any) map[string]any {
	newer, _ := written["infrastructure"].(map[string]any)
	if len(toList(newer["vcenters"])) == 0 && len(toList(newer["failureDomains"])) == 0 {
		return flat
	}
	return maps.Clone(newer)
}

// nutanixSection sets the endpoint where an install-config has it. A ClusterDeployment sets in its
// failure domains what an install-config sets for the whole cluster.
func nutanixSection(kept, written map[string]any) {
	central, _ := written["prismCentral"].(map[string]any)
	switch {
	case central == nil:
	case central["endpoint"] == nil:
		kept["prismCentral"] = map[string]any{"endpoint": maps.Clone(central)}
	default:
		kept["prismCentral"] = central
	}
	domains := toList(written["failureDomains"])
	if len(domains) == 0 {
		return
	}
	kept["failureDomains"] = domains
	if len(toList(kept["prismElements"])) == 0 {
		kept["prismElements"] = listPrismElements(domains)
	}
	if first, ok := domains[0].(map[string]any); ok && kept["subnetUUIDs"] == nil && first["subnetUUIDs"] != nil {
		kept["subnetUUIDs"] = first["subnetUUIDs"]
	}
}

// listPrismElements returns the Prism Elements of failure domains, without duplicates.
func listPrismElements(domains []any) []any {
	var out []any
	seen := map[any]bool{}
	for _, d := range domains {
		domain, _ := d.(map[string]any)
		element, ok := domain["prismElement"].(map[string]any)
		uuid, _ := element["uuid"].(string)
		if ok && !seen[uuid] {
			seen[uuid] = true
			out = append(out, element)
		}
	}
	return out
}

// isPrivateCluster reports whether the cluster must be reachable only from within its network.
func isPrivateCluster(p hivev1.Platform) bool {
	written := platformSettings(p)
	for _, key := range []string{"privateLink", "privateServiceConnect"} {
		if link, ok := written[key].(map[string]any); ok && link["enabled"] == true {
			return true
		}
	}
	return false
}

// platformSettings returns all settings of a platform of openshift-install. A section of another form
// reads as empty: ValidateComplete reports what is missing.
func platformSettings(p hivev1.Platform) map[string]any {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	tree, err := decodeJSONValue(raw)
	if err != nil {
		return nil
	}
	sections, _ := tree.(map[string]any)
	section, _ := sections[p.Name()].(map[string]any)
	return section
}

func localSection(l *hivev1.LocalPlatform) map[string]any {
	section := map[string]any{"workers": localWorkers(l)}
	if l.CertificateDuration != "" {
		section["certificateDuration"] = string(l.CertificateDuration)
	}
	if l.Containers != "" {
		section["containers"] = string(l.Containers)
	}
	if len(l.Images) > 0 {
		section["images"] = l.Images
	}
	return section
}

// localWorkers repeats the default of the schema for objects that were never stored.
func localWorkers(l *hivev1.LocalPlatform) int32 {
	if l.Workers == nil {
		return 1
	}
	return *l.Workers
}

func toList(v any) []any {
	items, _ := v.([]any)
	return items
}
