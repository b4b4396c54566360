package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/redact"
)

// Folder is a Store in a folder of this computer: one folder for each cluster, named by its infraID
// and accessible only to its owner.
type Folder string

var _ Store = Folder("")

// FolderName is the name of the Folder in the data folder of hotspare up.
const FolderName = "recipe-clusters"

const (
	recordFile  = "cluster.json"
	logFile     = "log"
	stateFolder = "state"
	// recipeFile contains the path of the recipe of which a program ran last.
	recipeFile = "recipe"
	// trashPrefix is the prefix of folders that are being deleted. No infraID has it.
	trashPrefix = ".trash-"
	// maxLog is the size, in bytes, from which the log is replaced by a new one before a run. The
	// previous log is kept with suffix previousLog.
	maxLog = 4 << 20
	// previousLog is the suffix of the previous log.
	previousLog = ".1"
	// logLines is the number of lines that ReadLog returns.
	logLines = 50
)

// clusterDir returns the folder of a cluster. It rejects an infraID that could name a folder
// elsewhere.
func (f Folder) clusterDir(infraID string) (string, error) {
	if infraID == "" || infraID != filepath.Base(infraID) || !filepath.IsLocal(infraID) || strings.HasPrefix(infraID, ".") {
		return "", fault.NewDenied("infraID %q is not a name", infraID)
	}
	return filepath.Join(string(f), infraID), nil
}

// ReadRecord returns the record of a cluster; false if there is none.
func (f Folder) ReadRecord(_ context.Context, key Key) (Record, bool, error) {
	infraID := key.InfraID
	dir, err := f.clusterDir(infraID)
	if err != nil {
		return Record{}, false, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("reading the record of cluster %s: %w", infraID, err)
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return Record{}, false, fmt.Errorf("reading %s: %w: delete the file to create the cluster again", filepath.Join(dir, recordFile), err)
	}
	return r, true, nil
}

// WriteRecord replaces the record of a cluster.
func (f Folder) WriteRecord(_ context.Context, key Key, r Record) error {
	infraID := key.InfraID
	dir, err := f.clusterDir(infraID)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of cluster %s: %w", infraID, err)
	}
	return pki.WriteFile(filepath.Join(dir, recordFile), raw)
}

// CountClusters returns the number of clusters that have a record.
func (f Folder) CountClusters() (int, error) {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("listing the clusters of recipes: %w", err)
	}
	count := 0
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(string(f), e.Name(), recordFile)); err == nil {
			count++
		}
	}
	return count, nil
}

// ReadLog returns the last lines of a cluster's log, without secrets; "" if there is none.
func (f Folder) ReadLog(_ context.Context, key Key, secrets map[string][]byte) string {
	dir, err := f.clusterDir(key.InfraID)
	if err != nil {
		return ""
	}
	tail, err := redact.ReadUnscrubbedTail(filepath.Join(dir, logFile), logLines)
	if err != nil {
		return "" // no program has run
	}
	return recipe.NewScrubber(secrets).Scrub(tail)
}

// Delete deletes everything that is kept of a cluster. It first renames the folder, so that a crash
// leaves either all of it or nothing that is found again.
func (f Folder) Delete(_ context.Context, key Key) error {
	infraID := key.InfraID
	dir, err := f.clusterDir(infraID)
	if err != nil {
		return err
	}
	trash := filepath.Join(string(f), trashPrefix+infraID)
	if err := os.RemoveAll(trash); err != nil { // of an earlier crash
		return fmt.Errorf("deleting the state of cluster %s: %w", infraID, err)
	}
	err = os.Rename(dir, trash)
	if err == nil {
		err = os.RemoveAll(trash)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting the state of cluster %s: %w", infraID, err)
	}
	return nil
}

// openLog opens a cluster's log for appending.
func openLog(dir string) (*os.File, error) {
	path := filepath.Join(dir, logFile)
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+previousLog); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}
