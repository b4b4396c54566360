package baremetal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// The Secret with the BMCs of a cluster is named after its ClusterDeployment, with this suffix, and
// has these keys.
const (
	secretSuffix = "-bmc"
	keyHosts     = "hosts.yaml"
	keyInfraID   = "infraID"
	keyRoots     = "ca.crt"
)

// inventory contains a cluster's hosts.
type inventory struct {
	hosts []host
	trust trust
}

// trust contains the certificates that connections to BMCs trust in addition to the system's.
type trust struct {
	// roots are PEM certificates from the Secret of the cluster; authorities are those that the hub
	// has for all clusters.
	roots       []byte
	authorities cabundle.Bundle
}

// host is one machine with its BMC.
type host struct {
	name         string
	controlPlane bool
	address
	username, password string
	// insecure disables verification of the BMC's certificate.
	insecure bool
	// where is the location of the BMC's address and account, for messages to users.
	where string
}

// uniqueID identifies a host, independent of its name.
func (h host) uniqueID() string { return h.address.host + h.path }

// bmcAccountKey identifies a BMC and the account used there.
func (h host) bmcAccountKey() string {
	sum := sha256.New()
	for _, part := range []string{string(h.protocol), h.scheme, h.address.host, h.level, h.username, h.password, fmt.Sprint(h.insecure)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return string(sum.Sum(nil))
}

// hostEntry is a host in the format of an install-config.
type hostEntry struct {
	Name string `json:"name"`
	Role string `json:"role"`
	BMC  struct {
		Address  string `json:"address"`
		Username string `json:"username"`
		Password string `json:"password"`
		Insecure bool   `json:"disableCertificateVerification"`
	} `json:"bmc"`
}

// readInventory reads the hosts of a cluster from its own Secret or, if there is none, from its
// install-config.
func (a *Actuator) readInventory(ctx context.Context, ref cloud.Ref) (inventory, error) {
	own := types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: ref.Cluster.Name + secretSuffix}
	data, err := a.secrets(ctx, own)
	switch {
	case err == nil:
		return parseHostsSecret(ref.InfraID, own, data)
	case fault.KindOf(err) != fault.Denied: // the Secret may exist
		return inventory{}, fmt.Errorf("reading the BMCs of %s: %w", ref.Cluster, err)
	case ref.InstallConfig == "":
		return inventory{}, fault.NewDenied("the BMCs of %s are unknown: create Secret %s in namespace %s with key %s", ref.Cluster, own.Name, own.Namespace, keyHosts)
	}
	name := types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: ref.InstallConfig}
	data, err = a.secrets(ctx, name)
	if err != nil {
		return inventory{}, fmt.Errorf("reading the BMCs of %s from the install-config, because Secret %s does not exist: %w", ref.Cluster, own.Name, err)
	}
	return parseInstallConfig(name, own, data)
}

// parseHostsSecret parses the Secret that contains only the BMCs of a cluster.
func parseHostsSecret(infraID string, name types.NamespacedName, data map[string][]byte) (inventory, error) {
	if of := strings.TrimSpace(string(data[keyInfraID])); of != "" && of != infraID {
		return inventory{}, nil // these hosts belong, or belonged, to another cluster
	}
	inv := inventory{trust: trust{roots: data[keyRoots]}}
	if roots := inv.trust.roots; len(roots) > 0 && !x509.NewCertPool().AppendCertsFromPEM(roots) {
		return inventory{}, fault.NewDenied("key %s of Secret %s contains no PEM certificate: correct it", keyRoots, name)
	}
	where := fmt.Sprintf("key %s of Secret %s", keyHosts, name)
	raw, ok := data[keyHosts]
	if !ok {
		return inventory{}, fault.NewDenied("Secret %s has no key %s: store the list of hosts there, as in platform.baremetal.hosts of an install-config", name, keyHosts)
	}
	var list []hostEntry
	if yaml.Unmarshal(raw, &list) != nil { // the parser's error would quote the content
		return inventory{}, fault.NewDenied("%s is not a list of hosts, as in platform.baremetal.hosts of an install-config: correct it", where)
	}
	var err error
	inv.hosts, err = validateHosts(list, where)
	return inv, err
}

// parseInstallConfig parses the hosts of an install-config. own is the Secret that would take
// precedence.
func parseInstallConfig(name, own types.NamespacedName, data map[string][]byte) (inventory, error) {
	where := fmt.Sprintf("key %s of Secret %s", hivev1.SecretKeyInstallConfig, name)
	var config struct {
		Platform struct {
			BareMetal struct {
				Hosts []hostEntry `json:"hosts"`
			} `json:"baremetal"`
		} `json:"platform"`
	}
	if yaml.Unmarshal(data[hivev1.SecretKeyInstallConfig], &config) != nil {
		return inventory{}, fault.NewDenied("%s is not an install-config in YAML: correct it, or create Secret %s with key %s", where, own.Name, keyHosts)
	}
	hosts, err := validateHosts(config.Platform.BareMetal.Hosts, where)
	if err == nil && len(hosts) == 0 {
		return inventory{}, fault.NewDenied("%s has no platform.baremetal.hosts: create Secret %s in namespace %s with key %s", where, own.Name, own.Namespace, keyHosts)
	}
	return inventory{hosts: hosts}, err
}

// validateHosts validates the list and converts it. One invalid host makes the whole list invalid,
// because the other entries cannot be trusted without it.
func validateHosts(list []hostEntry, where string) ([]host, error) {
	var hosts []host
	var errs []error
	for n, w := range list {
		h, err := w.toHost()
		if err != nil {
			errs = append(errs, fault.NewDenied("%s: host %s: %w", where, cmp.Or(w.Name, fmt.Sprintf("number %d", n+1)), err))
			continue
		}
		h.where = where
		if i := slices.IndexFunc(hosts, func(o host) bool { return o.name == h.name || o.uniqueID() == h.uniqueID() }); i >= 0 {
			errs = append(errs, fault.NewDenied("%s: hosts %s and %s have the same name or the same BMC: correct one", where, hosts[i].name, h.name))
		}
		hosts = append(hosts, h)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h host) bool { return h.controlPlane }) {
		return nil, fault.NewDenied("%s: no host has the role master: set it on the hosts of the control plane", where)
	}
	slices.SortFunc(hosts, func(a, b host) int { return strings.Compare(a.name, b.name) })
	return hosts, nil
}

func (e hostEntry) toHost() (host, error) {
	h := host{name: e.Name, username: e.BMC.Username, password: e.BMC.Password, insecure: e.BMC.Insecure}
	if h.name == "" {
		return host{}, errors.New("it has no name: add one")
	}
	switch e.Role {
	case "master", "arbiter", "control-plane": // an arbiter also has a vote in etcd
		h.controlPlane = true
	case "worker", "":
	default:
		return host{}, errors.New("its role is not one of master, arbiter, worker: correct it")
	}
	var err error
	if h.address, err = parseAddress(e.BMC.Address); err != nil {
		return host{}, err
	}
	if h.username == "" || h.password == "" {
		return host{}, errors.New("it needs both bmc.username and bmc.password: add what is missing")
	}
	if h.protocol == ipmi && (len(h.username) > 16 || len(h.password) > 20) {
		return host{}, errors.New("IPMI limits the username to 16 characters and the password to 20, and one of them is longer: change the account")
	}
	return h, nil
}
