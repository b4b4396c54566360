package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// Prefixes of temporary folders: machines that are being created, and machines that are being
// deleted. Run removes the folders that a crash leaves behind.
const (
	newPrefix   = ".new-"
	trashPrefix = ".trash-"
)

// CreateMachine creates a machine, stopped and with an empty disk. If a machine with that name
// already exists, CreateMachine leaves it unchanged. The machine's APIPort is that of its cluster;
// the first machine of a cluster gets the port that c asks for, or a free port if c asks for none.
// CreateMachine returns the machine as stored. The error is fault.Denied with a *PortError if the
// requested port is not free.
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
	delete(s.lastExits, s.MachineDir(c.InfraID, c.Name)) // exits of an earlier machine with this name that was removed by hand
	return c, nil
}

// createAtomically creates the machine in a temporary folder, calls fill, if it is not nil, to
// write its contents, and renames the folder into place: the machine exists completely or not at
// all.
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

// writeConfigSynced writes c and syncs it to disk. Otherwise, a power failure could keep the rename
// that follows but lose the content.
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
