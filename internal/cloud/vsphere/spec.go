package vsphere

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// section contains the fields of spec.platform.vsphere that this package reads, in both formats:
// the older one names one vCenter, the newer one contains an install-config's section.
type section struct {
	CredentialsSecretRef  secretReference `json:"credentialsSecretRef"`
	CertificatesSecretRef secretReference `json:"certificatesSecretRef"`
	VCenter               string          `json:"vCenter"`
	Infrastructure        struct {
		VCenters []struct {
			Server string `json:"server"`
			Port   int    `json:"port"`
		} `json:"vcenters"`
		FailureDomains []struct {
			Server string `json:"server"`
		} `json:"failureDomains"`
	} `json:"infrastructure"`
}

type secretReference struct {
	Name string `json:"name"`
}

// site is one vCenter as named in the spec.
type site struct {
	server string
	// address is the server, with a port if one is set.
	address string
}

// parsePlatformSection parses the platform of ref.
func parsePlatformSection(ref cloud.Ref) (section, error) {
	var s section
	if ref.Platform.VSphere == nil {
		return s, fault.NewDenied("ClusterDeployment %s has no spec.platform.vsphere", ref.Cluster)
	}
	if err := json.Unmarshal(ref.Platform.VSphere.Raw, &s); err != nil {
		return s, fault.NewDenied("reading spec.platform.vsphere of ClusterDeployment %s: %w", ref.Cluster, err)
	}
	if s.CredentialsSecretRef.Name == "" {
		return s, fault.NewDenied("spec.platform.vsphere.credentialsSecretRef of ClusterDeployment %s names no Secret: name the one with the vCenter's credentials", ref.Cluster)
	}
	if len(s.listUniqueSites()) == 0 {
		return s, fault.NewDenied("spec.platform.vsphere of ClusterDeployment %s names no vCenter: set infrastructure.vcenters[].server, or vCenter", ref.Cluster)
	}
	return s, nil
}

// listUniqueSites returns the vCenters in the order in which they are named, without duplicates.
// The newer format takes precedence: a cluster that was converted to it may still have the old
// field.
func (s section) listUniqueSites() []site {
	var out []site
	add := func(server string, port int) {
		known := slices.ContainsFunc(out, func(other site) bool { return strings.EqualFold(other.server, server) })
		if server == "" || known {
			return
		}
		one := site{server: server, address: server}
		if port != 0 {
			one.address = net.JoinHostPort(server, strconv.Itoa(port))
		}
		out = append(out, one)
	}
	for _, v := range s.Infrastructure.VCenters {
		add(v.Server, v.Port)
	}
	for _, d := range s.Infrastructure.FailureDomains {
		add(d.Server, 0)
	}
	if len(out) == 0 {
		add(s.VCenter, 0)
	}
	return out
}
