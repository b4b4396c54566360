package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Complete checks what Validate does, and that an installer for the cluster's
// platform misses nothing. It wants the form that openshift-install wants of
// names and secrets, and that platform and region are those of the cluster.
//
// The local platform has an installer of its own, which says what it misses:
// there Complete is Validate.
func Complete(raw []byte, cluster hivev1.Platform) error {
	doc, err := parse(raw)
	if err != nil {
		return err
	}
	found := validate(doc)
	platforms, _ := doc["platform"].(map[string]any)
	if cluster.Local != nil || platforms["local"] != nil {
		return found.denied()
	}
	platform := doc.platform()
	found.checkVersion(doc["apiVersion"])
	found.checkCloudName(doc, platform)
	found.checkGroups(doc, platform)
	found.checkSSHKey(doc["sshKey"])
	found.checkTrust(doc["additionalTrustBundle"])
	found.checkPullSecret(doc["pullSecret"])
	found.checkCluster(doc, platform, cluster)
	found.checkRequired(doc, platform, cluster)
	return found.denied()
}

// platform is the key of the platform; "" if there is not exactly one.
func (d document) platform() string {
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
	case empty(v):
		ps.add("apiVersion", "is missing: set it to %s", apiVersions[0])
	case !slices.Contains(apiVersions, version):
		ps.add("apiVersion", "%q is not that of an install-config: set it to %s", fmt.Sprint(v), apiVersions[0])
	}
}

// MaxCloudName is how long openshift-install lets the name of a cluster be: it leaves room
// for what it puts before a name in DNS.
const MaxCloudName = 54

func (ps *problems) checkCloudName(doc document, platform string) {
	name, _ := doc.at("metadata.name").(string)
	if len(name) > MaxCloudName {
		ps.add("metadata.name", "%q has %d characters, and openshift-install takes %d: use a shorter name", name, len(name), MaxCloudName)
	}
	if name != "" && WantsLetter(platform) && (name[0] < 'a' || name[0] > 'z') {
		ps.add("metadata.name", "%q does not begin with a letter, as %s wants it: use another name", name, platform)
	}
}

// WantsLetter reports whether the name of a cluster begins with a letter on a platform.
func WantsLetter(platform string) bool { return platform == "gcp" || platform == "azure" }

// checkGroups: machines are of the cluster's platform, and have a name.
func (ps *problems) checkGroups(doc document, platform string) {
	groups := func(path string, v any) {
		group, _ := v.(map[string]any)
		machines, _ := group["platform"].(map[string]any)
		for _, name := range sorted(machines) {
			if machines[name] != nil && platform != "" && !strings.EqualFold(name, platform) {
				ps.add(path+".platform."+name, "is not the platform of the cluster, %s: take it out, or correct the platform", platform)
			}
		}
	}
	doc.each("controlPlane", groups)
	doc.each("compute[]", groups)
	doc.each("compute[]", func(path string, v any) {
		if group, ok := v.(map[string]any); ok && empty(group["name"]) {
			ps.add(path+".name", "is missing: set it to worker")
		}
	})
}

// agents are the platforms of an install-config for machines that an agent installs.
var agents = []string{"baremetal", "external", "none", "nutanix", "vsphere"}

// checkCluster: whoever installs, hibernates and destroys the cluster goes by what
// the ClusterDeployment says.
func (ps *problems) checkCluster(doc document, platform string, cluster hivev1.Platform) {
	name := cluster.Name()
	agent := name == "agentBareMetal" && slices.Contains(agents, platform)
	if name == "" || platform == "" || agent {
		return
	}
	if platform != name {
		ps.add("platform."+platform, "is not the platform of the cluster, whose spec.platform is %s: correct one of them", name)
		return
	}
	path := "platform." + platform + ".region"
	region, want := doc.textsAt(path), cluster.Settings().Region
	if len(region) > 0 && want != "" && !strings.EqualFold(region[0], want) {
		ps.add(path, "%q is not the region of the cluster, whose spec.platform.%s.region is %q: correct one of them", region[0], platform, want)
	}
}

// required are the keys that each platform's installer does not do without. The
// remedy says what makes a generated install-config have the key.
var required = map[string][]struct{ path, remedy string }{
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

// flat and zoned are the two shapes of a section for vSphere.
var (
	flat = []string{"vCenter", "username", "password", "datacenter", "defaultDatastore"}

	zonedCenter = []string{"server", "user", "password", "datacenters"}
	zonedDomain = []string{"name", "region", "zone", "server"}
	zonedPlace  = []string{"datacenter", "computeCluster", "datastore", "networks"}
)

func (ps *problems) checkRequired(doc document, platform string, cluster hivev1.Platform) {
	if platform == "vsphere" {
		ps.checkVSphere(doc)
	}
	if cluster.AgentBareMetal != nil {
		return // the agents' service asks for what it needs
	}
	section := "platform." + platform + "."
	for _, key := range required[platform] {
		if key.path == "baseDomainResourceGroupName" && doc["publish"] != nil && doc["publish"] != "" && doc["publish"] != "External" {
			continue // there is no public zone
		}
		if v := doc.at(section + key.path); empty(v) || isList(v) && len(list(v)) == 0 {
			ps.missing(section+key.path, key.remedy)
		}
	}
	ps.checkPairs(doc, platform)
}

// missing says what to do in either way of making an install-config.
func (ps *problems) missing(path, source string) {
	if source == "" {
		ps.add(path, "is missing, and no field of a ClusterDeployment tells it: give an install-config Secret that has it")
		return
	}
	ps.add(path, "is missing: set it in the install-config Secret, or set %s", source)
}

// checkPairs: an address for the API is of no use without one for what applications serve.
func (ps *problems) checkPairs(doc document, platform string) {
	path := "platform." + platform + "."
	has := func(key string) bool {
		return len(doc.textsAt(path+key))+len(doc.textsAt(path+key+"s[]")) > 0
	}
	if !prepared[platform] || has("apiVIP") == has("ingressVIP") {
		return
	}
	given, lacks := "apiVIPs", "ingressVIPs"
	if has("ingressVIP") {
		given, lacks = lacks, given
	}
	ps.add(path+lacks, "is missing while %s is set: set both, in the install-config Secret or in a customization", given)
}

func (ps *problems) checkVSphere(doc document) {
	const section = "platform.vsphere"
	centers, domains := list(doc.at(section+".vcenters")), list(doc.at(section+".failureDomains"))
	if len(centers) == 0 && len(domains) == 0 {
		if empty(doc.at(section + ".vCenter")) {
			ps.missing(section+".vcenters", "spec.platform.vsphere.infrastructure, or the older vCenter")
			return
		}
		ps.want(doc, section, flat)
		return
	}
	if len(centers) == 0 {
		ps.missing(section+".vcenters", "spec.platform.vsphere.infrastructure.vcenters")
	}
	ps.want(doc, section+".vcenters[]", zonedCenter)
	if len(domains) == 0 {
		ps.missing(section+".failureDomains", "spec.platform.vsphere.infrastructure.failureDomains")
	}
	ps.want(doc, section+".failureDomains[]", zonedDomain)
	doc.each(section+".failureDomains[]", func(path string, v any) {
		if domain, ok := v.(map[string]any); ok && domain["topology"] == nil {
			ps.missing(path+".topology", "spec.platform.vsphere.infrastructure.failureDomains[].topology")
		}
	})
	ps.want(doc, section+".failureDomains[].topology", zonedPlace)
	ps.checkServers(doc)
}

// want adds what mappings at a path do not have.
func (ps *problems) want(doc document, path string, keys []string) {
	doc.each(path, func(at string, v any) {
		mapping, ok := v.(map[string]any)
		for _, key := range keys {
			if value := mapping[key]; ok && (empty(value) || isList(value) && len(list(value)) == 0) {
				ps.missing(at+"."+key, sourceOf(key))
			}
		}
	})
}

// sourceOf is where a ClusterDeployment on vSphere has a key of its install-config.
func sourceOf(key string) string {
	switch key {
	case "user", "username", "password":
		return "username and password of the vCenter in the Secret that spec.platform.vsphere.credentialsSecretRef names"
	case "vCenter", "defaultDatastore":
		return "spec.platform.vsphere." + key
	}
	return "it in spec.platform.vsphere"
}

// checkServers: a failure domain is in a vCenter that is listed.
func (ps *problems) checkServers(doc document) {
	servers := doc.textsAt("platform.vsphere.vcenters[].server")
	if len(servers) == 0 {
		return
	}
	doc.each("platform.vsphere.failureDomains[].server", func(path string, v any) {
		if server, ok := v.(string); ok && server != "" && !slices.Contains(servers, server) {
			ps.add(path, "%q is not among the servers of platform.vsphere.vcenters, %s: correct one of them", server, strings.Join(servers, ", "))
		}
	})
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
