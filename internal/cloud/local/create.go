package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/machine"
)

// Prefixes of folders that are on their way into the store or out of it. What a
// crash leaves of them is removed by Run.
const (
	newPrefix   = ".new-"
	trashPrefix = ".trash-"
)

// CreateMachine makes a machine, stopped and with an empty disk. If there is one of
// that name already, it is left as it is. The machine's APIPort is that of its
// cluster; the first machine gets the one it asks for, or, asking for none, one
// that is chosen. Create returns the machine as it is in the store. The error is
// fault.Denied with a *PortError if the port asked for is not free.
func (s *Store) CreateMachine(c machine.Config) (machine.Config, error) {
	if err := errors.Join(checkDNSLabel("infraID", c.InfraID), checkDNSLabel("machine", c.Name)); err != nil {
		return machine.Config{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have, err := machine.LoadConfig(s.MachineDir(c.InfraID, c.Name))
	if !errors.Is(err, fs.ErrNotExist) {
		return have, err
	}
	if c.APIPort, err = s.assignAPIPort(c.InfraID, c.APIPort); err != nil {
		return machine.Config{}, err
	}
	if err := s.createAtomically(c, nil); err != nil {
		return machine.Config{}, fmt.Errorf("creating machine %s: %w", c.Name, err)
	}
	delete(s.lastExits, s.MachineDir(c.InfraID, c.Name)) // those of a namesake that was removed by hand
	return c, nil
}

// createAtomically makes the machine aside, has it filled, if fill is not nil, and moves it to
// its place: it is there as a whole or not at all.
func (s *Store) createAtomically(c machine.Config, fill func(dir string) error) error {
	aside, err := os.MkdirTemp(s.dir, newPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside) //nolint:errcheck // finds nothing after the rename
	if err := os.Mkdir(machine.DiskPath(aside), 0o700); err != nil {
		return err
	}
	if err := writeConfigSynced(machine.ConfigPath(aside), c); err != nil {
		return err
	}
	if fill != nil {
		if err := fill(aside); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(s.dir, c.InfraID), 0o700); err != nil {
		return err
	}
	return os.Rename(aside, s.MachineDir(c.InfraID, c.Name))
}

// writeConfigSynced writes through to the disk: the rename that follows must not
// survive a power cut that its content does not.
func writeConfigSynced(path string, c machine.Config) error {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
