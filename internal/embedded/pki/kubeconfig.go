package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A Cluster is the address of an API server and the CA of its certificate.
type Cluster struct {
	// Name is the name, in a kubeconfig, of the cluster and of the context that selects it.
	Name string
	// Server is the URL, as in https://127.0.0.1:6443.
	Server string
	// CA is the PEM certificate of the CA of the server.
	CA []byte
}

// ClientKubeconfig returns a kubeconfig with which user, authenticated by the client certificate
// pair, reaches the cluster. It does not refer to other files.
func ClientKubeconfig(c Cluster, user string, pair Pair) ([]byte, error) {
	return encodeKubeconfig(c, user, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Cert,
		ClientKeyData:         pair.Key,
	})
}

// BootstrapKubeconfig returns the kubeconfig with which a machine without a certificate requests
// one from the cluster. The token is one that WriteBootstrapToken has written for the API server.
func BootstrapKubeconfig(c Cluster, token string) ([]byte, error) {
	return encodeKubeconfig(c, NodeBootstrapperName, &clientcmdapi.AuthInfo{Token: token})
}

func encodeKubeconfig(c Cluster, user string, auth *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	config.AuthInfos[user] = auth
	config.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: user}
	config.CurrentContext = c.Name
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding kubeconfig of %s: %w", user, err)
	}
	return raw, nil
}
