package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	machines "hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/install"
)

// Workers adds workers to the clusters of a store, which must be running, and removes them.
type Workers struct {
	Store *machines.Store
}

var _ install.Workers = Workers{}

// List returns the workers of a cluster.
func (w Workers) List(t install.Target) ([]install.Worker, error) {
	infraID := t.InfraID
	if err := w.Store.ConfirmOwner(infraID, t.Cluster); err != nil {
		return nil, err
	}
	configs, err := w.Store.ListMachines(infraID)
	if err != nil {
		return nil, err
	}
	states, err := w.Store.ObserveCluster(infraID)
	if err != nil {
		return nil, err
	}
	var out []install.Worker
	for _, c := range configs {
		if c.Role != machine.Worker {
			continue
		}
		info, err := os.Stat(machine.ConfigPath(w.Store.MachineDir(infraID, c.Name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed in the meantime
		}
		if err != nil {
			return nil, fmt.Errorf("observing machine %s: %w", c.Name, err)
		}
		worker := install.Worker{
			Name: c.Name, Taints: c.Taints, Created: info.ModTime(), Obstacle: machine.ReadProblem(w.Store.MachineDir(infraID, c.Name)),
		}
		if i := slices.IndexFunc(states, func(m cloud.Machine) bool { return m.Name == c.Name }); i >= 0 && states[i].State == cloud.Failed {
			worker.Problem = states[i].Reason
		}
		out = append(out, worker)
	}
	return out, nil
}

// Add creates a worker, which then joins.
func (w Workers) Add(t install.Target, worker install.Worker) error {
	if err := w.Store.ConfirmOwner(t.InfraID, t.Cluster); err != nil {
		return err
	}
	return w.Store.AddWorker(machine.Config{InfraID: t.InfraID, Name: worker.Name, Taints: worker.Taints}, w.writeJoinFiles)
}

// Remove stops and destroys a worker.
func (w Workers) Remove(ctx context.Context, t install.Target, name string) error {
	if err := w.Store.ConfirmOwner(t.InfraID, t.Cluster); err != nil {
		return err
	}
	return w.Store.RemoveWorker(ctx, t.InfraID, name)
}

// writeJoinFiles writes what a worker needs to join an installed cluster. Such a cluster does not
// admit unknown machines, so the creator of the machine gives it an initial certificate, signed by
// the cluster's CA. Afterwards it is a node like any other.
func (w Workers) writeJoinFiles(c, leader machine.Config, dir string) error {
	keys := machine.PKIPath(w.Store.MachineDir(leader.InfraID, leader.Name))
	ca, err := pki.LoadCA(keys, pki.ClusterCA)
	if err != nil {
		return err
	}
	token, err := pki.ReadBootstrapToken(keys)
	if err != nil {
		return err
	}
	bootstrap, err := pki.BootstrapKubeconfig(pki.Cluster{Name: leader.ClusterName, Server: apiServerURL(leader), CA: ca.CertPEM()}, token)
	if err != nil {
		return err
	}
	if err := pki.WriteFile(machine.BootstrapPath(dir), bootstrap); err != nil {
		return err
	}
	life := c.CertificateDuration.Duration
	if life <= 0 {
		life = defaultCertificateDuration
	}
	pair, err := ca.IssueClientCert(time.Now(), life, "system:node:"+c.Name, "system:nodes")
	if err != nil {
		return err
	}
	return pki.WriteFile(machine.NodeCertificatePath(dir), slices.Concat(pair.Cert, pair.Key))
}
