package spoke

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// checkIdentity returns an error that names the file if one of the files that only the installer
// writes is damaged: a machine without them would run, but its cluster would wait for nodes that
// cannot join. A machine that ends with an error is Failed, so that its cluster is replaced. A
// node's own certificates are not checked, because the node requests them again.
func (m *runningMachine) checkIdentity() error {
	var err error
	switch m.Role {
	case machine.ControlPlane:
		err = checkControlPlaneKeys(machine.PKIPath(m.dir))
	case machine.Worker:
		err = checkBootstrapKubeconfig(machine.BootstrapPath(m.dir))
	}
	if err != nil {
		return fmt.Errorf("starting machine %s: its disk is damaged: %w", m.Name, err)
	}
	return nil
}

func checkControlPlaneKeys(dir string) error {
	for _, name := range []string{pki.ClusterCA, pki.FrontProxyCA} {
		if _, err := pki.LoadCA(dir, name); err != nil {
			return err
		}
	}
	key := pki.ServiceAccountKeyPath(dir)
	if _, err := keyutil.PrivateKeyFromFile(key); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	_, err := pki.ReadBootstrapToken(dir)
	return err
}

func checkBootstrapKubeconfig(path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err == nil && (config.BearerToken == "" || len(config.CAData) == 0) {
		err = errors.New("it lacks a token or the cluster's certificate")
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}
