// Package local implements a cloud of processes: a store of machines on this computer.
//
// The store is managed like a cloud: machines are created, listed, started, stopped and destroyed,
// selected by the infraID of their cluster, without any Kubernetes object. Power makes the store a
// platform for hotspare; the installer (internal/install/local) fills the machines' disks.
//
//	DIR/<infraID>/<machine>/        a machine: see package machine
//	DIR/<infraID>/<machine>/on      exists while the machine should run
//	DIR/<infraID>/<machine>/freeze  exists if the machine should be frozen while it should not run
//
// The desired state of a machine is written to disk before it is carried out. Everything else is
// observed. Therefore a store that is opened again, even after a kill -9, brings each machine to
// its desired state: it ends processes left over from the earlier run, then starts the machines
// that should run.
//
// StartCluster and StopCluster request changes and return at once. Run carries them out: it starts
// and ends the processes. A process ends when its standard input ends, so machines cannot outlive
// the program that started them, however that program ends. This is also true of a machine that is frozen: it is
// stopped, and the store reports that.
//
// A machine whose process exits on its own is Stopped, like a VM that crashed. It stays Stopped
// until the machine or the store is started again: a restart of the store is like a power failure,
// after which every machine that should run starts. A machine that cannot be started is Failed and
// reports the reason.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/sys/mountinfo"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/local/apiaddress"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/fault"
)

// Store owns the machines below one folder. Only one program at a time may Run a store on that
// folder. Its methods are safe for concurrent use.
type Store struct {
	dir     string
	command []string
	options

	wake chan struct{} // capacity 1: wakes Run

	mu               sync.Mutex
	procs            map[string]*process   // by machine folder
	lastExits        map[string]exitResult // by machine folder: how its last process ended on its own
	freezeObstacles  map[string]string     // by machine folder: why it was stopped and not frozen
	reserved         map[string]need       // by infraID
	addresses        map[string]*address   // by infraID: the addresses of APIs that are open here
	changed          chan struct{}         // closed and replaced when a process has started, changed or ended
	changes          chan string           // infraIDs, see cloud.ChangeNotifier
	dirty            map[string]struct{}   // infraIDs that Run must reconcile
	runningProcesses sync.WaitGroup        // counts one per process
}

// Option configures a Store.
type Option func(*options)

type options struct {
	grace         time.Duration
	freezeTimeout time.Duration
	measure       func(dir string) (Resources, error)
	held          *apiaddress.Budget
	// removeCgroups is machine.RemoveCgroups, except in tests.
	removeCgroups func(machine string) error
	// listMounts is mountinfo.GetMounts, except in tests.
	listMounts func(mountinfo.FilterFunc) ([]*mountinfo.Info, error)
	// clock is the clock of the wait for cgroups.
	clock clock.Clock
}

// WithGrace sets how long a machine may take to stop before it is killed. The default is 15
// seconds.
func WithGrace(d time.Duration) Option { return func(o *options) { o.grace = d } }

// WithHeldConnections sets how many connections to sleeping clusters the store holds or passes at the same time, which
// need two open files each. The default is 1000.
func WithHeldConnections(n int) Option {
	return func(o *options) { o.held = apiaddress.NewBudget(n) }
}

// WithResources sets the function that measures the available resources of this computer. The
// default is MeasureResources.
func WithResources(measure func(dir string) (Resources, error)) Option {
	return func(o *options) { o.measure = measure }
}

// Open opens the store in dir and creates dir if needed. The store starts a machine by running
// command with the arguments: machine run --dir DIR. It starts nothing before Run.
func Open(dir string, command []string, opts ...Option) (*Store, error) {
	if len(command) == 0 {
		return nil, errors.New("opening machine store: there is no command that starts machines")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening machine store: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening machine store: %w", err)
	}
	s := &Store{
		dir:     dir,
		command: command,
		options: options{
			grace: 15 * time.Second, freezeTimeout: defaultFreezeTimeout, measure: MeasureResources, held: apiaddress.NewBudget(1000),
			removeCgroups: machine.RemoveCgroups, listMounts: mountinfo.GetMounts, clock: clock.RealClock{},
		},
		wake:      make(chan struct{}, 1),
		procs:     map[string]*process{},
		lastExits: map[string]exitResult{},
		reserved:  map[string]need{},
		addresses: map[string]*address{},
		changed:   make(chan struct{}),
		changes:   make(chan string, 100),
		dirty:     map[string]struct{}{},

		freezeObstacles: map[string]string{},
	}
	for _, o := range opts {
		o(&s.options)
	}
	return s, nil
}

// MachineDir returns the folder of a machine, whether or not the machine exists.
func (s *Store) MachineDir(infraID, name string) string { return filepath.Join(s.dir, infraID, name) }

// ListClusters returns the infraIDs of all clusters, sorted.
func (s *Store) ListClusters() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// ListMachines returns the machines of a cluster, as they were created, sorted by name. If there is
// none, it returns an empty list and no error.
func (s *Store) ListMachines(infraID string) ([]machine.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return nil, err
	}
	var list []machine.Config
	for _, m := range ms {
		if !m.gone {
			list = append(list, m.Config)
		}
	}
	return list, nil
}

// ObserveCluster returns the machines of a cluster with their states, sorted by name. If there is
// none, it returns an empty list and no error.
func (s *Store) ObserveCluster(infraID string) (cloud.Machines, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return nil, err
	}
	var out cloud.Machines
	for _, m := range ms {
		out = append(out, m.toCloudMachine())
		if m.gone {
			s.enqueueCluster(infraID) // no event reported this
		}
	}
	out.SortByName()
	return out, nil
}

// StartCluster records that the machines of a cluster should run and returns. Run starts the
// control plane before the workers. It also retries a machine that could not be started or that
// exited on its own. The error is fault.Capacity if the computer does not have enough memory for
// the machines that are not running; then nothing is started.
func (s *Store) StartCluster(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	if err := s.checkCapacity(infraID, neededToStart(ms)); err != nil {
		return err
	}
	return s.switchMachines(ms, switchOn)
}

// FreezeCluster records that the machines of a cluster should be frozen and returns. Run freezes the workers before
// the control plane. A machine that is not switched on is left alone; one that cannot be frozen, for
// example because it is starting, is stopped. A frozen machine uses no processor, and all of its memory: the
// error contains cloud.DepthRefusedErrors while this computer has little.
func (s *Store) FreezeCluster(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	on, err := s.observeMachinesOn(infraID)
	if err != nil {
		return err
	}
	if err := s.checkMemoryToFreeze(on); err != nil {
		return err
	}
	err = s.switchMachines(on, switchToFrozen)
	for _, m := range on {
		switch m.phase {
		case phaseAbsent, phaseStarting, phaseStopping:
			s.freezeObstacles[m.dir] = "it was not running, and only a machine that runs can be frozen"
		}
	}
	return err
}

// StopRunningMachines records that the machines of a cluster that are not frozen should stop, as StopCluster does.
func (s *Store) StopRunningMachines(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	on, err := s.observeMachinesOn(infraID)
	if err != nil {
		return err
	}
	return s.switchMachines(on, switchOff)
}

// observeMachinesOn returns the machines of a cluster that are switched on. The caller must hold s.mu.
func (s *Store) observeMachinesOn(infraID string) ([]observedMachine, error) {
	ms, err := s.observeMachines(infraID)
	return slices.DeleteFunc(ms, func(m observedMachine) bool { return !m.wanted }), err
}

// StopCluster records that the machines of a cluster should stop and returns. Run stops the workers
// before the control plane, and kills a machine that takes too long.
func (s *Store) StopCluster(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	return s.switchMachines(ms, switchOff)
}

// switchMachines calls set to record the desired state of each machine and enqueues the work for
// Run. A machine whose state cannot be recorded does not block the others.
func (s *Store) switchMachines(ms []observedMachine, set func(dir string) error) error {
	var errs []error
	for _, m := range ms {
		if m.gone {
			continue
		}
		if err := set(m.dir); err != nil {
			errs = append(errs, fmt.Errorf("setting the power state of machine %s: %w", m.Name, err))
			continue
		}
		delete(s.lastExits, m.dir)
		delete(s.freezeObstacles, m.dir)
		s.enqueueCluster(m.InfraID)
	}
	return errors.Join(errs...)
}

// observeMachines reads the machines of a cluster, sorted by name. A machine whose folder was
// removed is included as long as its process exists. The caller must hold s.mu.
func (s *Store) observeMachines(infraID string) ([]observedMachine, error) {
	if err := checkDNSLabel("infraID", infraID); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, infraID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing machines of %s: %w", infraID, err)
	}
	var ms []observedMachine
	for _, e := range entries {
		if m, ok := s.observeMachine(infraID, e.Name()); ok {
			ms = append(ms, m)
		}
	}
	return append(ms, s.orphanProcesses(infraID, ms)...), nil
}

// observeMachine reads one machine. It returns false for a folder without a machine.json.
func (s *Store) observeMachine(infraID, name string) (observedMachine, bool) {
	dir := s.MachineDir(infraID, name)
	config, err := machine.LoadConfig(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return observedMachine{}, false
	}
	m := observedMachine{Config: config, dir: dir, wanted: isSwitchedOn(dir), freeze: isFreezeWanted(dir), lastExit: s.lastExits[dir]}
	m.freezeObstacle = s.freezeObstacles[dir]
	if err != nil {
		m.Config = machine.Config{Name: name, InfraID: infraID}
		m.lastExit = exitResult{state: cloud.Failed, reason: err.Error()}
	}
	if p := s.procs[dir]; p != nil {
		m.phase = p.phase
	}
	return m, true
}

// orphanProcesses returns the processes whose machine is not in ms any more.
func (s *Store) orphanProcesses(infraID string, ms []observedMachine) []observedMachine {
	var out []observedMachine
	for dir, p := range s.procs {
		if p.InfraID == infraID && !containsMachine(ms, dir) {
			out = append(out, observedMachine{Config: p.Config, dir: dir, phase: p.phase, gone: true})
		}
	}
	return out
}

// broadcastChange wakes all goroutines that wait for a change. The caller must hold s.mu.
func (s *Store) broadcastChange() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// notifyRunStateChange notifies the receiver of the changes channel that a machine has started or
// stopped running.
func (s *Store) notifyRunStateChange(infraID string) {
	select {
	case s.changes <- infraID:
	default: // the receiver also polls
	}
}

// enqueueCluster makes Run reconcile a cluster. The caller must hold s.mu.
func (s *Store) enqueueCluster(infraID string) {
	s.dirty[infraID] = struct{}{}
	select {
	case s.wake <- struct{}{}:
	default: // Run is going to wake anyway
	}
}

// checkDNSLabel rejects names that are not DNS labels, so that a name from a metadata.json cannot
// leave the store's folder.
func checkDNSLabel(what, name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fault.NewDenied("%s %q: %s", what, name, strings.Join(msgs, ", "))
	}
	return nil
}

// toCloudMachine returns m as a cloud would report it.
func (m observedMachine) toCloudMachine() cloud.Machine {
	state, reason := m.cloudState()
	out := cloud.Machine{
		Name: m.Name, ControlPlane: m.Role == machine.ControlPlane, State: state, Reason: reason,
		Node: m.Name, Addresses: m.NodeAddresses(), DepthObstacle: m.depthObstacle(),
	}
	if m.isFrozen() {
		out.Depth = cloud.DepthFreeze
	}
	return out
}

// interruptedError returns an error that says that ctx ended during the operation.
func interruptedError(ctx context.Context, doing, name string) error {
	return fmt.Errorf("%s %s: %w", doing, name, context.Cause(ctx))
}
