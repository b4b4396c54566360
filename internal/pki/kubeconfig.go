package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A Cluster is where an API server is and by which CA it is known.
type Cluster struct {
	// Name names the cluster, and the context that selects it, in a kubeconfig.
	Name string
	// Server is the URL, as in https://127.0.0.1:6443.
	Server string
	// CA is the PEM certificate of the CA of the server.
	CA []byte
}

// ClientKubeconfig returns a kubeconfig by which user, known by the client certificate
// pair, reaches the cluster. It refers to no other file.
func ClientKubeconfig(c Cluster, user string, pair Pair) ([]byte, error) {
	return encodeKubeconfig(c, user, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Cert,
		ClientKeyData:         pair.Key,
	})
}

// BootstrapKubeconfig returns the kubeconfig by which a machine that has no
// certificate yet asks the cluster for one. The token is one that WriteTokens
// has told the cluster of.
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
