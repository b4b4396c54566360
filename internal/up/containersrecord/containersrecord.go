// Package containersrecord records in a data folder whether the local clusters that the running hotspare up
// creates run the containers of pods, for commands of a user.
//
//	DIR/containers.json    the record as JSON; absent while no hotspare up with local clusters runs
package containersrecord

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// Record is what a hub knows about containers on its computer.
type Record struct {
	// Obstacle is why the nodes of new clusters only report that pods run, and what to do about it; "" if they
	// run the containers of pods. It is a clause without a period.
	Obstacle string `json:"obstacle"`
}

// Path returns the path of the file in a data folder.
func Path(dir string) string { return filepath.Join(dir, "containers.json") }

// Write replaces the record in a data folder.
func (r Record) Write(dir string) error {
	raw, err := json.Marshal(r)
	if err == nil {
		err = pki.WriteFile(Path(dir), append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("recording whether clusters run containers: %w", err)
	}
	return nil
}

// Remove removes the record in a data folder. No record is success.
func Remove(dir string) error {
	if err := os.Remove(Path(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of containers: %w", err)
	}
	return nil
}

// Read returns the record in a data folder; false if there is none, or it cannot be read.
func Read(dir string) (Record, bool) {
	raw, err := os.ReadFile(Path(dir))
	var r Record
	if err != nil || json.Unmarshal(raw, &r) != nil {
		return Record{}, false
	}
	return r, true
}

// String says for a user what the pods of new clusters are.
func (r Record) String() string {
	if r.Obstacle == "" {
		return "real pods"
	}
	return "simulated: " + r.Obstacle
}
