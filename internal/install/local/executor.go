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
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/scrub"
	"hotspare.io/hotspare/internal/pki"
)

// excerpt is how many lines of a failed installation's log its result has.
const excerpt = 50

// Executor makes and destroys local clusters in the background.
type Executor struct {
	installer *Installer
	dir       string
	onChange  func(types.NamespacedName)
	work      context.Context // that of New: the work is nobody's call
	slots     chan struct{}   // a place each for installations that may run at once
	jobs      sync.WaitGroup

	mu       sync.Mutex
	installs map[string]*job // by infraID, until they are destroyed
	destroys map[string]*job // by infraID, until their end has been told
}

var _ install.Executor = (*Executor)(nil)

// Options say how an Executor works. The zero value is good for a laptop.
type Options struct {
	// Timeout of an installation, from when it begins to run. 0: DefaultTimeout.
	Timeout time.Duration
	// Concurrency is how many installations run at once; the others wait. A
	// cluster takes two seconds of a processor to boot. 0: 2.
	Concurrency int
	// OnChange is called when something has come to an end that the
	// ClusterDeployment's controller waits for. It must not block.
	OnChange func(types.NamespacedName)
}

// New returns an executor that keeps its installations' folders in dir, as
// dir/<infraID>, and their machines in store. It works until ctx ends; what it
// was doing then is continued by the next one when it is asked for again.
func New(ctx context.Context, store *machines.Store, dir string, o Options) *Executor {
	if o.Concurrency == 0 {
		o.Concurrency = 2
	}
	if o.OnChange == nil {
		o.OnChange = func(types.NamespacedName) {}
	}
	e := &Executor{
		installer: NewInstaller(store, o.Timeout),
		dir:       dir,
		onChange:  o.OnChange,
		work:      ctx,
		slots:     make(chan struct{}, o.Concurrency),
		installs:  map[string]*job{},
		destroys:  map[string]*job{},
	}
	e.recordOwners()
	return e
}

// recordOwners records the owner of machines that were made before owners were. What
// cannot be read is left as it is: the installation says so when it is asked for.
func (e *Executor) recordOwners() {
	clusters, err := e.installer.store.Clusters()
	if err != nil {
		return
	}
	for _, infraID := range clusters {
		f, err := e.folder(infraID)
		if err != nil {
			continue
		}
		if md, err := f.readMetadata(); err == nil && md.owner() != "" {
			_ = e.installer.store.SetOwner(infraID, md.deployment()) // tried again at the next start
		}
	}
}

// confirmOwner returns a fault.Denied if what infraID marks was made for another
// ClusterDeployment than cluster.
func (e *Executor) confirmOwner(f folder, infraID string, cluster types.NamespacedName) error {
	if err := e.installer.store.ConfirmOwner(infraID, cluster); err != nil {
		return err
	}
	md, err := f.readMetadata()
	switch {
	case errors.Is(err, fs.ErrNotExist), fault.Of(err) == fault.Denied: // a damaged file contradicts nothing
		return nil
	case err != nil:
		return err
	case md.owner() != "" && md.deployment() != cluster:
		return fault.Denying("infraID %s is that of ClusterDeployment %s, so hotspare touches nothing that it marks from %s: "+
			"correct the infraID, or set spec.preserveOnDelete to let this ClusterDeployment go without", infraID, md.owner(), cluster)
	}
	return nil
}

// Wait waits, after the end of New's context, until nothing is done any more.
// The store must run until then.
func (e *Executor) Wait() { e.jobs.Wait() }

// Prepare validates the install-config and names the cluster.
func (e *Executor) Prepare(_ context.Context, req install.Request) (install.Metadata, error) {
	c, err := parse(req.Config)
	if err != nil {
		return install.Metadata{}, err
	}
	md := newMetadata(c)
	md.Local = localMetadata{Namespace: req.Cluster.Namespace, Name: req.Cluster.Name, OpenShiftVersion: openShiftVersion(req)}
	raw, err := md.encode()
	if err != nil {
		return install.Metadata{}, err
	}
	return install.Metadata{ClusterID: md.ClusterID, InfraID: md.InfraID, Raw: raw}, nil
}

// Install begins or continues the attempt with that infraID, or tells how far it
// is. The error is fault.Capacity, and nothing has been made, while this computer
// has no room for the cluster.
func (e *Executor) Install(_ context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	f, err := e.folder(md.InfraID)
	if err != nil {
		return install.Result{}, err
	}
	if err := e.confirmOwner(f, md.InfraID, req.Cluster); err != nil {
		return install.Result{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.destroys[md.InfraID] != nil {
		return install.Result{}, fault.Waiting(time.Second, "cluster %s is being destroyed", md.InfraID)
	}
	if result, done, err := f.result(); done || err != nil {
		return result, err
	}
	j := e.installs[md.InfraID]
	if j == nil {
		return install.Result{Phase: install.Running}, e.begin(f, req, md) //nolint:contextcheck // the work outlives the call
	}
	if !j.over() || e.work.Err() != nil {
		return install.Result{Phase: install.Running}, nil
	}
	if fault.Of(j.err) == fault.Capacity {
		delete(e.installs, md.InfraID) // the attempt has not been made
		return install.Result{}, j.err
	}
	return failure(f, j.err)
}

// begin starts an installation. Room is kept for it from now on, or the next ones
// would be promised the same. e.mu is held.
func (e *Executor) begin(f folder, req install.Request, md install.Metadata) error {
	c, err := parse(req.Config)
	if err != nil {
		return err
	}
	named, err := parseMetadata(md.Raw)
	if err != nil {
		return err
	}
	if named.InfraID != md.InfraID {
		return fault.Denying("metadata.json names infraID %q, the cluster's is %q: destroy the attempt", named.InfraID, md.InfraID)
	}
	if named.owner() != "" && named.deployment() != req.Cluster {
		return fault.Denying("metadata.json of infraID %s names ClusterDeployment %s, not %s: destroy the attempt", md.InfraID, named.owner(), req.Cluster)
	}
	if err := e.installer.reserve(c, named); err != nil {
		return err
	}
	for path, content := range map[string][]byte{f.config(): req.Config, f.metadata(): md.Raw} {
		if err := pki.WriteFile(path, content); err != nil {
			e.installer.store.Release(md.InfraID)
			return err
		}
	}
	e.installs[md.InfraID] = e.start(req.Cluster, func(ctx context.Context) error {
		defer e.installer.store.Release(md.InfraID)
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

// failure is the result of an installation that has failed.
func failure(f folder, why error) (install.Result, error) {
	log, err := scrub.Tail(f.log(), excerpt)
	if errors.Is(err, fs.ErrNotExist) {
		log, err = why.Error(), nil // it did not come so far
	}
	return install.Result{Phase: install.Failed, Reason: reason(why), Log: scrub.Text(log, f.secrets()...)}, err
}

// Destroy ends the installation with md's infraID, removes the cluster's machines
// and the installation's folder, or tells how far that is.
func (e *Executor) Destroy(_ context.Context, place install.Place, md install.Metadata) (install.Result, error) {
	f, err := e.folder(md.InfraID)
	if err != nil {
		return install.Result{}, err
	}
	if err := e.confirmOwner(f, md.InfraID, place.Cluster); err != nil {
		return install.Result{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if j := e.destroys[md.InfraID]; j != nil {
		return e.destroyed(md.InfraID, j), nil
	}
	left, err := e.left(f, md.InfraID)
	if err != nil {
		return install.Result{}, err
	}
	if !left {
		return install.Result{Phase: install.Succeeded}, nil
	}
	installing := e.installs[md.InfraID]
	delete(e.installs, md.InfraID)
	e.destroys[md.InfraID] = e.start(deploymentOf(f, md), func(ctx context.Context) error { //nolint:contextcheck // the work outlives the call
		if installing != nil {
			installing.cancel()
			<-installing.done
		}
		return e.installer.destroy(ctx, md.InfraID, string(f))
	})
	return install.Result{Phase: install.Running}, nil
}

// destroyed tells how far a destruction is. Once its end has been told, the next
// call begins another one if something is left. e.mu is held.
func (e *Executor) destroyed(infraID string, j *job) install.Result {
	if !j.over() || e.work.Err() != nil {
		return install.Result{Phase: install.Running}
	}
	delete(e.destroys, infraID)
	if j.err != nil {
		return install.Result{Phase: install.Failed, Reason: "DestroyFailed", Log: scrub.Text(j.err.Error())}
	}
	return install.Result{Phase: install.Succeeded}
}

// left reports whether anything is left of the cluster. e.mu is held.
func (e *Executor) left(f folder, infraID string) (bool, error) {
	ms, err := e.installer.store.Observe(infraID)
	return e.installs[infraID] != nil || len(ms) > 0 || f.there(), err
}

// folder returns the folder of the installation with that infraID. One that is
// not a name would lead out of e.dir.
func (e *Executor) folder(infraID string) (folder, error) {
	if !filepath.IsLocal(infraID) || infraID != filepath.Base(infraID) || infraID == "." {
		return "", fault.Denying("infraID %q is not a name", infraID)
	}
	return folder(filepath.Join(e.dir, infraID)), nil
}

// deploymentOf returns the ClusterDeployment to notify, as far as it is known.
func deploymentOf(f folder, md install.Metadata) types.NamespacedName {
	if named, err := parseMetadata(md.Raw); err == nil {
		return named.deployment()
	}
	named, err := f.readMetadata()
	if err != nil {
		return types.NamespacedName{}
	}
	return named.deployment()
}
