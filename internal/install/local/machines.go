package local

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machines "hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// machineConfigs returns the machines of a cluster, the control plane first. Their port is the one
// in the install-config, or not chosen yet.
func machineConfigs(c config, md metadata, pods simulation) []machine.Config {
	base := machine.Config{
		InfraID:             md.InfraID,
		ClusterName:         c.name,
		BaseDomain:          c.baseDomain,
		APIPort:             c.apiPort,
		Workers:             c.workers,
		CertificateDuration: metav1.Duration{Duration: c.certificateDuration},
		OpenShiftVersion:    md.Local.OpenShiftVersion,
		Owner:               md.ownerName(),
		Containers:          !pods.simulated,
		ContainersObstacle:  pods.cause,
	}
	if base.Containers {
		base.Images = c.images
	}
	one := func(role machine.Role, name string) machine.Config {
		m := base
		m.Role, m.Name = role, name
		return m
	}
	ms := []machine.Config{one(machine.ControlPlane, machine.ControlPlaneName(md.InfraID))}
	for i := range c.workers {
		worker := one(machine.Worker, fmt.Sprintf("%s-worker-%d", md.InfraID, i))
		worker.Index = i
		ms = append(ms, worker)
	}
	return ms
}

// createMachines creates the machines and returns them as stored.
func (i *Installer) createMachines(ms []machine.Config) ([]machine.Config, error) {
	ms = slices.Clone(ms)
	for n, m := range ms {
		var err error
		ms[n], err = i.store.CreateMachine(m)
		if taken := (*machines.PortError)(nil); errors.As(err, &taken) {
			return nil, fmt.Errorf("install-config.yaml: platform.local.apiPort: %w", err)
		}
		if err != nil {
			return nil, err
		}
	}
	return ms, nil
}

// adminCertificateDuration is how long the administrator's kubeconfig is valid.
const adminCertificateDuration = 10 * 365 * 24 * time.Hour

// writeMachineFiles writes what the machines need before their first boot, and the administrator's
// credentials. It keeps existing keys and secrets: the machines may have been started already.
func (i *Installer) writeMachineFiles(f folder, ms []machine.Config) error {
	leader := ms[0]
	keys := machine.PKIPath(i.store.MachineDir(leader.InfraID, leader.Name))
	now := time.Now()
	if err := pki.EnsureCluster(keys, leader.InfraID, now); err != nil {
		return err
	}
	if err := i.writeRegistryAccess(f, leader); err != nil {
		return err
	}
	token, err := readOrCreateSecret(f.tokenPath(), pki.NewBootstrapToken)
	if err != nil {
		return err
	}
	if err := pki.WriteBootstrapToken(keys, token); err != nil {
		return err
	}
	ca, err := pki.LoadCA(keys, pki.ClusterCA)
	if err != nil {
		return err
	}
	cluster := pki.Cluster{Name: leader.ClusterName, Server: apiServerURL(leader), CA: ca.CertPEM()}
	if err := i.writeBootstrapKubeconfigs(cluster, token, ms[1:]); err != nil {
		return err
	}
	if _, err := readOrCreateSecret(f.passwordPath(), newPassword); err != nil {
		return err
	}
	// As with openshift-install, this identity must work when RBAC does not.
	admin, err := ca.IssueClientCert(now, adminCertificateDuration, "system:admin", "system:masters")
	if err != nil {
		return err
	}
	raw, err := pki.ClientKubeconfig(cluster, "admin", admin)
	if err != nil {
		return err
	}
	return pki.WriteFile(f.kubeconfigPath(), raw)
}

// writeBootstrapKubeconfigs writes the kubeconfigs with which the workers join.
func (i *Installer) writeBootstrapKubeconfigs(cluster pki.Cluster, token string, workers []machine.Config) error {
	raw, err := pki.BootstrapKubeconfig(cluster, token)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if err := pki.WriteFile(machine.BootstrapPath(i.store.MachineDir(w.InfraID, w.Name)), raw); err != nil {
			return err
		}
	}
	return nil
}

// apiServerURL returns the URL at which the control plane serves the API.
func apiServerURL(leader machine.Config) string {
	return fmt.Sprintf("https://127.0.0.1:%d", leader.APIPort)
}
