package baremetal

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// protocol is the protocol of a BMC.
type protocol string

const (
	redfish protocol = "redfish"
	ipmi    protocol = "ipmi"
)

// address is the address of a host's BMC, with its protocol.
type address struct {
	protocol protocol
	// scheme is https or http; empty for IPMI.
	scheme string
	// host is the BMC's name or IP address, with the port.
	host string
	// path is the path of the host's system in Redfish; empty selects the only system.
	path string
	// level is the privilege level of an IPMI session; empty for Operator.
	level string
}

// The schemes of bmc.address, as defined by the installer and the Bare Metal Operator. The part
// after redfish or a vendor's name selects how an image is installed on the host, which does not
// matter here.
var (
	redfishSchemes = []string{
		"redfish", "redfish-virtualmedia", "redfish-uefihttp",
		"idrac-redfish", "idrac-virtualmedia", "ilo5-redfish", "ilo5-virtualmedia",
	}
	ipmiSchemes     = []string{"ipmi", "libvirt"}
	vendorSchemes   = []string{"idrac", "ilo4", "ilo4-virtualmedia", "ilo5", "irmc", "ibmc"}
	privilegeLevels = []string{"CALLBACK", "USER", "OPERATOR", "ADMINISTRATOR"}
)

var errNoAddress = errors.New(`bmc.address is not like redfish://10.0.0.5/redfish/v1/Systems/1 or ipmi://10.0.0.5:623: correct it`)

// parseAddress parses a bmc.address. Its errors never quote the address, which may contain a
// password.
func parseAddress(text string) (address, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "ipmi://" + text // as in the Bare Metal Operator
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return address{}, errNoAddress
	}
	if u.User != nil {
		return address{}, errors.New("bmc.address contains a user or a password: move them to bmc.username and bmc.password")
	}
	kind, transport, dressed := strings.Cut(strings.ToLower(u.Scheme), "+")
	switch {
	case slices.Contains(vendorSchemes, kind):
		return address{}, fmt.Errorf("bmc.address starts with %s, a vendor's protocol that hotspare does not support: use the address of the BMC's Redfish or IPMI", kind)
	case slices.Contains(ipmiSchemes, kind) && !dressed:
		return parseIPMIAddress(u)
	case slices.Contains(redfishSchemes, kind) && (!dressed || transport == "http" || transport == "https"):
		return parseRedfishAddress(u, transport)
	}
	return address{}, fmt.Errorf("bmc.address starts with %s, which is not one of %s, %s: correct it",
		u.Scheme, strings.Join(redfishSchemes, ", "), strings.Join(ipmiSchemes, ", "))
}

func parseRedfishAddress(u *url.URL, transport string) (address, error) {
	a := address{protocol: redfish, scheme: "https"}
	port := "443"
	if transport == "http" {
		a.scheme, port = "http", "80"
	}
	var err error
	if a.host, err = hostWithPort(u, port); err != nil {
		return address{}, err
	}
	a.path = strings.TrimRight(u.EscapedPath(), "/")
	switch a.path {
	case "", "/redfish", "/redfish/v1", "/redfish/v1/Systems":
		a.path = ""
		return a, nil
	}
	if !strings.HasPrefix(a.path, "/redfish/v1/") {
		return address{}, errors.New("the path in bmc.address is not the path of a system, /redfish/v1/Systems/…: correct it, or remove it if the BMC has only one system")
	}
	return a, nil
}

func parseIPMIAddress(u *url.URL) (address, error) {
	a := address{protocol: ipmi, level: strings.ToUpper(u.Query().Get("privilegelevel"))}
	if a.level != "" && !slices.Contains(privilegeLevels, a.level) {
		return address{}, fmt.Errorf("the privilegelevel in bmc.address is not one of %s: correct it", strings.Join(privilegeLevels, ", "))
	}
	var err error
	a.host, err = hostWithPort(u, "623")
	return a, err
}

func hostWithPort(u *url.URL, port string) (string, error) {
	if u.Port() != "" {
		port = u.Port()
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errNoAddress
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}
