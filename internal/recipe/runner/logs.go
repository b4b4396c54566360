package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
)

// LogPath returns the path of a cluster's log.
func (f Folder) LogPath(infraID string) (string, error) {
	dir, err := f.clusterDir(infraID)
	return filepath.Join(dir, logFile), err
}

// ReadCompleteLog returns what is kept of a cluster's log: at most about 10 MiB, without secrets. The
// error is fs.ErrNotExist if no program of the cluster has run.
func (f Folder) ReadCompleteLog(infraID string) ([]byte, error) {
	path, err := f.LogPath(infraID)
	if err != nil {
		return nil, err
	}
	current, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	previous, err := os.ReadFile(path + previousLog)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return append(previous, current...), nil
}

// LogFailure adds a line to the log of a cluster, unless no program of the cluster has run.
func (p *Processes) LogFailure(t Task, v recipe.Verb, failure error, retryIn time.Duration) {
	dir, err := p.folder.clusterDir(t.Input.InfraID)
	if err != nil {
		return
	}
	log, err := openLog(dir)
	if err != nil {
		return
	}
	defer log.Close() //nolint:errcheck // the log is an aid
	now := time.Now().UTC()
	_, _ = fmt.Fprintf(log, "== %s %s %s failed, and runs again at %s, or at once when the recipe has changed: %s\n", // as above
		now.Format(time.RFC3339), v, t.Input.InfraID, now.Add(retryIn).Format(time.RFC3339), fault.OneLine(failure))
}

// recordRecipe records of which recipe a program runs, for RunLogs.
func recordRecipe(dir, recipeDir string) error {
	path := filepath.Join(dir, recipeFile)
	if raw, err := os.ReadFile(path); err == nil && string(raw) == recipeDir {
		return nil
	}
	return pki.WriteFile(path, []byte(recipeDir))
}

// RunLogs runs the program logs of a cluster and writes its output to out, without secrets. It returns
// false if the recipe has no such program. Another process may call it while hotspare runs: then the
// error is fault.Conflict while hotspare runs a program of the cluster. The error is fs.ErrNotExist if
// no program of the cluster has run.
func (f Folder) RunLogs(ctx context.Context, infraID string, secrets map[string][]byte, out io.Writer) (bool, error) {
	c, err := f.openCluster(infraID)
	if err != nil || !c.Recipe.Has(recipe.Logs) {
		return false, err
	}
	parent, err := os.ReadFile(filepath.Join(string(f), secretPath))
	if err != nil {
		return true, fmt.Errorf("finding the folder for credentials: %w", err)
	}
	if c.Secrets, err = recipe.WriteSecrets(string(parent), secrets); err != nil {
		return true, fmt.Errorf("writing the credentials of cluster %s: %w", infraID, err)
	}
	c.Log = out
	if _, err = c.Call(ctx, recipe.Logs); c.Secrets != "" {
		err = errors.Join(err, os.RemoveAll(c.Secrets))
	}
	return true, err
}

// openCluster returns a cluster as the last program has seen it.
func (f Folder) openCluster(infraID string) (recipe.Cluster, error) {
	dir, err := f.clusterDir(infraID)
	if err == nil {
		dir, err = filepath.Abs(dir) // programs have another working folder
	}
	if err != nil {
		return recipe.Cluster{}, err
	}
	recipeDir, err := os.ReadFile(filepath.Join(dir, recipeFile))
	if err != nil {
		return recipe.Cluster{}, err
	}
	r, err := recipe.Load(string(recipeDir))
	if err != nil {
		return recipe.Cluster{}, err
	}
	c := recipe.Cluster{Recipe: r, Dir: filepath.Join(dir, stateFolder)}
	raw, err := os.ReadFile(filepath.Join(c.Dir, recipe.InputFile))
	if err != nil {
		return recipe.Cluster{}, err
	}
	if err := json.Unmarshal(raw, &c.Input); err != nil || c.Input.InfraID != infraID {
		return recipe.Cluster{}, fmt.Errorf("reading %s of cluster %s: it is not the input of a program of this cluster (%w)", recipe.InputFile, infraID, err)
	}
	return c, nil
}
