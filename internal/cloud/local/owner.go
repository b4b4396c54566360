package local

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/fault"
)

// ConfirmOwner returns a fault.Denied if a machine of infraID was created for a ClusterDeployment
// other than cluster. An infraID is not a secret, and any user can write one into a
// ClusterDeployment in their own namespace. Machines without an owner were created by hand and are
// available to every ClusterDeployment.
func (s *Store) ConfirmOwner(infraID string, cluster types.NamespacedName) error {
	made, err := s.ListMachines(infraID)
	if err != nil {
		return err
	}
	for _, m := range made {
		if m.Owner != "" && m.Owner != cluster.String() {
			return fault.NewDenied("the machines of infraID %s belong to ClusterDeployment %s, so they cannot be changed from %s: "+
				"correct the infraID, or set spec.preserveOnDelete to delete this ClusterDeployment without destroying them", infraID, m.Owner, cluster)
		}
	}
	return nil
}

// SetOwner records cluster as the owner of the machines of infraID that have no owner yet. It
// exists for machines that were created before owners were recorded.
func (s *Store) SetOwner(infraID string, cluster types.NamespacedName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range ms {
		if m.gone || m.Owner != "" || m.Role == "" { // a machine without a role could not be read
			continue
		}
		c := m.Config
		c.Owner = cluster.String()
		if err := replaceConfig(machine.ConfigPath(m.dir), c); err != nil {
			errs = append(errs, fmt.Errorf("recording the owner of machine %s: %w", m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// replaceConfig atomically replaces the file at path with c.
func replaceConfig(path string, c machine.Config) error {
	aside := path + ".new"
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := writeConfigSynced(aside, c); err != nil {
		return err
	}
	return os.Rename(aside, path)
}
