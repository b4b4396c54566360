package local

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	machines "hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/redact"
)

// excerptLines is the number of lines of a failed installation's log in its result.
const excerptLines = 50

// Executor creates and destroys local clusters in the background.
type Executor struct {
	installer   *Installer
	dir         string
	onChange    func(types.NamespacedName)
	workContext context.Context // New's context: the work outlives each call
	slots       chan struct{}   // limits how many installations run at once
	jobs        sync.WaitGroup

	mu       sync.Mutex
	installs map[string]*job // by infraID, until they are destroyed
	destroys map[string]*job // by infraID, until their end has been reported
}

var _ install.Executor = (*Executor)(nil)

// Options configures an Executor. The zero value suits a laptop.
type Options struct {
	// Timeout of an installation, from when it starts to run. 0: DefaultTimeout.
	Timeout time.Duration
	// Concurrency is the number of installations that run at once; the others wait. A cluster takes
	// two seconds of processor time to boot. 0: 2.
	Concurrency int
	// OnChange is called when work has ended that the ClusterDeployment's controller waits for. It
	// must not block.
	OnChange func(types.NamespacedName)
	// ContainersObstacle returns why workers cannot run the containers of pods on this computer, and
	// what to do; "" if they can. It may run programs, for some seconds. nil: they cannot.
	ContainersObstacle func() string
}

// New returns an executor that keeps its installations' folders in dir, as dir/<infraID>, and their
// machines in store. It works until ctx ends. The next executor continues interrupted work when it
// is asked for again.
func New(ctx context.Context, store *machines.Store, dir string, o Options) *Executor {
	if o.Concurrency == 0 {
		o.Concurrency = 2
	}
	if o.OnChange == nil {
		o.OnChange = func(types.NamespacedName) {}
	}
	e := &Executor{
		installer:   NewInstaller(store, o.Timeout),
		dir:         dir,
		onChange:    o.OnChange,
		workContext: ctx,
		slots:       make(chan struct{}, o.Concurrency),
		installs:    map[string]*job{},
		destroys:    map[string]*job{},
	}
	if o.ContainersObstacle != nil {
		e.installer.containersObstacle = o.ContainersObstacle
	}
	e.recordOwners()
	return e
}

// recordOwners records the owner of machines that were created before owners were recorded. It
// skips folders that cannot be read: the installation reports the error when it is requested.
func (e *Executor) recordOwners() {
	clusters, err := e.installer.store.ListClusters()
	if err != nil {
		return
	}
	for _, infraID := range clusters {
		f, err := e.installFolder(infraID)
		if err != nil {
			continue
		}
		if md, err := f.readMetadata(); err == nil && md.ownerName() != "" {
			_ = e.installer.store.SetOwner(infraID, md.clusterDeployment()) // retried at the next start
		}
	}
}

// confirmOwner returns fault.Denied if what infraID marks was created for another ClusterDeployment
// than cluster.
func (e *Executor) confirmOwner(f folder, infraID string, cluster types.NamespacedName) error {
	if err := e.installer.store.ConfirmOwner(infraID, cluster); err != nil {
		return err
	}
	md, err := f.readMetadata()
	switch {
	case errors.Is(err, fs.ErrNotExist), fault.KindOf(err) == fault.Denied: // a damaged file contradicts nothing
		return nil
	case err != nil:
		return err
	case md.ownerName() != "" && md.clusterDeployment() != cluster:
		return fault.NewDenied("infraID %s belongs to ClusterDeployment %s, so its resources cannot be changed from %s: "+
			"correct the infraID, or set spec.preserveOnDelete to delete this ClusterDeployment without destroying them", infraID, md.ownerName(), cluster)
	}
	return nil
}

// Wait waits, after New's context has ended, until all work has ended. The store must run until
// then.
func (e *Executor) Wait() { e.jobs.Wait() }

// Prepare validates the install-config and names the cluster.
func (e *Executor) Prepare(_ context.Context, req install.Request) (install.Metadata, error) {
	c, err := parseInstallConfig(req.Config)
	if err != nil {
		return install.Metadata{}, err
	}
	md := newMetadata(c)
	md.Local = localMetadata{Namespace: req.Cluster.Namespace, Name: req.Cluster.Name, OpenShiftVersion: openShiftVersion(req)}
	raw, err := md.encodeJSON()
	if err != nil {
		return install.Metadata{}, err
	}
	return install.Metadata{ClusterID: md.ClusterID, InfraID: md.InfraID, Raw: raw}, nil
}

// Install starts or continues the attempt with that infraID, or returns its progress. The error is
// fault.Capacity, and nothing has been created, while this computer has no room for the cluster.
func (e *Executor) Install(_ context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	f, err := e.installFolder(md.InfraID)
	if err != nil {
		return install.Result{}, err
	}
	if err := e.confirmOwner(f, md.InfraID, req.Cluster); err != nil {
		return install.Result{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.destroys[md.InfraID] != nil {
		return install.Result{}, fault.NewWait(time.Second, "cluster %s is being destroyed", md.InfraID)
	}
	if result, done, err := f.readResult(); done || err != nil {
		return result, err
	}
	j := e.installs[md.InfraID]
	if j == nil {
		return install.Result{Phase: install.Running}, e.startInstall(f, req, md) // the work outlives the call
	}
	if !j.isDone() || e.workContext.Err() != nil {
		return install.Result{Phase: install.Running}, nil
	}
	if fault.KindOf(j.err) == fault.Capacity {
		delete(e.installs, md.InfraID) // the attempt has not been created
		return install.Result{}, j.err
	}
	return failureResult(f, j.err)
}

// startInstall starts an installation. It reserves capacity from now on; otherwise later
// installations would be promised the same capacity. The caller holds e.mu.
func (e *Executor) startInstall(f folder, req install.Request, md install.Metadata) error {
	c, err := parseInstallConfig(req.Config)
	if err != nil {
		return err
	}
	named, err := parseMetadata(md.Raw)
	if err != nil {
		return err
	}
	if named.InfraID != md.InfraID {
		return fault.NewDenied("metadata.json names infraID %q, the cluster's is %q: destroy the attempt", named.InfraID, md.InfraID)
	}
	if named.ownerName() != "" && named.clusterDeployment() != req.Cluster {
		return fault.NewDenied("metadata.json of infraID %s names ClusterDeployment %s, not %s: destroy the attempt", md.InfraID, named.ownerName(), req.Cluster)
	}
	if _, err := e.installer.reserveCapacity(c, named); err != nil {
		return err
	}
	for path, content := range map[string][]byte{f.configPath(): req.Config, f.metadataPath(): md.Raw} {
		if err := pki.WriteFile(path, content); err != nil {
			e.installer.store.ReleaseResources(md.InfraID)
			return err
		}
	}
	e.installs[md.InfraID] = e.startJob(req.Cluster, func(ctx context.Context) error {
		defer e.installer.store.ReleaseResources(md.InfraID)
		select {
		case e.slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-e.slots }()
		return e.installer.CreateCluster(ctx, string(f))
	})
	return nil
}

// failureResult returns the result of a failed installation.
func failureResult(f folder, why error) (install.Result, error) {
	log, err := redact.ReadUnscrubbedTail(f.logPath(), excerptLines)
	if errors.Is(err, fs.ErrNotExist) {
		log, err = why.Error(), nil // it failed before it wrote a log
	}
	return install.Result{Phase: install.Failed, Reason: failureReason(why), Log: redact.Text(log, f.readLogSecrets()...)}, err
}

// Destroy stops the installation with md's infraID, and removes the cluster's machines and the
// installation's folder. It returns the progress.
func (e *Executor) Destroy(_ context.Context, place install.ClusterTarget, md install.Metadata) (install.Result, error) {
	f, err := e.installFolder(md.InfraID)
	if err != nil {
		return install.Result{}, err
	}
	if err := e.confirmOwner(f, md.InfraID, place.Cluster); err != nil {
		return install.Result{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if j := e.destroys[md.InfraID]; j != nil {
		return e.destroyResult(md.InfraID, j), nil
	}
	left, err := e.hasRemainingParts(f, md.InfraID)
	if err != nil {
		return install.Result{}, err
	}
	if !left {
		return install.Result{Phase: install.Succeeded}, nil
	}
	installing := e.installs[md.InfraID]
	delete(e.installs, md.InfraID)
	e.destroys[md.InfraID] = e.startJob(findDeployment(f, md), func(ctx context.Context) error { // the work outlives the call
		if installing != nil {
			installing.cancel()
			<-installing.done
		}
		return e.installer.destroyByInfraID(ctx, md.InfraID, string(f))
	})
	return install.Result{Phase: install.Running}, nil
}

// destroyResult returns the progress of a destruction. After the end has been reported, the next
// call starts another destruction if something is left. The caller holds e.mu.
func (e *Executor) destroyResult(infraID string, j *job) install.Result {
	if !j.isDone() || e.workContext.Err() != nil {
		return install.Result{Phase: install.Running}
	}
	delete(e.destroys, infraID)
	if j.err != nil {
		return install.Result{Phase: install.Failed, Reason: "DestroyFailed", Log: redact.Text(j.err.Error())}
	}
	return install.Result{Phase: install.Succeeded}
}

// hasRemainingParts reports whether anything is left of the cluster. The caller holds e.mu.
func (e *Executor) hasRemainingParts(f folder, infraID string) (bool, error) {
	ms, err := e.installer.store.ObserveCluster(infraID)
	return e.installs[infraID] != nil || len(ms) > 0 || f.existsOnDisk(), err
}

// installFolder returns the folder of the installation with that infraID. It rejects an infraID
// that is not a plain name, because it could point outside e.dir.
func (e *Executor) installFolder(infraID string) (folder, error) {
	if !filepath.IsLocal(infraID) || infraID != filepath.Base(infraID) || infraID == "." {
		return "", fault.NewDenied("infraID %q is not a name", infraID)
	}
	return folder(filepath.Join(e.dir, infraID)), nil
}

// findDeployment returns the ClusterDeployment to notify, as far as it is known.
func findDeployment(f folder, md install.Metadata) types.NamespacedName {
	if named, err := parseMetadata(md.Raw); err == nil {
		return named.clusterDeployment()
	}
	named, err := f.readMetadata()
	if err != nil {
		return types.NamespacedName{}
	}
	return named.clusterDeployment()
}
