package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
)

// Processes is a Runner that runs the programs as processes of this computer. The state folder of a
// cluster is in its folder of Folder; the log of all programs of a cluster is one file there.
type Processes struct {
	folder  Folder
	secrets secretFolder
	// stopGrace is that of recipe.Run.
	stopGrace time.Duration

	mu sync.Mutex
	// running contains a channel for each cluster of which a program runs. It is closed afterward.
	running map[string]chan struct{}
}

var (
	_ Runner        = (*Processes)(nil)
	_ FailureLogger = (*Processes)(nil)
)

// Options configures Processes. The zero value suits a computer with one hotspare.
type Options struct {
	// StopGrace is the time between SIGTERM and SIGKILL when a program is ended; zero means 10 s.
	StopGrace time.Duration
	// SecretDir is the folder below which credentials are written while a program runs; empty means a
	// file system in memory where there is one, else the Folder.
	SecretDir string
}

// NewProcesses returns a Processes that keeps the state of clusters in folder. It removes credentials
// and folders that an earlier process of hotspare has left.
func NewProcesses(folder Folder, o Options) (*Processes, error) {
	absolute, err := filepath.Abs(string(folder)) // programs have another working folder
	if err != nil {
		return nil, fmt.Errorf("finding the folder of recipes' clusters: %w", err)
	}
	if err := os.MkdirAll(absolute, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of recipes' clusters: %w", err)
	}
	if err := errors.Join(removeTrash(absolute), Folder(absolute).removeOldPrepareLogs()); err != nil {
		return nil, err
	}
	secrets, err := newSecretFolder(absolute, o.SecretDir)
	if err != nil {
		return nil, err
	}
	return &Processes{folder: Folder(absolute), secrets: secrets, stopGrace: o.StopGrace, running: map[string]chan struct{}{}}, nil
}

// removeTrash deletes the folders that an earlier process was deleting. It first kills the programs
// prepare that the process left running.
func removeTrash(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, trashPrefix+"*"))
	if err != nil {
		return fmt.Errorf("finding what an earlier hotspare was deleting: %w", err)
	}
	for _, trash := range left {
		if err := recipe.EndPreviousRun(filepath.Join(trash, stateFolder)); err != nil {
			return err
		}
		if err := os.RemoveAll(trash); err != nil {
			return fmt.Errorf("deleting what an earlier hotspare was deleting: %w", err)
		}
	}
	return nil
}

// Close removes the folder for credentials. No program may run.
func (p *Processes) Close() error { return p.secrets.remove() }

// Prepare runs the program prepare in an empty folder, which it deletes afterward. The log of the last run
// is kept until the cluster has a log of its own.
func (p *Processes) Prepare(ctx context.Context, t Task) (recipe.Prepared, error) {
	if !t.Recipe.Has(recipe.Prepare) {
		return recipe.Cluster{Recipe: t.Recipe, Input: t.Input}.Prepare(ctx)
	}
	dir, err := os.MkdirTemp(string(p.folder), trashPrefix+"prepare-")
	if err != nil {
		return recipe.Prepared{}, fmt.Errorf("preparing cluster %s: %w", t.Input.Name, err)
	}
	var out recipe.Prepared
	err = p.withCluster(ctx, t, dir, func(c recipe.Cluster) error {
		var err error
		out, err = c.Prepare(ctx)
		return err
	})
	p.folder.keepPrepareLog(dir, t.Input.UID)
	return out, errors.Join(err, os.RemoveAll(dir))
}

// Call runs a verb once.
func (p *Processes) Call(ctx context.Context, t Task, v recipe.Verb) (again bool, err error) {
	err = p.withStoredCluster(ctx, t, func(c recipe.Cluster) error {
		var err error
		again, err = c.Call(ctx, v)
		return err
	})
	return again, err
}

// Observe runs the program observe.
func (p *Processes) Observe(ctx context.Context, t Task) (cloud.Machines, error) {
	var ms cloud.Machines
	err := p.withStoredCluster(ctx, t, func(c recipe.Cluster) error {
		var err error
		ms, _, err = c.Observe(ctx)
		return err
	})
	return ms, err
}

// ReadKubeconfig returns the kubeconfig of the cluster.
func (p *Processes) ReadKubeconfig(ctx context.Context, t Task) ([]byte, error) {
	var raw []byte
	err := p.withStoredCluster(ctx, t, func(c recipe.Cluster) error {
		var err error
		if raw, err = c.ReadKubeconfig(ctx); err == nil {
			raw, err = InlineKubeconfig(c, raw)
		}
		return err
	})
	return raw, err
}

func (p *Processes) withStoredCluster(ctx context.Context, t Task, do func(recipe.Cluster) error) error {
	dir, err := p.folder.clusterDir(t.Input.InfraID)
	if err != nil {
		return err
	}
	release, err := p.waitForTurn(ctx, t.Input.InfraID)
	if err != nil {
		return err
	}
	defer release()
	return p.withCluster(ctx, t, dir, func(c recipe.Cluster) error {
		p.folder.movePrepareLog(t.Input.UID, c.Log)
		return do(c)
	})
}

// withCluster calls do with the cluster in dir, whose credentials exist until do returns.
func (p *Processes) withCluster(ctx context.Context, t Task, dir string, do func(recipe.Cluster) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	state := filepath.Join(dir, stateFolder)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("creating the state folder of cluster %s: %w", t.Input.Name, err)
	}
	if err := recordRecipe(dir, t.Recipe.Dir); err != nil {
		return fmt.Errorf("recording the recipe of cluster %s: %w", t.Input.Name, err)
	}
	log, err := openLog(dir)
	if err != nil {
		return fmt.Errorf("opening the log of cluster %s: %w", t.Input.Name, err)
	}
	defer log.Close() //nolint:errcheck // the log is an aid: its loss must not fail the cluster
	secrets, err := recipe.WriteSecrets(string(p.secrets), t.Secrets)
	if err != nil {
		return fmt.Errorf("writing the credentials of cluster %s: %w", t.Input.Name, err)
	}
	err = do(recipe.Cluster{Recipe: t.Recipe, Input: t.Input, Dir: state, Secrets: secrets, Log: log, StopGrace: p.stopGrace})
	if secrets == "" {
		return err
	}
	if cleanup := os.RemoveAll(secrets); cleanup != nil {
		err = errors.Join(err, fmt.Errorf("removing the credentials of cluster %s: %w", t.Input.Name, cleanup))
	}
	return err
}

// waitForTurn waits until no program of the cluster runs in this process. The caller calls release
// when its program has ended. It returns fault.Wait if ctx ends first.
func (p *Processes) waitForTurn(ctx context.Context, infraID string) (release func(), err error) {
	for {
		p.mu.Lock()
		busy := p.running[infraID]
		if busy == nil {
			mine := make(chan struct{})
			p.running[infraID] = mine
			p.mu.Unlock()
			return func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.running, infraID)
				close(mine)
			}, nil
		}
		p.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fault.New(fault.Wait, fmt.Errorf("another program of cluster %s runs: %w", infraID, ctx.Err()))
		}
	}
}
