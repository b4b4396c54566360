package config

import (
	"encoding/json"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// shared lists the settings that mean the same in a ClusterDeployment's
// platform and in an install-config's. The others, such as references to
// Secrets with credentials, have no place in an install-config.
var shared = map[string][]string{
	"aws":       {"region", "userTags"},
	"azure":     {"region", "baseDomainResourceGroupName", "cloudName"},
	"gcp":       {"region"},
	"ibmcloud":  {"region"},
	"openstack": {"cloud"},
	"vsphere":   {"vCenter", "datacenter", "defaultDatastore", "folder", "cluster", "network"},
	"nutanix":   {"prismCentral", "prismElements", "subnetUUIDs"},
}

// platformSection is the platform key of an install-config for p; nil when p names none.
func platformSection(p hivev1.Platform) any {
	name := p.Name()
	if name == "" {
		return nil
	}
	if p.Local != nil {
		return map[string]any{name: localSection(p.Local)}
	}
	written := settings(p)
	kept := map[string]any{}
	for _, key := range shared[name] {
		if value, ok := written[key]; ok {
			kept[key] = value
		}
	}
	return map[string]any{name: kept}
}

// settings are all settings of a platform other than local. A section of
// another shape reads as empty: the installer is the judge of what is missing.
func settings(p hivev1.Platform) map[string]any {
	var sections map[string]map[string]any
	raw, err := json.Marshal(p)
	if err != nil || json.Unmarshal(raw, &sections) != nil {
		return nil
	}
	return sections[p.Name()]
}

func localSection(l *hivev1.LocalPlatform) map[string]any {
	section := map[string]any{"workers": localWorkers(l)}
	if l.CertificateDuration != "" {
		section["certificateDuration"] = string(l.CertificateDuration)
	}
	return section
}

// localWorkers repeats the default of the schema, which an object that was
// never stored has not been through.
func localWorkers(l *hivev1.LocalPlatform) int32 {
	if l.Workers == nil {
		return 1
	}
	return *l.Workers
}
