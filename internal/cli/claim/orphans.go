package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

// runFolder is the private folder of one claim run. The process holds the lock as long as it
// lives. By the lock, the next claim run detects the folder of a killed one.
//
//	lock        held by the claim run
//	claim.json  the claim, or the ClaimSet, and its hub
//	kubeconfig  for the command
type runFolder struct {
	dir  string
	lock *flock.Lock
}

// runFolderPrefix is the prefix of the folders of claim run in the folder for temporary files.
const runFolderPrefix = "hotspare-claim-run-"

// runRecord is the content of claim.json.
type runRecord struct {
	Hub string `json:"hub"`
	// Kind is kindClaimSet, or empty for a claim.
	Kind      string    `json:"kind,omitempty"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

const kindClaimSet = "ClaimSet"

// claimed returns what the record names.
func (r runRecord) claimed() claimed {
	c := claimedOne(&hivev1.ClusterClaim{})
	if r.Kind == kindClaimSet {
		c = claimedSet(&v1alpha1.ClaimSet{})
	}
	c.SetNamespace(r.Namespace)
	c.SetName(r.Name)
	return c
}

func newRunFolder(record runRecord) (*runFolder, error) {
	dir, err := os.MkdirTemp("", runFolderPrefix) // its mode is 0700
	if err != nil {
		return nil, fmt.Errorf("making a private folder: %w", err)
	}
	f := &runFolder{dir: dir}
	raw, err := json.Marshal(record)
	if err == nil {
		f.lock, err = flock.Acquire(filepath.Join(dir, "lock"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "claim.json"), raw, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a private folder: %w", err), os.RemoveAll(dir))
	}
	return f, nil
}

func (f *runFolder) removeAndUnlock() error {
	return errors.Join(os.RemoveAll(f.dir), f.lock.Release())
}

// cleanUpKilledRuns removes the kubeconfigs of this user's killed claim runs, and releases their
// claims on this hub. The next claim run retries a failed cleanup; the claim's lifetime is the last
// resort.
func (a commands) cleanUpKilledRuns(ctx context.Context, h *base.Hub) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), runFolderPrefix+"*"))
	if err != nil {
		return // the pattern is well formed
	}
	for _, dir := range dirs {
		if err := a.cleanUpKilledRun(ctx, h, dir); err != nil {
			fmt.Fprintf(a.Stderr, "warning: removing %s of a killed claim run failed: %v\n", dir, err)
		}
	}
}

// isPrivateFolder reports whether a folder belongs to this user and only this user can write it.
func isPrivateFolder(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm() == 0o700
}

func (a commands) cleanUpKilledRun(ctx context.Context, h *base.Hub, dir string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !isPrivateFolder(info) {
		return nil // already deleted, or of another user
	}
	raw, err := os.ReadFile(filepath.Join(dir, "claim.json"))
	if err != nil {
		return nil // the claim run is still creating it
	}
	lock, err := flock.Acquire(filepath.Join(dir, "lock"))
	var held *flock.LockedError
	if errors.As(err, &held) {
		return nil // the claim run is alive
	}
	if err != nil {
		return err
	}
	defer lock.Release() //nolint:errcheck // its file is deleted below
	var record runRecord
	if err := json.Unmarshal(raw, &record); err == nil && record.Hub == h.URL {
		c := record.claimed()
		err := h.Delete(ctx, c.Object, client.Preconditions{UID: &record.UID})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("releasing %s %s: %w", c.noun, record.Name, h.ExplainAPIError(err))
		}
		if err == nil {
			fmt.Fprintf(a.Stderr, "released %s %s of a killed claim run\n", c.noun, record.Name)
		}
	}
	return os.RemoveAll(dir)
}
