package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// Context is the name of the hub's context in a kubeconfig.
const Context = "hotspare"

// kubeconfigLifetime is the lifetime of the certificate in a kubeconfig.
const kubeconfigLifetime = 365 * 24 * time.Hour

// WriteKubeconfig writes to path a kubeconfig for the person who runs the hub. It leaves a file
// with the same content unchanged if its certificate is valid for another month.
func (h *Hub) WriteKubeconfig(path string) error {
	return h.writeKubeconfig(path, adminUser, AdminGroup)
}

// WriteManagerKubeconfig writes to path a kubeconfig for a hotspare-manager that runs in a process
// of its own. Its user is ManagerUser, whom the admission policies recognize as hotspare.
func (h *Hub) WriteManagerKubeconfig(path string) error {
	return h.writeKubeconfig(path, ManagerUser)
}

func (h *Hub) writeKubeconfig(path, user string, groups ...string) error {
	cluster := pki.Cluster{Name: Context, Server: h.URL(), CA: h.ca.CertPEM()}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	if h.ca.IsKubeconfigCurrent(old, cluster, user, time.Now()) {
		return nil
	}
	pair, err := h.ca.IssueClientCert(time.Now(), kubeconfigLifetime, user, groups...)
	if err != nil {
		return err
	}
	raw, err := pki.ClientKubeconfig(cluster, user, pair)
	if err != nil {
		return err
	}
	return pki.WriteFile(path, raw)
}
