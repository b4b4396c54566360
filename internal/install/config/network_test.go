package config

import (
	"testing"
)

func TestValidateNetworks(t *testing.T) {
	for name, tt := range map[string]struct{ networking, want string }{
		"the usual":                {`{clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}], machineNetwork: [{cidr: 10.0.0.0/16}], serviceNetwork: [172.30.0.0/16]}`, ""},
		"both families":            {`{clusterNetwork: [{cidr: 10.128.0.0/14}, {cidr: "fd01::/48", hostPrefix: 64}], machineNetwork: [{cidr: 10.0.0.0/16}, {cidr: "fd03::/64"}], serviceNetwork: [172.30.0.0/16, "fd02::/112"]}`, ""},
		"a key that nobody knows":  {`{ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.64.0.0/16}}, networkType: Calico}`, ""},
		"older names":              {`{clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 9}], machineCIDR: 10.0.0.0/16, serviceCIDR: 172.30.0.0/16, type: OpenShiftSDN}`, ""},
		"both names, alike":        {`{machineCIDR: 10.0.0.0/16, machineNetwork: [{cidr: 10.0.0.0/16}], type: OVNKubernetes, networkType: OVNKubernetes}`, ""},
		"both names, unlike":       {`{machineCIDR: 10.1.0.0/16, machineNetwork: [{cidr: 10.0.0.0/16}]}`, "networking.machineCIDR: is the older name of machineNetwork, and the two differ: remove one of them"},
		"both types, unlike":       {`{type: OpenShiftSDN, networkType: OVNKubernetes}`, "networking.type: is the older name of networkType, and the two differ: remove one of them"},
		"no network":               {`{machineNetwork: [{cidr: 10.0.0.0}]}`, `networking.machineNetwork[0].cidr: "10.0.0.0" is not a network: write one such as 10.0.0.0/16`},
		"an address in a network":  {`{serviceNetwork: [172.30.0.1/16]}`, `networking.serviceNetwork[0]: "172.30.0.1/16" is an address within a network: write 172.30.0.0/16`},
		"an overlap":               {`{machineNetwork: [{cidr: 10.0.0.0/8}], clusterNetwork: [{cidr: 10.128.0.0/14}]}`, "networking.clusterNetwork[0].cidr: 10.128.0.0/14 overlaps with networking.machineNetwork[0].cidr, 10.0.0.0/8: use networks that share no address"},
		"an overlap of older ones": {`{machineCIDR: 172.16.0.0/12, serviceCIDR: 172.30.0.0/16}`, "networking.serviceCIDR: 172.30.0.0/16 overlaps with networking.machineCIDR, 172.16.0.0/12: use networks that share no address"},
		"two of the services":      {`{serviceNetwork: [172.30.0.0/16, 172.31.0.0/16]}`, "networking.serviceNetwork[1]: 172.31.0.0/16 is the second service network of its IP family: use one, or one for IPv4 and one for IPv6"},
		"a part above the whole":   {`{clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 12}]}`, "networking.clusterNetwork[0].hostPrefix: 12 leaves no subnet of 10.128.0.0/14 for a node: use 14 to 32"},
		"a part in quotes":         {`{clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: "23"}]}`, "networking.clusterNetwork[0].hostPrefix: is a string, want a whole number, without quotes"},
		"a text for a list":        {`{serviceNetwork: 172.30.0.0/16}`, "networking.serviceNetwork: is a string, want a list of strings"},
		"texts for mappings":       {`{machineNetwork: [10.0.0.0/16]}`, "networking.machineNetwork[0]: is a string, want a mapping"},
		"a text for it all":        {`x`, "networking: is a string, want a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, text(Validate([]byte(valid+"networking: "+tt.networking+"\n"))), tt.want)
		})
	}
}

func TestValidateAddresses(t *testing.T) {
	const head = "baseDomain: example.com\nmetadata: {name: c1}\nnetworking: {machineNetwork: [{cidr: 10.0.0.0/16}]}\n"
	for name, tt := range map[string]struct{ platform, want string }{
		"one each":                  {`{baremetal: {apiVIPs: [10.0.0.2], ingressVIPs: [10.0.0.3]}}`, ""},
		"two families":              {`{vsphere: {apiVIPs: [10.0.0.2, "fd00::2"], ingressVIPs: [10.0.0.3, "fd00::3"]}}`, ""},
		"older names":               {`{vsphere: {apiVIP: 10.0.0.2, ingressVIP: 10.0.0.3}}`, ""},
		"both names, alike":         {`{vsphere: {apiVIP: 10.0.0.2, apiVIPs: [10.0.0.2], ingressVIPs: [10.0.0.3]}}`, ""},
		"both names, unlike":        {`{vsphere: {apiVIP: 10.0.0.9, apiVIPs: [10.0.0.2], ingressVIPs: [10.0.0.3]}}`, `platform.vsphere.apiVIP: "10.0.0.9" is not in platform.vsphere.apiVIPs, its newer name: remove platform.vsphere.apiVIP`},
		"no address":                {`{vsphere: {apiVIPs: [api.lab], ingressVIPs: [10.0.0.3]}}`, `platform.vsphere.apiVIPs[0]: "api.lab" is not an IP address: write one such as 10.0.0.2`},
		"one for both":              {`{nutanix: {apiVIPs: [10.0.0.2], ingressVIPs: [10.0.0.2]}}`, "platform.nutanix.ingressVIPs[0]: 10.0.0.2 is also platform.nutanix.apiVIPs[0]: use two addresses"},
		"one for both, and rightly": {`{openstack: {apiVIPs: [10.9.0.2], ingressVIPs: [10.9.0.2], loadBalancer: {type: UserManaged}}}`, ""},
		"two of a family":           {`{vsphere: {apiVIPs: [10.0.0.2, 10.0.0.4], ingressVIPs: [10.0.0.3]}}`, "platform.vsphere.apiVIPs: has 2 addresses: use one, or one of IPv4 and one of IPv6"},
		"outside":                   {`{baremetal: {apiVIPs: [10.0.0.2], ingressVIPs: [10.1.0.3]}}`, "platform.baremetal.ingressVIPs[0]: 10.1.0.3 is in none of networking.machineNetwork, 10.0.0.0/16: use an address of the machines' network, or correct the network"},
		// openshift-install accepts this on vSphere: machines can be in networks other than the one in
		// the install-config.
		"outside, on vSphere": {`{vsphere: {apiVIPs: [10.1.0.2], ingressVIPs: [10.1.0.3]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, text(Validate([]byte(head+"platform: "+tt.platform+"\n"))), tt.want)
		})
	}
}
