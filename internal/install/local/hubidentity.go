package local

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/activity"
	"hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// adminGroup is the group of the administrator.
const adminGroup = "system:masters"

// hubCertificateDuration is how long a certificate of the hub is valid. A new one is issued with each client, at the
// latest when the hub starts.
const hubCertificateDuration = 10 * 365 * 24 * time.Hour

// IssueHubIdentity returns a client certificate and key with which the hub authenticates to a local cluster as
// activity.HubUser, so that its requests do not count as use of the cluster; none if config does not reach a local
// cluster. Config must hold the certificate and key of an administrator of that cluster: the users who may write
// kubeconfigs get no rights that they do not have.
//
// An error means that it could not find out: a client that then used the certificate of config would count as use.
func IssueHubIdentity(store *local.Store, config *rest.Config) (certificate, key []byte, err error) {
	infraID, err := store.FindClusterByServer(config.Host)
	if infraID == "" {
		return nil, nil, err
	}
	ca, err := pki.LoadCA(machine.PKIPath(store.MachineDir(infraID, machine.ControlPlaneName(infraID))), pki.ClusterCA)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !isAdministrator(config, ca) {
		return nil, nil, nil // the cluster is being deleted, or config is not that of an administrator
	}
	if err != nil {
		return nil, nil, err
	}
	pair, err := ca.IssueClientCert(time.Now(), hubCertificateDuration, activity.HubUser, adminGroup)
	return pair.Cert, pair.Key, err
}

// isAdministrator reports whether config has a certificate of an administrator that the CA has issued, with its key.
func isAdministrator(config *rest.Config, ca *pki.CA) bool {
	if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
		return false
	}
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.CertPEM())
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil && slices.Contains(cert.Subject.Organization, adminGroup)
}
