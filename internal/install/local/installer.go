// Package local installs clusters of local machines.
//
// Installer has the contract of openshift-install, as functions on a folder:
// CreateCluster makes of an install-config.yaml a cluster, a metadata.json that
// names it, and auth/; DestroyCluster undoes that from metadata.json alone.
// Executor does the same for the controllers: in the background, a few at a time.
//
// An installation can be killed anywhere. Its name is on disk before the first
// machine is made, machines and secrets that are there are used, and a file that
// is written last says that all is done. Begun again in the same folder it goes
// on; it never makes a second set of machines.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	machines "hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install/scrub"
	"hotspare.io/hotspare/internal/machine"
	"hotspare.io/hotspare/internal/pki"
)

// DefaultTimeout is how long an installation may take.
const DefaultTimeout = 10 * time.Minute

// Installer installs clusters on the machines of a store, which must be running.
type Installer struct {
	store   *machines.Store
	timeout time.Duration
}

// NewInstaller returns an installer that gives an installation so much time; 0
// stands for DefaultTimeout.
func NewInstaller(store *machines.Store, timeout time.Duration) *Installer {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	return &Installer{store: store, timeout: timeout}
}

// CreateCluster makes the cluster that dir/install-config.yaml describes and
// returns when it can be used: its API is ready, so are all nodes, and pods can
// be created. If it was interrupted it can be called again; if it had finished,
// it does nothing.
//
// The error is fault.Denied if the install-config is invalid, fault.Capacity
// while there is no room. The log is dir/.openshift_install.log.
func (i *Installer) CreateCluster(ctx context.Context, dir string) error {
	f := folder(dir)
	if _, done, err := f.readResult(); done || err != nil {
		return err
	}
	c, err := f.readConfig()
	if err != nil {
		return err
	}
	md, err := f.ensureMetadata(c)
	if err != nil {
		return err
	}
	if err := i.reserveCapacity(c, md); err != nil {
		return err
	}
	defer i.store.ReleaseResources(md.InfraID)

	out, err := os.OpenFile(f.logPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, i.timeout, fmt.Errorf("not done after %s: %w", i.timeout, context.DeadlineExceeded))
	defer cancel()
	log := slog.New(slog.NewTextHandler(out, nil))
	err = i.installCluster(ctx, f, machineConfigs(c, md), log)
	if err != nil {
		i.appendMachineLog(out, machineConfigs(c, md)[0])
		log.Error(err.Error())
	}
	return errors.Join(err, out.Close())
}

// reserveCapacity keeps room, unless the machines have been made already: then they may
// use it.
func (i *Installer) reserveCapacity(c config, md metadata) error {
	ms, err := i.store.ListMachines(md.InfraID)
	if err != nil || len(ms) > 0 {
		return err
	}
	return i.store.ReserveResources(md.InfraID, c.workers)
}

// installCluster does all the work.
func (i *Installer) installCluster(ctx context.Context, f folder, ms []machine.Config, log *slog.Logger) error {
	log.Info("creating machines", "infraID", ms[0].InfraID, "machines", len(ms))
	ms, err := i.createMachines(ms)
	if err != nil {
		return err
	}
	if err := i.writeMachineFiles(f, ms); err != nil {
		return err
	}
	log.Info("starting machines", "api", apiServerURL(ms[0]))
	if err := i.store.StartCluster(ms[0].InfraID); err != nil {
		return err
	}
	kubernetes, err := i.waitUntilUsable(ctx, f, ms, log)
	if err != nil {
		return err
	}
	// From now on the cluster does not let strangers in.
	if err := pki.WriteFile(machine.InstalledPath(i.store.MachineDir(ms[0].InfraID, ms[0].Name)), nil); err != nil {
		return err
	}
	log.Info("install complete", "kubernetes", kubernetes)
	version := ms[0].OpenShiftVersion
	if version == "" {
		version = kubernetes
	}
	return f.writeCompletion(completion{APIURL: apiServerURL(ms[0]), Version: version})
}

// quotedLogLines is how many lines of the control plane's log an installation's log gets
// when it has failed.
const quotedLogLines = 20

// appendMachineLog copies the end of the control plane's log: it often has the reason.
func (i *Installer) appendMachineLog(out io.Writer, leader machine.Config) {
	tail, err := scrub.ReadTail(machine.LogPath(i.store.MachineDir(leader.InfraID, leader.Name)), quotedLogLines)
	if err != nil {
		return // it has not been started
	}
	_, _ = fmt.Fprintf(out, "--- end of the log of %s\n%s---\n", leader.Name, tail) // the error that follows matters more
}

// DestroyCluster destroys the cluster that dir/metadata.json names, and removes
// dir. That there is no cluster, or no folder, is success. It can be called
// again if it was interrupted.
func (i *Installer) DestroyCluster(ctx context.Context, dir string) error {
	md, err := folder(dir).readMetadata()
	if errors.Is(err, fs.ErrNotExist) {
		return i.removeInstallFolder(dir)
	}
	if err != nil {
		return err
	}
	return i.destroyByInfraID(ctx, md.InfraID, dir)
}

// destroyByInfraID destroys the cluster with that infraID, then removes dir.
func (i *Installer) destroyByInfraID(ctx context.Context, infraID, dir string) error {
	if err := i.store.DestroyCluster(ctx, infraID); err != nil {
		return err
	}
	return i.removeInstallFolder(dir)
}

func (i *Installer) removeInstallFolder(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the installation's folder: %w", err)
	}
	return nil
}

// failureReason is one word for why an installation failed.
func failureReason(err error) string {
	taken := (*machines.PortError)(nil)
	switch {
	case errors.As(err, &taken):
		return "APIPortTaken"
	case errors.Is(err, context.DeadlineExceeded):
		return "InstallTimeout"
	case errors.Is(err, errMachine):
		return "MachineFailed"
	case fault.KindOf(err) == fault.Denied:
		return "InvalidInstallConfig"
	default:
		return "InstallFailed"
	}
}
