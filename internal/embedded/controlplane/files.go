package controlplane

import (
	"path/filepath"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// User names of the components, as in Kubernetes' default roles.
const (
	controllerManagerUser = "system:kube-controller-manager"
	schedulerUser         = "system:kube-scheduler"
	frontProxyUser        = "front-proxy-client"
)

// files are the paths of the files that the components read: they do not accept certificates from
// memory.
type files struct {
	run string // rewritten at each start
	pki string // written by pki.EnsureCluster
}

func (f files) certificatePath(name string) string { return filepath.Join(f.run, name+".crt") }
func (f files) privateKeyPath(name string) string  { return filepath.Join(f.run, name+".key") }
func (f files) kubeconfigPath(name string) string  { return filepath.Join(f.run, name+".kubeconfig") }

func (f files) clusterCAPath() string { return filepath.Join(f.pki, pki.ClusterCA+".crt") }

func (f files) frontProxyCAPath() string { return filepath.Join(f.pki, pki.FrontProxyCA+".crt") }

// Names of the pairs and kubeconfigs in files.run.
const (
	serverFile            = "apiserver"
	kubeletClientFile     = "kubelet-client"
	frontProxyFile        = "front-proxy-client"
	controllerManagerFile = "controller-manager"
	schedulerFile         = "scheduler"
)

// issueCredentials writes the certificates and kubeconfigs of the components. names are added to the
// names of the API.
func (f files) issueCredentials(ca *pki.CA, url string, now time.Time, names []string) error {
	server, err := ca.IssueServerCert(now, certificateLifetime, "kube-apiserver", slices.Concat(serverNames, names)...)
	if err != nil {
		return err
	}
	if err := server.Write(f.run, serverFile); err != nil {
		return err
	}
	if err := f.issueClientCert(ca, now, kubeletClientFile, pki.KubeletClientUser); err != nil {
		return err
	}
	frontProxy, err := pki.LoadCA(f.pki, pki.FrontProxyCA)
	if err != nil {
		return err
	}
	if err := f.issueClientCert(frontProxy, now, frontProxyFile, frontProxyUser); err != nil {
		return err
	}
	if err := f.issueKubeconfig(ca, url, now, controllerManagerFile, controllerManagerUser); err != nil {
		return err
	}
	return f.issueKubeconfig(ca, url, now, schedulerFile, schedulerUser)
}

func (f files) issueClientCert(ca *pki.CA, now time.Time, name, user string) error {
	pair, err := ca.IssueClientCert(now, certificateLifetime, user)
	if err != nil {
		return err
	}
	return pair.Write(f.run, name)
}

func (f files) issueKubeconfig(ca *pki.CA, url string, now time.Time, name, user string) error {
	pair, err := ca.IssueClientCert(now, certificateLifetime, user)
	if err != nil {
		return err
	}
	raw, err := pki.ClientKubeconfig(pki.Cluster{Name: "self", Server: url, CA: ca.CertPEM()}, user, pair)
	if err != nil {
		return err
	}
	return pki.WriteFile(f.kubeconfigPath(name), raw)
}
