package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// network is a well-formed network.
type network struct {
	path   string
	prefix netip.Prefix
}

// renamedNetworkKeys are keys of networking that have an older and a newer name, and where each
// contains its text.
var renamedNetworkKeys = []struct{ older, olderText, newer, newerText string }{
	{"machineCIDR", "machineCIDR", "machineNetwork", "machineNetwork[].cidr"},
	{"serviceCIDR", "serviceCIDR", "serviceNetwork", "serviceNetwork[]"},
	{"clusterNetworks", "clusterNetworks[].cidr", "clusterNetwork", "clusterNetwork[].cidr"},
	{"type", "type", "networkType", "networkType"},
}

// checkNetworks checks that each network is well formed and that no two overlap.
func (ps *problems) checkNetworks(doc document) {
	for _, r := range renamedNetworkKeys {
		older, newer := doc.listTextsAt("networking."+r.olderText), doc.listTextsAt("networking."+r.newerText)
		if len(older) > 0 && len(newer) > 0 && !slices.Equal(older, newer) {
			ps.addProblem("networking."+r.older, "is the older name of %s, and the two differ: remove one of them", r.newer)
		}
	}
	machines, clusters, services := ps.machineNetworks(doc), ps.clusterNetworks(doc), ps.serviceNetworks(doc)
	all := slices.Concat(machines, clusters, services)
	for i, a := range all {
		for _, b := range all[:i] {
			if a.prefix.Overlaps(b.prefix) {
				ps.addProblem(a.path, "%s overlaps with %s, %s: use networks that share no address", a.prefix, b.path, b.prefix)
			}
		}
	}
	ps.checkHostPrefixes(doc)
}

func (ps *problems) machineNetworks(doc document) []network {
	return ps.parseNetworks(doc, "networking.machineNetwork[].cidr", "networking.machineCIDR")
}

func (ps *problems) clusterNetworks(doc document) []network {
	return ps.parseNetworks(doc, "networking.clusterNetwork[].cidr", "networking.clusterNetworks[].cidr")
}

func (ps *problems) serviceNetworks(doc document) []network {
	found := ps.parseNetworks(doc, "networking.serviceNetwork[]", "networking.serviceCIDR")
	for i, a := range found {
		for _, b := range found[:i] {
			if a.prefix.Addr().Is4() == b.prefix.Addr().Is4() {
				ps.addProblem(a.path, "%s is the second service network of its IP family: use one, or one for IPv4 and one for IPv6", a.prefix)
			}
		}
	}
	return found
}

// parseNetworks reads the networks at the newer path, or at the older one if there are none.
func (ps *problems) parseNetworks(doc document, newer, older string) []network {
	path := newer
	if len(doc.listTextsAt(newer)) == 0 {
		path = older
	}
	var out []network
	doc.visitValuesAt(path, func(at string, v any) {
		text, ok := v.(string)
		if !ok {
			return
		}
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			ps.addProblem(at, "%q is not a network: write one such as 10.0.0.0/16", text)
		case prefix != prefix.Masked():
			ps.addProblem(at, "%q is an address within a network: write %s", text, prefix.Masked())
		default:
			out = append(out, network{at, prefix})
		}
	})
	return out
}

// checkHostPrefixes checks that the share of a node fits into the cluster network.
func (ps *problems) checkHostPrefixes(doc document) {
	for _, key := range []string{"clusterNetwork", "clusterNetworks"} {
		doc.visitValuesAt("networking."+key+"[]", func(at string, v any) {
			entry, _ := v.(map[string]any)
			number, ok := entry["hostPrefix"].(json.Number)
			cidr, _ := entry["cidr"].(string)
			prefix, err := netip.ParsePrefix(cidr)
			n, whole := number.Int64()
			if !ok || err != nil || whole != nil || n == 0 {
				return
			}
			if most := int64(prefix.Addr().BitLen()); n < int64(prefix.Bits()) || n > most {
				ps.addProblem(at+".hostPrefix", "%d leaves no subnet of %s for a node: use %d to %d", n, prefix, prefix.Bits(), most)
			}
		})
	}
}

// listTextsAt returns the non-empty texts at a path.
func (d document) listTextsAt(path string) []string {
	var out []string
	d.visitValuesAt(path, func(_ string, v any) {
		if text, ok := v.(string); ok && text != "" {
			out = append(out, text)
		}
	})
	return out
}

// address is a well-formed virtual address of the cluster.
type address struct {
	path string
	addr netip.Addr
}

// addressesInMachineNetwork are the platforms where openshift-install requires a cluster's
// addresses to be in the machine network. On vSphere it does not.
var addressesInMachineNetwork = map[string]bool{"baremetal": true, "nutanix": true, "openstack": true}

// checkAddresses checks the addresses of the API and of ingress.
func (ps *problems) checkAddresses(doc document) {
	for _, platform := range slices.Sorted(maps.Keys(preparedAddresses)) {
		section := "platform." + platform
		api, ingress := ps.parseAddresses(doc, section+".apiVIP"), ps.parseAddresses(doc, section+".ingressVIP")
		if doc.valueAt(section+".loadBalancer.type") == "UserManaged" {
			continue // in this case one address can serve both, in any network
		}
		for _, a := range ingress {
			if i := slices.IndexFunc(api, func(b address) bool { return a.addr == b.addr }); i >= 0 {
				ps.addProblem(a.path, "%s is also %s: use two addresses", a.addr, api[i].path)
			}
		}
		if addressesInMachineNetwork[platform] {
			ps.checkInMachineNetwork(doc, append(api, ingress...))
		}
	}
}

// parseAddresses reads the list at path + "s", or the single address of older documents at path.
func (ps *problems) parseAddresses(doc document, path string) []address {
	many, one := doc.listTextsAt(path+"s[]"), doc.listTextsAt(path)
	from := path + "s[]"
	switch {
	case len(many) == 0:
		from = path
	case len(one) > 0 && !slices.Contains(many, one[0]):
		ps.addProblem(path, "%q is not in %ss, its newer name: remove %s", one[0], path, path)
	}
	var out []address
	doc.visitValuesAt(from, func(at string, v any) {
		text, ok := v.(string)
		if !ok || text == "" {
			return
		}
		addr, err := netip.ParseAddr(text)
		if err != nil {
			ps.addProblem(at, "%q is not an IP address: write one such as 10.0.0.2", text)
			return
		}
		out = append(out, address{at, addr})
	})
	if len(out) > 2 || len(out) == 2 && out[0].addr.Is4() == out[1].addr.Is4() {
		ps.addProblem(path+"s", "has %d addresses: use one, or one of IPv4 and one of IPv6", len(out))
	}
	return out
}

// checkInMachineNetwork checks that the addresses are in the machine networks, if those are given.
func (ps *problems) checkInMachineNetwork(doc document, all []address) {
	var quiet problems
	machines := quiet.machineNetworks(doc)
	if len(machines) == 0 {
		return
	}
	for _, a := range all {
		if !slices.ContainsFunc(machines, func(n network) bool { return n.prefix.Contains(a.addr) }) {
			ps.addProblem(a.path, "%s is in none of networking.machineNetwork, %s: use an address of the machines' network, or correct the network", a.addr, formatPrefixes(machines))
		}
	}
}

func formatPrefixes(networks []network) string {
	var out []string
	for _, n := range networks {
		out = append(out, fmt.Sprint(n.prefix))
	}
	return strings.Join(out, " and ")
}
