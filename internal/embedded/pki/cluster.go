package pki

import "time"

// EnsureCluster creates in dir what a control plane needs and dir does not contain yet: the CA of
// the cluster, the CA of its front proxy, and the service-account key. It keeps existing files. The
// cluster's name becomes part of the names of the CAs.
func EnsureCluster(dir, name string, now time.Time) error {
	for _, ca := range []string{ClusterCA, FrontProxyCA} {
		if _, err := LoadOrCreateCA(dir, ca, name+"-"+ca, now); err != nil {
			return err
		}
	}
	return EnsureServiceAccountKey(dir)
}
