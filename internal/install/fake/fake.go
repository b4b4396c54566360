// Package fake simulates clusters: they go through their whole life cycle immediately, without a
// cloud. They let you try pools with thousands of clusters.
//
// Everything is derived from the cluster's name and the attempt: no state, no clock, no I/O. The
// kubeconfig is well formed, but its server does not exist.
package fake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hotspare.io/hotspare/internal/install"
)

// Executor creates fake clusters. Its zero value is ready for use.
type Executor struct{}

var _ install.Executor = Executor{}

// Prepare names the cluster. It does not read the install-config.
func (Executor) Prepare(_ context.Context, req install.Request) (install.Metadata, error) {
	seed := sha256.Sum256(fmt.Appendf(nil, "%s#%d", req.Cluster, req.Attempt))
	digits := hex.EncodeToString(seed[:])
	md := install.Metadata{
		ClusterID: fmt.Sprintf("%s-%s-%s-%s-%s", digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]),
		InfraID:   fmt.Sprintf("fake-%s", digits[32:42]),
	}
	var err error
	md.Raw, err = json.Marshal(map[string]any{
		"clusterName": req.Cluster.Name, "clusterID": md.ClusterID, "infraID": md.InfraID, "fake": map[string]any{},
	})
	if err != nil {
		return install.Metadata{}, fmt.Errorf("encoding metadata of %s: %w", req.Cluster, err)
	}
	return md, nil
}

// Install always succeeds.
func (Executor) Install(_ context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	url := fmt.Sprintf("https://%s.fake.invalid:6443", md.InfraID)
	kubeconfig, err := newKubeconfig(url, md.InfraID)
	if err != nil {
		return install.Result{}, fmt.Errorf("encoding kubeconfig of %s: %w", req.Cluster, err)
	}
	return install.Result{
		Phase:         install.Succeeded,
		Kubeconfig:    kubeconfig,
		Password:      fakePassword(md.InfraID),
		APIURL:        url,
		WebConsoleURL: fmt.Sprintf("https://console.%s.fake.invalid", md.InfraID),
		Version:       req.Version,
	}, nil
}

// Destroy always succeeds.
func (Executor) Destroy(context.Context, install.ClusterTarget, install.Metadata) (install.Result, error) {
	return install.Result{Phase: install.Succeeded}, nil
}

func newKubeconfig(url, infraID string) ([]byte, error) {
	const user = "admin"
	config := clientcmdapi.NewConfig()
	config.Clusters[infraID] = &clientcmdapi.Cluster{Server: url}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: "fake"}
	config.Contexts[user] = &clientcmdapi.Context{Cluster: infraID, AuthInfo: user}
	config.CurrentContext = user
	return clientcmd.Write(*config)
}

// fakePassword returns a password in the format of kubeadmin's: four groups of five.
func fakePassword(infraID string) string {
	sum := sha256.Sum256([]byte("password of " + infraID))
	digits := hex.EncodeToString(sum[:])
	return fmt.Sprintf("%s-%s-%s-%s", digits[:5], digits[5:10], digits[10:15], digits[15:20])
}
