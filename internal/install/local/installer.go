// Package local installs clusters of local machines.
//
// Installer has the contract of openshift-install, as functions on a folder: CreateCluster turns an
// install-config.yaml into a cluster, a metadata.json that names it, and auth/; DestroyCluster
// undoes that from metadata.json alone. Executor does the same for the controllers: in the
// background, a few at a time.
//
// An installation can be killed at any point. Its name is on disk before the first machine is
// created, existing machines and secrets are reused, and a file that is written last records that
// everything is done. Restarted in the same folder, it continues; it never creates a second set of
// machines.
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
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

// DefaultTimeout is how long an installation may take.
const DefaultTimeout = 10 * time.Minute

// Installer installs clusters on the machines of a store, which must be running.
type Installer struct {
	store   *machines.Store
	timeout time.Duration
	// containersObstacle returns why workers cannot run containers on this computer, and what to do;
	// "" if they can.
	containersObstacle func() string
}

// noContainers is the obstacle of an installer that was given no function for it.
const noContainers = "containers are turned off"

// NewInstaller returns an installer with a time limit for each installation; 0 selects
// DefaultTimeout.
func NewInstaller(store *machines.Store, timeout time.Duration) *Installer {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	return &Installer{store: store, timeout: timeout, containersObstacle: func() string { return noContainers }}
}

// CreateCluster creates the cluster that dir/install-config.yaml describes and returns when it is
// usable: its API and all nodes are ready, and pods can be created. After an interruption it can be
// called again; after it has finished, it does nothing.
//
// The error is fault.Denied if the install-config is invalid, fault.Capacity while there is no
// room. The log is dir/.openshift_install.log.
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
	pods, err := i.reserveCapacity(c, md)
	if err != nil {
		return err
	}
	defer i.store.ReleaseResources(md.InfraID)
	ms := machineConfigs(c, md, pods)

	out, err := os.OpenFile(f.logPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, i.timeout, fmt.Errorf("not finished within %s: %w", i.timeout, context.DeadlineExceeded))
	defer cancel()
	log := slog.New(slog.NewTextHandler(out, nil))
	err = i.installCluster(ctx, f, ms, log)
	if err != nil {
		i.appendMachineLogs(out, ms[0], err)
		log.Error(err.Error())
	}
	return errors.Join(err, out.Close())
}

// reserveCapacity reserves capacity, unless the machines have been created already and therefore may
// use it. It returns whether the cluster's pods are simulated. The error is fault.Capacity if there is
// no room, or if workers cannot run containers although the install-config requires it.
func (i *Installer) reserveCapacity(c config, md metadata) (simulation, error) {
	ms, err := i.store.ListMachines(md.InfraID)
	if err != nil {
		return simulation{}, err
	}
	if len(ms) > 0 {
		return simulation{simulated: !ms[0].Containers, cause: ms[0].ContainersObstacle}, nil
	}
	pods, err := i.decideSimulation(c)
	if err != nil {
		return simulation{}, fmt.Errorf("creating cluster %s: %w", md.InfraID, err)
	}
	return pods, i.store.ReserveResources(md.InfraID, machines.ClusterSize{Workers: c.workers, Containers: !pods.simulated})
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
	// From now on the cluster does not admit unknown machines.
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

// quotedLogLines is the number of lines of a machine's log that are copied to a failed installation's
// log. Those of two machines, with the error, are fewer than excerptLines.
const quotedLogLines = 20

// appendMachineLogs copies the end of the control plane's log, and then that of the machine because of which the
// installation failed: they often contain the reason.
func (i *Installer) appendMachineLogs(out io.Writer, leader machine.Config, why error) {
	i.appendMachineLog(out, leader.InfraID, leader.Name)
	var failed *machineError
	if errors.As(why, &failed) && failed.machine != leader.Name {
		i.appendMachineLog(out, leader.InfraID, failed.machine)
	}
}

func (i *Installer) appendMachineLog(out io.Writer, infraID, name string) {
	tail, err := redact.ReadUnscrubbedTail(machine.LogPath(i.store.MachineDir(infraID, name)), quotedLogLines)
	if err != nil {
		return // it has not been started
	}
	_, _ = fmt.Fprintf(out, "--- end of the log of %s\n%s---\n", name, tail) // the error that follows matters more
}

// DestroyCluster destroys the cluster that dir/metadata.json names, and removes dir. A missing
// cluster or folder is success. After an interruption it can be called again.
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

// failureReason returns the reason, one word, why an installation failed.
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
