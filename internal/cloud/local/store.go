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

	mu       sync.Mutex
	procs    map[string]*process // by machine folder
	endings  map[string]ending   // by machine folder: how its last process ended by itself
	reserved map[string]need     // by infraID
	changed  chan struct{}       // closed, and replaced, when a process has begun, changed or ended
	changes  chan string         // infraIDs, see cloud.Teller
	dirty    map[string]struct{} // infraIDs that Run has to look at
	live     sync.WaitGroup      // a process each
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
		dir:      dir,
		command:  command,
		options:  options{grace: 15 * time.Second, measure: Measure},
		wake:     make(chan struct{}, 1),
		procs:    map[string]*process{},
		endings:  map[string]ending{},
		reserved: map[string]need{},
		changed:  make(chan struct{}),
		changes:  make(chan string, 100),
		dirty:    map[string]struct{}{},
	}
	for _, o := range opts {
		o(&s.options)
	}
	return s, nil
}

// Dir returns the folder of a machine, whether or not there is such a machine.
func (s *Store) Dir(infraID, name string) string { return filepath.Join(s.dir, infraID, name) }

// Clusters returns the infraIDs of all machines, sorted.
func (s *Store) Clusters() ([]string, error) {
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

// List returns the machines of a cluster, as they were created, sorted by name.
// None is an empty list and no error.
func (s *Store) List(infraID string) ([]machine.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.look(infraID)
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

// Observe returns the machines of a cluster with their states, sorted by name.
// None is an empty list and no error.
func (s *Store) Observe(infraID string) (cloud.Machines, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.look(infraID)
	if err != nil {
		return nil, err
	}
	var out cloud.Machines
	for _, m := range ms {
		out = append(out, m.observed())
		if m.gone {
			s.kick(infraID) // nobody told us
		}
	}
	out.Sort()
	return out, nil
}

// Start wants the machines of a cluster to run and returns. Run starts the
// control plane before the workers. One that could not be started, or ended by
// itself, is tried again. The error is fault.Capacity if the computer has not
// enough memory left for those that do not run; then nothing is started.
func (s *Store) Start(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.look(infraID)
	if err != nil {
		return err
	}
	if err := s.admit(infraID, needOf(ms)); err != nil {
		return err
	}
	return s.want(ms, switchOn)
}

// Stop wants the machines of a cluster to stop and returns. Run stops the
// workers before the control plane, and kills what takes too long.
func (s *Store) Stop(infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.look(infraID)
	if err != nil {
		return err
	}
	return s.want(ms, switchOff)
}

// want records by set what the machines should do and lets Run do it. One that
// cannot be recorded does not stop the others.
func (s *Store) want(ms []seen, set func(dir string) error) error {
	var errs []error
	for _, m := range ms {
		if m.gone {
			continue
		}
		if err := set(m.dir); err != nil {
			errs = append(errs, fmt.Errorf("switching machine %s: %w", m.Name, err))
			continue
		}
		delete(s.endings, m.dir)
		s.kick(m.InfraID)
	}
	return errors.Join(errs...)
}

// look reads the machines of a cluster, sorted by name. A machine whose folder
// has been removed is seen for as long as its process lives. s.mu is held.
func (s *Store) look(infraID string) ([]seen, error) {
	if err := checkName("infraID", infraID); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, infraID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing machines of %s: %w", infraID, err)
	}
	var ms []seen
	for _, e := range entries {
		if m, ok := s.read(infraID, e.Name()); ok {
			ms = append(ms, m)
		}
	}
	return append(ms, s.orphans(infraID, ms)...), nil
}

// read sees one machine. A folder that has lost its machine.json is none.
func (s *Store) read(infraID, name string) (seen, bool) {
	dir := s.Dir(infraID, name)
	config, err := machine.Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return seen{}, false
	}
	m := seen{Config: config, dir: dir, wanted: switchedOn(dir), ending: s.endings[dir]}
	if err != nil {
		m.Config = machine.Config{Name: name, InfraID: infraID}
		m.ending = ending{state: cloud.Failed, reason: err.Error()}
	}
	if p := s.procs[dir]; p != nil {
		m.phase = p.phase
	}
	return m, true
}

// orphans sees the processes whose machine is not among ms any more.
func (s *Store) orphans(infraID string, ms []seen) []seen {
	var out []seen
	for dir, p := range s.procs {
		if p.InfraID == infraID && !contains(ms, dir) {
			out = append(out, seen{Config: p.Config, dir: dir, phase: p.phase, gone: true})
		}
	}
	return out
}

// announce tells all who wait that something has changed. s.mu is held.
func (s *Store) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// tell lets whoever listens know that a machine runs, or does not any more.
func (s *Store) tell(infraID string) {
	select {
	case s.changes <- infraID:
	default: // they look by themselves, later
	}
}

// kick makes Run look at a cluster. s.mu is held.
func (s *Store) kick(infraID string) {
	s.dirty[infraID] = struct{}{}
	select {
	case s.wake <- struct{}{}:
	default: // it will wake anyway
	}
}

// checkName keeps names that come from a metadata.json inside the store's folder.
func checkName(what, name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fault.Denying("%s %q: %s", what, name, strings.Join(msgs, ", "))
	}
	return nil
}

// observed returns m as a cloud would report it.
func (m seen) observed() cloud.Machine {
	state, reason := m.state()
	return cloud.Machine{
		Name: m.Name, ControlPlane: m.Role == machine.ControlPlane, State: state, Reason: reason,
		Node: m.Name, Addresses: m.Addresses(),
	}
}

// interrupted says that ctx ended while doing something.
func interrupted(ctx context.Context, doing, name string) error {
	return fmt.Errorf("%s %s: %w", doing, name, context.Cause(ctx))
}
