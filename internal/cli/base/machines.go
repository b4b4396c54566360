package base

import (
	"fmt"
	"path/filepath"
	"strings"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// Machines are the machines of one local cluster.
type Machines struct {
	Dir string
	All []machine.Config
}

// FindMachine returns the machine with a name.
func (m Machines) FindMachine(name string) (machine.Config, error) {
	var names []string
	for _, c := range m.All {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return machine.Config{}, fmt.Errorf("there is no machine %q: choose one of %s", name, strings.Join(names, ", "))
}

// MachineFolder returns the folder of a machine.
func (m Machines) MachineFolder(c machine.Config) string { return filepath.Join(m.Dir, c.Name) }
