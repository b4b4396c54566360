package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ValidateComplete checks what Validate does, and that nothing is missing that an installer for the
// cluster's platform needs. It requires names and secrets in the form that openshift-install
// requires, and the platform and region of the cluster.
//
// The platforms local, exec and capi have their own installers, which report what is missing: there
// ValidateComplete does the same as Validate.
func ValidateComplete(raw []byte, cluster hivev1.Platform) error {
	doc, err := parseDocument(raw)
	if err != nil {
		return err
	}
	found := collectProblems(doc)
	platforms, _ := doc["platform"].(map[string]any)
	if hasOwnInstaller(cluster) || platforms["local"] != nil {
		return found.deniedError()
	}
	platform := doc.platformName()
	found.checkVersion(doc["apiVersion"])
	found.checkCloudName(doc, platform)
	found.checkMachinePlatforms(doc, platform)
	found.checkSSHKey(doc["sshKey"])
	found.checkTrustBundle(doc["additionalTrustBundle"])
	found.checkPullSecret(doc["pullSecret"])
	found.checkMatchesCluster(doc, platform, cluster)
	found.checkRequired(doc, platform, cluster)
	return found.deniedError()
}

// platformName returns the key of the platform; "" if there is not exactly one.
func (d document) platformName() string {
	var names []string
	platforms, _ := d["platform"].(map[string]any)
	for name, section := range platforms {
		if section != nil {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return ""
	}
	return names[0]
}

func (ps *problems) checkVersion(v any) {
	version, _ := v.(string)
	switch {
	case isEmptyValue(v):
		ps.addProblem("apiVersion", "is missing: set it to %s", apiVersions[0])
	case !slices.Contains(apiVersions, version):
		ps.addProblem("apiVersion", "%q is not the value for an install-config: set it to %s", fmt.Sprint(v), apiVersions[0])
	}
}

// MaxCloudName is the maximum length of a cluster's name in openshift-install: it leaves room for
// the prefixes that it adds in DNS.
const MaxCloudName = 54

func (ps *problems) checkCloudName(doc document, platform string) {
	name, _ := doc.valueAt("metadata.name").(string)
	if len(name) > MaxCloudName {
		ps.addProblem("metadata.name", "%q has %d characters, and openshift-install accepts at most %d: use a shorter name", name, len(name), MaxCloudName)
	}
	if name != "" && RequiresLeadingLetter(platform) && (name[0] < 'a' || name[0] > 'z') {
		ps.addProblem("metadata.name", "%q does not start with a letter, as %s requires: use another name", name, platform)
	}
}

// RequiresLeadingLetter reports whether the name of a cluster must begin with a letter on a
// platform.
func RequiresLeadingLetter(platform string) bool { return platform == "gcp" || platform == "azure" }

// checkMachinePlatforms checks that machines are of the cluster's platform and have a name.
func (ps *problems) checkMachinePlatforms(doc document, platform string) {
	groups := func(path string, v any) {
		group, _ := v.(map[string]any)
		machines, _ := group["platform"].(map[string]any)
		for _, name := range sortedKeys(machines) {
			if machines[name] != nil && platform != "" && !strings.EqualFold(name, platform) {
				ps.addProblem(path+".platform."+name, "is not the platform of the cluster, %s: remove it, or correct the platform", platform)
			}
		}
	}
	doc.visitValuesAt("controlPlane", groups)
	doc.visitValuesAt("compute[]", groups)
	doc.visitValuesAt("compute[]", func(path string, v any) {
		if group, ok := v.(map[string]any); ok && isEmptyValue(group["name"]) {
			ps.addProblem(path+".name", "is missing: set it to worker")
		}
	})
}

// agentPlatforms are the platforms of an install-config for machines that an agent installs.
var agentPlatforms = []string{"baremetal", "external", "none", "nutanix", "vsphere"}

// checkMatchesCluster checks the document against the ClusterDeployment: installing, hibernating
// and destroying the cluster depend on the ClusterDeployment.
func (ps *problems) checkMatchesCluster(doc document, platform string, cluster hivev1.Platform) {
	name := cluster.Name()
	agent := name == "agentBareMetal" && slices.Contains(agentPlatforms, platform)
	if name == "" || platform == "" || agent {
		return
	}
	if platform != name {
		ps.addProblem("platform."+platform, "is not the platform of the cluster, whose spec.platform is %s: correct one of them", name)
		return
	}
	path := "platform." + platform + ".region"
	region, want := doc.listTextsAt(path), cluster.Settings().Region
	if len(region) > 0 && want != "" && !strings.EqualFold(region[0], want) {
		ps.addProblem(path, "%q is not the region of the cluster, whose spec.platform.%s.region is %q: correct one of them", region[0], platform, want)
	}
}

// requiredKeys lists the keys that each platform's installer requires. The remedy says how to make
// a generated install-config contain the key.
var requiredKeys = map[string][]struct{ path, remedy string }{
	"aws": {{"region", "spec.platform.aws.region"}},
	"azure": {
		{"region", "spec.platform.azure.region"},
		{"baseDomainResourceGroupName", "spec.platform.azure.baseDomainResourceGroupName"},
	},
	"gcp": {
		{"projectID", "project_id in key osServiceAccount.json of the Secret that spec.platform.gcp.credentialsSecretRef names"},
		{"region", "spec.platform.gcp.region"},
	},
	"ibmcloud":  {{"region", "spec.platform.ibmcloud.region"}},
	"openstack": {{"cloud", "spec.platform.openstack.cloud"}},
	"nutanix": {
		{"prismCentral.endpoint.address", "spec.platform.nutanix.prismCentral.address"},
		{"prismCentral.endpoint.port", "spec.platform.nutanix.prismCentral.port"},
		{"prismCentral.username", "username in the Secret that spec.platform.nutanix.credentialsSecretRef names"},
		{"prismCentral.password", "password in the Secret that spec.platform.nutanix.credentialsSecretRef names"},
		{"prismElements", "spec.platform.nutanix.failureDomains"},
		{"subnetUUIDs", "spec.platform.nutanix.failureDomains[].subnetUUIDs"},
	},
	"baremetal": {{"hosts", ""}},
}

// A vSphere section has one of two forms: flatKeys are the keys of the flat form, the other lists
// those of the form with failure domains.
var (
	flatKeys = []string{"vCenter", "username", "password", "datacenter", "defaultDatastore"}

	vcenterKeys       = []string{"server", "user", "password", "datacenters"}
	failureDomainKeys = []string{"name", "region", "zone", "server"}
	topologyKeys      = []string{"datacenter", "computeCluster", "datastore", "networks"}
)

func (ps *problems) checkRequired(doc document, platform string, cluster hivev1.Platform) {
	if platform == "vsphere" {
		ps.checkVSphere(doc)
	}
	if cluster.AgentBareMetal != nil {
		return // the agents' service asks for what it needs
	}
	section := "platform." + platform + "."
	for _, key := range requiredKeys[platform] {
		if key.path == "baseDomainResourceGroupName" && doc["publish"] != nil && doc["publish"] != "" && doc["publish"] != "External" {
			continue // there is no public zone
		}
		if v := doc.valueAt(section + key.path); isEmptyValue(v) || isList(v) && len(toList(v)) == 0 {
			ps.addMissingKey(section+key.path, key.remedy)
		}
	}
	ps.checkAddressPairs(doc, platform)
}

// addMissingKey adds a problem that says what to do in either way of creating an install-config.
func (ps *problems) addMissingKey(path, source string) {
	if source == "" {
		ps.addProblem(path, "is missing, and no field of a ClusterDeployment contains it: set it in an install-config Secret")
		return
	}
	ps.addProblem(path, "is missing: set it in the install-config Secret, or set %s", source)
}

// checkAddressPairs checks that addresses come in pairs: an address for the API is useless without
// one for ingress.
func (ps *problems) checkAddressPairs(doc document, platform string) {
	path := "platform." + platform + "."
	has := func(key string) bool {
		return len(doc.listTextsAt(path+key))+len(doc.listTextsAt(path+key+"s[]")) > 0
	}
	if !preparedAddresses[platform] || has("apiVIP") == has("ingressVIP") {
		return
	}
	given, lacks := "apiVIPs", "ingressVIPs"
	if has("ingressVIP") {
		given, lacks = lacks, given
	}
	ps.addProblem(path+lacks, "is missing while %s is set: set both, in the install-config Secret or in a customization", given)
}

func (ps *problems) checkVSphere(doc document) {
	const section = "platform.vsphere"
	centers, domains := toList(doc.valueAt(section+".vcenters")), toList(doc.valueAt(section+".failureDomains"))
	if len(centers) == 0 && len(domains) == 0 {
		if isEmptyValue(doc.valueAt(section + ".vCenter")) {
			ps.addMissingKey(section+".vcenters", "spec.platform.vsphere.infrastructure, or the older vCenter")
			return
		}
		ps.requireMappingKeys(doc, section, flatKeys)
		return
	}
	if len(centers) == 0 {
		ps.addMissingKey(section+".vcenters", "spec.platform.vsphere.infrastructure.vcenters")
	}
	ps.requireMappingKeys(doc, section+".vcenters[]", vcenterKeys)
	if len(domains) == 0 {
		ps.addMissingKey(section+".failureDomains", "spec.platform.vsphere.infrastructure.failureDomains")
	}
	ps.requireMappingKeys(doc, section+".failureDomains[]", failureDomainKeys)
	doc.visitValuesAt(section+".failureDomains[]", func(path string, v any) {
		if domain, ok := v.(map[string]any); ok && domain["topology"] == nil {
			ps.addMissingKey(path+".topology", "spec.platform.vsphere.infrastructure.failureDomains[].topology")
		}
	})
	ps.requireMappingKeys(doc, section+".failureDomains[].topology", topologyKeys)
	ps.checkDomainServers(doc)
}

// requireMappingKeys adds a problem for each key that is missing from the mappings at a path.
func (ps *problems) requireMappingKeys(doc document, path string, keys []string) {
	doc.visitValuesAt(path, func(at string, v any) {
		mapping, ok := v.(map[string]any)
		for _, key := range keys {
			if value := mapping[key]; ok && (isEmptyValue(value) || isList(value) && len(toList(value)) == 0) {
				ps.addMissingKey(at+"."+key, describeSource(key))
			}
		}
	})
}

// describeSource returns where a ClusterDeployment on vSphere sets a key of its install-config.
func describeSource(key string) string {
	switch key {
	case "user", "username", "password":
		return "username and password of the vCenter in the Secret that spec.platform.vsphere.credentialsSecretRef names"
	case "vCenter", "defaultDatastore":
		return "spec.platform.vsphere." + key
	}
	return "it in spec.platform.vsphere"
}

// checkDomainServers checks that the vCenter of each failure domain is listed.
func (ps *problems) checkDomainServers(doc document) {
	servers := doc.listTextsAt("platform.vsphere.vcenters[].server")
	if len(servers) == 0 {
		return
	}
	doc.visitValuesAt("platform.vsphere.failureDomains[].server", func(path string, v any) {
		if server, ok := v.(string); ok && server != "" && !slices.Contains(servers, server) {
			ps.addProblem(path, "%q is not among the servers of platform.vsphere.vcenters, %s: correct one of them", server, strings.Join(servers, ", "))
		}
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
