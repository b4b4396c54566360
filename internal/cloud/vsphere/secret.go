package vsphere

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// The keys of a credentials Secret: a list for several vCenters, or one account for all.
const (
	keyCenters  = "vCenters"
	keyUsername = "username"
	keyPassword = "password"
)

// account is a user name and password.
type account struct {
	VCenter  string `json:"vCenter"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// center is one vCenter with everything needed to log in to it.
type center struct {
	site
	username, password string
	// roots are PEM certificates to trust in addition to the system's; authorities are those that
	// the hub has for all clusters.
	roots       []byte
	authorities cabundle.Bundle
	// where is the location of the account, for messages to users.
	where string
}

// sessionKey returns the key of the session: callers with different keys must not share one.
func (c center) sessionKey() key {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(c.password), c.roots, c.authorities.PEM} {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return key{address: strings.ToLower(c.address), username: c.username, secret: [sha256.Size]byte(sum.Sum(nil))}
}

// readClusterCenters reads the platform of ref and its Secrets. It logs out the sessions of
// accounts that the cluster no longer has.
func (a *Actuator) readClusterCenters(ctx context.Context, ref cloud.Ref) ([]center, error) {
	s, err := parsePlatformSection(ref)
	if err != nil {
		return nil, err
	}
	name := types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: s.CredentialsSecretRef.Name}
	data, err := a.secrets(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading the vSphere credentials: %w", err)
	}
	roots, err := a.readCertificates(ctx, ref.Cluster.Namespace, s.CertificatesSecretRef.Name)
	if err != nil {
		return nil, err
	}
	authorities := a.authorities.LatestBundle(ctx)
	var out []center
	for _, at := range s.listUniqueSites() {
		c, err := centerFromSecret(at, name, data)
		if err != nil {
			return nil, err
		}
		c.roots, c.authorities = roots, authorities
		out = append(out, c)
	}
	a.sessions.setClusterSessions(ctx, ref.Cluster, out)
	return out, nil
}

// centerFromSecret finds the account for a vCenter in the data of the Secret with that name. No
// error contains the Secret's content: the parser's own errors would quote it.
func centerFromSecret(at site, name types.NamespacedName, data map[string][]byte) (center, error) {
	var accounts []account
	if raw, ok := data[keyCenters]; ok {
		if yaml.Unmarshal(raw, &accounts) != nil {
			return center{}, fault.NewDenied("key %s of Secret %s is not a list of vCenter, username and password in YAML or JSON: correct it", keyCenters, name)
		}
	}
	i := slices.IndexFunc(accounts, func(a account) bool { return strings.EqualFold(a.VCenter, at.server) })
	if i >= 0 {
		return accounts[i].centerForSite(at, fmt.Sprintf("key %s of Secret %s", keyCenters, name))
	}
	one := account{Username: string(data[keyUsername]), Password: string(data[keyPassword])}
	if one.Username == "" && one.Password == "" {
		return center{}, fault.NewDenied("Secret %s has no account for vCenter %s: add an entry with vCenter, username and password to its key %s, or set its keys %s and %s",
			name, at.server, keyCenters, keyUsername, keyPassword)
	}
	return one.centerForSite(at, fmt.Sprintf("keys %s and %s of Secret %s", keyUsername, keyPassword, name))
}

// centerForSite returns the account as the center for one vCenter.
func (a account) centerForSite(at site, where string) (center, error) {
	if a.Username == "" || a.Password == "" {
		return center{}, fault.NewDenied("%s: the account for vCenter %s needs both username and password: add what is missing", where, at.server)
	}
	return center{site: at, username: a.Username, password: a.Password, where: where}, nil
}

// readCertificates returns the certificates in all keys of a Secret; the installer accepts any key.
func (a *Actuator) readCertificates(ctx context.Context, namespace, secret string) ([]byte, error) {
	if secret == "" {
		return nil, nil
	}
	name := types.NamespacedName{Namespace: namespace, Name: secret}
	data, err := a.secrets(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading the vCenter's certificates: %w", err)
	}
	var all []byte
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if x509.NewCertPool().AppendCertsFromPEM(data[key]) {
			all = append(append(all, data[key]...), '\n')
		}
	}
	if len(all) == 0 {
		return nil, fault.NewDenied("Secret %s, named by spec.platform.vsphere.certificatesSecretRef, has no PEM certificate in any key: add the CA of the vCenter", name)
	}
	return all, nil
}
