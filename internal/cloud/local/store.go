// Package local is a cloud of processes: a store of machines on this computer.
//
// The store is managed the way a cloud is: machines are created, listed,
// started, stopped and destroyed, selected by the infraID of their cluster, and
// no Kubernetes object is needed for that. Power makes it a platform for
// hotspare; the installer (internal/install/local) fills the machines' disks.
//
//	DIR/<infraID>/<machine>/        a machine: see package machine
//	DIR/<infraID>/<machine>/on      is there while the machine is wanted to run
//
// What a machine should do is on disk before it is done. Everything else is
// observed. So a store that is opened again, after a kill -9 too, brings each
// machine to where it should be: those wanted to run are started, processes left
// over from before are ended first.
//
// Changes are asked for by Start and Stop, which return at once, and made by
// Run, which starts and ends the processes. A process ends when its standard
// input does: machines cannot outlive the program that holds them, however that
// one ends.
//
// A machine whose process ends by itself is Stopped, as a VM that crashed is, and
// stays so until it is started, or until the store is: a restart is a power cut,
// after which everything that was wanted comes back. One that cannot be started
// is Failed, and tells why.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/machine"
)

// Store owns the machines below one folder. Only one program at a time may Run
// a store on it. Its methods may be called by several goroutines at once.
type Store struct {
	dir     string
	command []string
	options

	wake chan struct{} // has room for one: Run looks again

	mu               sync.Mutex
	procs            map[string]*process   // by machine folder
	lastExits        map[string]exitResult // by machine folder: how its last process ended by itself
	reserved         map[string]need       // by infraID
	changed          chan struct{}         // closed, and replaced, when a process has begun, changed or ended
	changes          chan string           // infraIDs, see cloud.Teller
	dirty            map[string]struct{}   // infraIDs that Run has to look at
	runningProcesses sync.WaitGroup        // a process each
}

// Option changes how a store works.
type Option func(*options)

type options struct {
	grace   time.Duration
	measure func(dir string) (Resources, error)
}

// WithGrace sets how long a machine may take to stop before it is killed. The
// default is 15 seconds.
func WithGrace(d time.Duration) Option { return func(o *options) { o.grace = d } }

// WithResources sets where the store learns what this computer has left. The
// default is Measure.
func WithResources(measure func(dir string) (Resources, error)) Option {
	return func(o *options) { o.measure = measure }
}

// Open opens the store in dir, which it makes if needed. A machine is started
// as command with the arguments: machine run --dir DIR. Nothing is started
// before Run.
func Open(dir string, command []string, opts ...Option) (*Store, error) {
	if len(command) == 0 {
		return nil, errors.New("opening machine store: no command to start machines with")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening machine store: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening machine store: %w", err)
	}
	s := &Store{
		dir:       dir,
		command:   command,
		options:   options{grace: 15 * time.Second, measure: MeasureResources},
		wake:      make(chan struct{}, 1),
		procs:     map[string]*process{},
		lastExits: map[string]exitResult{},
		reserved:  map[string]need{},
		changed:   make(chan struct{}),
		changes:   make(chan string, 100),
		dirty:     map[string]struct{}{},
	}
	for _, o := range opts {
		o(&s.options)
	}
	return s, nil
}

// MachineDir returns the folder of a machine, whether or not there is such a machine.
func (s *Store) MachineDir(infraID, name string) string { return filepath.Join(s.dir, infraID, name) }

// ListClusters returns the infraIDs of all machines, sorted.
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

// ListMachines returns the machines of a cluster, as they were created, sorted by name.
// None is an empty list and no error.
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

// ObserveCluster returns the machines of a cluster with their states, sorted by name.
// None is an empty list and no error.
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
			s.enqueueCluster(infraID) // nobody told us
		}
	}
	out.SortByName()
	return out, nil
}

// StartCluster wants the machines of a cluster to run and returns. Run starts the
// control plane before the workers. One that could not be started, or ended by
// itself, is tried again. The error is fault.Capacity if the computer has not
// enough memory left for those that do not run; then nothing is started.
func (s *Store) StartCluster(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	if err := s.checkCapacity(infraID, needOfStopped(ms)); err != nil {
		return err
	}
	return s.switchMachines(ms, switchOn)
}

// StopCluster wants the machines of a cluster to stop and returns. Run stops the
// workers before the control plane, and kills what takes too long.
func (s *Store) StopCluster(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	return s.switchMachines(ms, switchOff)
}

// switchMachines records by set what the machines should do and lets Run do it. One that
// cannot be recorded does not stop the others.
func (s *Store) switchMachines(ms []observedMachine, set func(dir string) error) error {
	var errs []error
	for _, m := range ms {
		if m.gone {
			continue
		}
		if err := set(m.dir); err != nil {
			errs = append(errs, fmt.Errorf("switching machine %s: %w", m.Name, err))
			continue
		}
		delete(s.lastExits, m.dir)
		s.enqueueCluster(m.InfraID)
	}
	return errors.Join(errs...)
}

// observeMachines reads the machines of a cluster, sorted by name. A machine whose folder
// has been removed is seen for as long as its process lives. s.mu is held.
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

// observeMachine sees one machine. A folder that has lost its machine.json is none.
func (s *Store) observeMachine(infraID, name string) (observedMachine, bool) {
	dir := s.MachineDir(infraID, name)
	config, err := machine.LoadConfig(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return observedMachine{}, false
	}
	m := observedMachine{Config: config, dir: dir, wanted: isSwitchedOn(dir), lastExit: s.lastExits[dir]}
	if err != nil {
		m.Config = machine.Config{Name: name, InfraID: infraID}
		m.lastExit = exitResult{state: cloud.Failed, reason: err.Error()}
	}
	if p := s.procs[dir]; p != nil {
		m.phase = p.phase
	}
	return m, true
}

// orphanProcesses sees the processes whose machine is not among ms any more.
func (s *Store) orphanProcesses(infraID string, ms []observedMachine) []observedMachine {
	var out []observedMachine
	for dir, p := range s.procs {
		if p.InfraID == infraID && !containsMachine(ms, dir) {
			out = append(out, observedMachine{Config: p.Config, dir: dir, phase: p.phase, gone: true})
		}
	}
	return out
}

// broadcastChange tells all who wait that something has changed. s.mu is held.
func (s *Store) broadcastChange() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// notifyRunStateChange lets whoever listens know that a machine runs, or does not any more.
func (s *Store) notifyRunStateChange(infraID string) {
	select {
	case s.changes <- infraID:
	default: // they look by themselves, later
	}
}

// enqueueCluster makes Run look at a cluster. s.mu is held.
func (s *Store) enqueueCluster(infraID string) {
	s.dirty[infraID] = struct{}{}
	select {
	case s.wake <- struct{}{}:
	default: // it will wake anyway
	}
}

// checkDNSLabel keeps names that come from a metadata.json inside the store's folder.
func checkDNSLabel(what, name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fault.NewDenied("%s %q: %s", what, name, strings.Join(msgs, ", "))
	}
	return nil
}

// toCloudMachine returns m as a cloud would report it.
func (m observedMachine) toCloudMachine() cloud.Machine {
	state, reason := m.cloudState()
	return cloud.Machine{
		Name: m.Name, ControlPlane: m.Role == machine.ControlPlane, State: state, Reason: reason,
		Node: m.Name, Addresses: m.NodeAddresses(),
	}
}

// interruptedError says that ctx ended while doing something.
func interruptedError(ctx context.Context, doing, name string) error {
	return fmt.Errorf("%s %s: %w", doing, name, context.Cause(ctx))
}
