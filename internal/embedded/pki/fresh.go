package pki

import (
	"bytes"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// renewBefore is the remaining validity below which the certificate in a kubeconfig file is
// replaced.
const renewBefore = 30 * 24 * time.Hour

// IsKubeconfigCurrent reports whether raw is the kubeconfig that ClientKubeconfig returns for user
// at the cluster, with a certificate of this CA that is valid for another month.
func (c *CA) IsKubeconfigCurrent(raw []byte, cluster Cluster, user string, now time.Time) bool {
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return false
	}
	if config.Host != cluster.Server || !bytes.Equal(config.CAData, cluster.CA) {
		return false
	}
	certs, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return false
	}
	leaf := certs[0]
	return leaf.Subject.CommonName == user && leaf.CheckSignatureFrom(c.cert) == nil && now.Add(renewBefore).Before(leaf.NotAfter)
}
