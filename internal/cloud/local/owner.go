package local

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/machine"
)

// ConfirmOwner returns a fault.Denied if a machine of infraID was made for another
// ClusterDeployment than cluster. An infraID is no secret, and anybody can write one into
// a ClusterDeployment of a namespace of theirs. Machines without an owner are anybody's:
// they were made by hand.
func (s *Store) ConfirmOwner(infraID string, cluster types.NamespacedName) error {
	made, err := s.ListMachines(infraID)
	if err != nil {
		return err
	}
	for _, m := range made {
		if m.Owner != "" && m.Owner != cluster.String() {
			return fault.NewDenied("the machines of infraID %s are those of ClusterDeployment %s, so hotspare touches none of them from %s: "+
				"correct the infraID, or set spec.preserveOnDelete to let this ClusterDeployment go without", infraID, m.Owner, cluster)
		}
	}
	return nil
}

// SetOwner records the ClusterDeployment of the machines of infraID that have none yet.
// It is for machines that were made before owners were recorded.
func (s *Store) SetOwner(infraID string, cluster types.NamespacedName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range ms {
		if m.gone || m.Owner != "" || m.Role == "" { // one without a role could not be read
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

// replaceConfig writes c in the place of what is at path: as a whole, or not at all.
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
