package pki

import "time"

// EnsureCluster makes in dir what a control plane needs and is missing: the CA of
// the cluster, the CA of its front proxy, and the service-account key. What is
// there is kept. The cluster's name becomes part of the names of the CAs.
func EnsureCluster(dir, name string, now time.Time) error {
	for _, ca := range []string{ClusterCA, FrontProxyCA} {
		if _, err := LoadOrCreateCA(dir, ca, name+"-"+ca, now); err != nil {
			return err
		}
	}
	return EnsureServiceAccountKey(dir)
}
