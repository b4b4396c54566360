package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// whole, with one text replaced in each case.
const whole = `
apiVersion: v1
baseDomain: example.com
metadata: {name: c1}
platform: {aws: {region: us-east-1}}
controlPlane: {name: master, replicas: 3}
compute: [{name: worker, replicas: 0}]
pullSecret: '{"auths":{"quay.io":{"auth":"aHVudGVyMg=="}}}'
`

const pullRemedy = "name a Secret of type kubernetes.io/dockerconfigjson in spec.pullSecretRef"

func TestComplete(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"a whole document":      {},
		"an older version":      {old: "apiVersion: v1", new: "apiVersion: v1beta3"},
		"a version of another":  {"apiVersion: v1", "apiVersion: v2", `apiVersion: "v2" is not the value for an install-config: set it to v1`},
		"no version":            {"apiVersion: v1", "", "apiVersion: is missing: set it to v1"},
		"a name that just fits": {old: "name: c1", new: "name: " + strings.Repeat("x", 54)},
		"a name that is too long": {"name: c1", "name: " + strings.Repeat("x", 55), `metadata.name: "` + strings.Repeat("x", 55) +
			`" has 55 characters, and openshift-install accepts at most 54: use a shorter name`},
		"no region":             {"{region: us-east-1}", "{}", "platform.aws.region: is missing: set it in the install-config Secret, or set spec.platform.aws.region"},
		"another region":        {"us-east-1", "us-east-2", `platform.aws.region: "us-east-2" is not the region of the cluster, whose spec.platform.aws.region is "us-east-1": correct one of them`},
		"another platform":      {"{aws: {region: us-east-1}}", "{none: {}}", "platform.none: is not the platform of the cluster, whose spec.platform is aws: correct one of them"},
		"machines of another":   {"replicas: 0", "replicas: 0, platform: {gcp: {type: n2}}", "compute[0].platform.gcp: is not the platform of the cluster, aws: remove it, or correct the platform"},
		"machines of none":      {old: "replicas: 0", new: "replicas: 0, platform: {aws: {}, gcp: null}"},
		"workers without name":  {"name: worker, ", "", "compute[0].name: is missing: set it to worker"},
		"no pull secret":        {"pullSecret:", "other:", "pullSecret: is missing: " + pullRemedy},
		"the name of one":       {`'{"auths":{"quay.io":{"auth":"aHVudGVyMg=="}}}'`, "hunter2", `pullSecret: is not JSON such as {"auths":{"quay.io":{"auth":"…"}}}: ` + pullRemedy},
		"one without quotes":    {`'{"auths":{"quay.io":{"auth":"aHVudGVyMg=="}}}'`, `{"auths":{"quay.io":{"auth":"hunter2"}}}`, "pullSecret: is a mapping, want a string of JSON: put it in single quotes, or " + pullRemedy},
		"one of no registry":    {`{"quay.io":{"auth":"aHVudGVyMg=="}}`, "{}", `pullSecret: has no registry in "auths": download it again, or ` + pullRemedy},
		"one without auth":      {`"auth":"aHVudGVyMg=="`, `"password":"hunter2"`, `pullSecret: the entry of "quay.io" in "auths" has no auth: add it, or remove the entry`},
		"one with a store":      {old: `"auth":"aHVudGVyMg=="`, new: `"credsStore":"file"`},
		"a key for SSH":         {old: "metadata:", new: "sshKey: \"# me\\nssh-rsa AAAAB3 me\\n\"\nmetadata:"},
		"one with options":      {old: "metadata:", new: "sshKey: 'no-pty ecdsa-sha2-nistp256 AAAAE2 me'\nmetadata:"},
		"one of a security key": {old: "metadata:", new: "sshKey: 'sk-ssh-ed25519@openssh.com AAAAGn me'\nmetadata:"},
		"a variable":            {old: "metadata:", new: "sshKey: $(< ~/.ssh/id.pub)\nmetadata:"},
		"none":                  {old: "metadata:", new: "sshKey: ''\nmetadata:"},
		"a fingerprint":         {"metadata:", "sshKey: 'SHA256:hunter2'\nmetadata:", `sshKey: is not a public key: use one as in a file that ends in .pub, such as "ssh-ed25519 AAAA…", or remove the field`},
		"what Validate says":    {"replicas: 0", "replicas: -1", "compute[0].replicas: -1 is not a whole number, 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(whole, tt.old) {
				t.Fatalf("%q is not there", tt.old)
			}
			err := ValidateComplete([]byte(strings.Replace(whole, tt.old, tt.new, 1)), aws(`{"region":"us-east-1"}`))
			wantText(t, text(err), tt.want)
			if err != nil && fault.KindOf(err) != fault.Denied {
				t.Errorf("a fault that is %s", fault.KindOf(err))
			}
		})
	}
}

func TestCompleteOnPlatforms(t *testing.T) {
	const set = ": is missing: set it in the install-config Secret, or set "
	const login = "username and password of the vCenter in the Secret that spec.platform.vsphere.credentialsSecretRef names"
	for name, tt := range map[string]struct{ platform, want string }{
		"azure":                  {`azure: {region: a}`, "platform.azure.baseDomainResourceGroupName" + set + "spec.platform.azure.baseDomainResourceGroupName"},
		"ibmcloud":               {`ibmcloud: {}`, "platform.ibmcloud.region" + set + "spec.platform.ibmcloud.region"},
		"openstack":              {`openstack: {cloud: ""}`, "platform.openstack.cloud" + set + "spec.platform.openstack.cloud"},
		"baremetal":              {`baremetal: {hosts: []}`, "platform.baremetal.hosts: is missing, and no field of a ClusterDeployment contains it: set it in an install-config Secret"},
		"none":                   {`none: {}`, ""},
		"another of installers'": {`powervs: {}`, ""},
		"vsphere, flat":          {`vsphere: {vCenter: v, datacenter: d, defaultDatastore: s, username: hunter2}`, "platform.vsphere.password" + set + login},
		"vsphere, no zones":      {`vsphere: {vcenters: [{server: v, user: u, password: hunter2, datacenters: [d]}]}`, "platform.vsphere.failureDomains" + set + "spec.platform.vsphere.infrastructure.failureDomains"},
		"vsphere, no account": {
			`vsphere: {vcenters: [{server: v, datacenters: [d]}], failureDomains: [{name: a, region: r, zone: z, server: w}]}`,
			"platform.vsphere.vcenters[0].user" + set + login + "; platform.vsphere.vcenters[0].password" + set + login +
				"; platform.vsphere.failureDomains[0].topology" + set + "spec.platform.vsphere.infrastructure.failureDomains[].topology" +
				`; platform.vsphere.failureDomains[0].server: "w" is not among the servers of platform.vsphere.vcenters, v: correct one of them`,
		},
		"one address of two": {`openstack: {cloud: c, apiVIPs: [10.0.0.5]}`, "platform.openstack.ingressVIPs: is missing while apiVIPs is set: set both, in the install-config Secret or in a customization"},
		"nutanix": {
			`nutanix: {prismCentral: {endpoint: {address: a, port: 1}, username: u, password: hunter2}, prismElements: [{uuid: u}]}`,
			"platform.nutanix.subnetUUIDs" + set + "spec.platform.nutanix.failureDomains[].subnetUUIDs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw := strings.Replace(whole, "{aws: {region: us-east-1}}", "{"+tt.platform+"}", 1)
			wantText(t, text(ValidateComplete([]byte(raw), hivev1.Platform{})), tt.want)
		})
	}
	t.Run("on the local one, its own installer asks", func(t *testing.T) {
		raw := "baseDomain: example.com\nmetadata: {name: c1}\nplatform: {local: {}}\n"
		wantText(t, text(ValidateComplete([]byte(raw), local(1, ""))), "")
	})
	t.Run("agents take several", func(t *testing.T) {
		var p hivev1.Platform
		if err := yaml.Unmarshal([]byte("agentBareMetal: {}"), &p); err != nil {
			t.Fatal(err)
		}
		raw := strings.Replace(whole, "{aws: {region: us-east-1}}", "{baremetal: {}}", 1)
		wantText(t, text(ValidateComplete([]byte(raw), p)), "")
		wantText(t, text(ValidateComplete([]byte(whole), p)), "platform.aws: is not the platform of the cluster, whose spec.platform is agentBareMetal: correct one of them")
	})
}

func TestNamesBeginWithALetterOnSomeClouds(t *testing.T) {
	for platform, want := range map[string]string{
		"gcp: {region: r, projectID: p}": `metadata.name: "1c" does not start with a letter, as gcp requires: use another name`,
		"aws: {region: r}":               "",
	} {
		raw := strings.NewReplacer("{aws: {region: us-east-1}}", "{"+platform+"}", "name: c1", "name: 1c").Replace(whole)
		wantText(t, text(ValidateComplete([]byte(raw), hivev1.Platform{})), want)
	}
}

func TestCertificatesAreRead(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	good := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	bad := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hunter2")}))
	for name, tt := range map[string]struct{ bundle, want string }{
		"two":               {good + good, ""},
		"the second is bad": {good + bad, "additionalTrustBundle: entry 2 cannot be parsed as a certificate: copy the whole certificate again"},
		"words after it":    {good + "hunter2", "additionalTrustBundle: entry 2 is not PEM: use certificates only, each from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := tree(t, []byte(whole))
			doc["additionalTrustBundle"] = tt.bundle
			raw, err := yaml.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, text(ValidateComplete(raw, hivev1.Platform{})), tt.want)
		})
	}
}

func TestFillCredentials(t *testing.T) {
	for name, tt := range map[string]struct {
		platform    string
		credentials map[string]string
		written     string
		want        string // of the section
		fault       string
	}{
		"a project that is written stays": {
			"gcp: {}", map[string]string{"osServiceAccount.json": `{"project_id":"theirs"}`}, "gcp: {projectID: mine}", "gcp: {projectID: mine}", "",
		},
		"no JSON": {
			"gcp: {}",
			map[string]string{"osServiceAccount.json": `hunter2`},
			"gcp: {}", "",
			"platform.gcp.projectID: the key osServiceAccount.json of the Secret that spec.platform.gcp.credentialsSecretRef names is not the JSON key of a service account: correct it",
		},
		"no list": {
			"vsphere: {}",
			map[string]string{"vCenters": "hunter2: x"},
			"vsphere: {}", "",
			"platform.vsphere: the key vCenters of the Secret that spec.platform.vsphere.credentialsSecretRef names is not a list of vCenter, username and password: correct it",
		},
		"an account that is written stays": {
			"vsphere: {}", accounts, "vsphere: {vCenter: v, username: me, password: mine}", "vsphere: {vCenter: v, username: me, password: mine}", "",
		},
		"no one gets the password of another": {
			"vsphere: {}", accounts, "vsphere: {vcenters: [{server: v, user: me}]}", "vsphere: {vcenters: [{server: v, user: me}]}", "",
		},
		"the user gets the password": {
			"vsphere: {}", accounts, "vsphere: {vcenters: [{server: v, user: admin@vsphere.local}]}", "vsphere: {vcenters: [{server: v, user: admin@vsphere.local, password: hunter2}]}", "",
		},
		"a document for another platform gets none": {
			"aws: {}", accounts, "vsphere: {vCenter: v}", "vsphere: {vCenter: v}", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FillFromSecrets([]byte("platform: {"+tt.written+"}"), params(t, tt.platform, tt.credentials))
			wantText(t, text(err), tt.fault)
			if err != nil {
				if fault.KindOf(err) != fault.Denied {
					t.Errorf("a fault that is %s", fault.KindOf(err))
				}
				return
			}
			want, _ := yaml.Marshal(tree(t, []byte(tt.want)))
			have, _ := yaml.Marshal(tree(t, got)["platform"])
			wantText(t, string(have), string(want))
		})
	}
}
