package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Injection is a fault that a person or a test has injected into a machine.
type Injection string

// All faults.
const (
	MachineCrash          Injection = "machine-crash"
	DiskLost              Injection = "disk-lost"
	HangOnStart           Injection = "hang-on-start"
	HangOnStop            Injection = "hang-on-stop"
	APISilent             Injection = "api-silent"
	CertificatesExpired   Injection = "certificates-expired"
	ControllerManagerDead Injection = "controller-manager-dead"
	NodeNeverReady        Injection = "node-never-ready"
)

// A Profile describes a fault.
type Profile struct {
	Fault Injection `json:"fault"`
	// Description describes the effect of the fault, in one line.
	Description string `json:"does"`
	// Only is the role of the machines that can have the fault; empty means any machine.
	Only Role `json:"only,omitempty"`
	// DefaultTarget selects the machines that get the fault if none is named.
	DefaultTarget Target `json:"strikes"`
	// Persistent reports that the fault stays until it is removed. Other faults end as soon as they have
	// happened.
	Persistent bool `json:"lasts"`
	// AtStart reports that the fault does not affect a running machine until it starts again.
	AtStart bool `json:"atStart"`
}

// Target selects the machines of a cluster that get a fault.
type Target string

// The targets.
const (
	TargetControlPlane Target = "control plane"
	TargetFirstWorker  Target = "first worker" // or the control plane if there is no worker
	TargetEveryMachine Target = "every machine"
)

// InjectionProfiles returns all faults, in the order in which they are shown to users.
func InjectionProfiles() []Profile {
	return []Profile{
		{Fault: MachineCrash, DefaultTarget: TargetControlPlane, Description: "its process is killed, once"},
		{Fault: DiskLost, DefaultTarget: TargetControlPlane, Persistent: true, Description: "its process is killed and its disk is removed"},
		{Fault: HangOnStart, DefaultTarget: TargetControlPlane, Persistent: true, AtStart: true, Description: "its process starts and then does nothing"},
		{Fault: HangOnStop, DefaultTarget: TargetControlPlane, Persistent: true, Description: "it does not stop when asked to"},
		{Fault: APISilent, DefaultTarget: TargetControlPlane, Only: ControlPlane, Persistent: true, Description: "the API accepts connections and never answers"},
		{Fault: CertificatesExpired, DefaultTarget: TargetEveryMachine, AtStart: true, Description: "the certificates of its node have expired, as after a long hibernation"},
		{Fault: ControllerManagerDead, DefaultTarget: TargetControlPlane, Only: ControlPlane, Persistent: true, Description: "kube-controller-manager does nothing"},
		{Fault: NodeNeverReady, DefaultTarget: TargetFirstWorker, Persistent: true, Description: "its node stops reporting its status"},
	}
}

// Profile returns the profile of the fault. If there is no such fault, the error lists all faults.
func (f Injection) Profile() (Profile, error) {
	all := InjectionProfiles()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.Fault == f })
	if i < 0 {
		return Profile{}, fmt.Errorf("there is no fault %q: choose one of %s", f, strings.Join(InjectionNames(), ", "))
	}
	return all[i], nil
}

// InjectionNames returns the names of all faults.
func InjectionNames() []string {
	var names []string
	for _, p := range InjectionProfiles() {
		names = append(names, string(p.Fault))
	}
	return names
}

// AppliesTo reports whether a machine of that role can have the fault.
func (p Profile) AppliesTo(r Role) bool { return p.Only == "" || p.Only == r }

// SelectMachines returns the machines of a cluster that get the fault if none is named.
func (p Profile) SelectMachines(all []Config) []Config {
	all = slices.SortedFunc(slices.Values(all), func(a, b Config) int { return strings.Compare(a.Name, b.Name) })
	if p.DefaultTarget == TargetEveryMachine {
		return all
	}
	want := ControlPlane
	if p.DefaultTarget == TargetFirstWorker && slices.ContainsFunc(all, func(c Config) bool { return c.Role == Worker }) {
		want = Worker
	}
	i := slices.IndexFunc(all, func(c Config) bool { return c.Role == want })
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}

// InjectionPath returns the path of the file that exists while the machine in dir has the fault, or
// while the fault is pending.
func InjectionPath(dir string, f Injection) string { return filepath.Join(dir, "faults", string(f)) }

// lostDiskPath returns the path of the disk while the machine has lost it.
func lostDiskPath(dir string) string { return filepath.Join(dir, "disk.lost") }

// AddInjection adds a fault to a machine. A running process notices it within a second.
// AddInjection is idempotent.
func AddInjection(dir string, f Injection) error {
	if f == DiskLost {
		if err := moveDisk(DiskPath(dir), lostDiskPath(dir)); err != nil {
			return fmt.Errorf("removing the disk of %s: %w", filepath.Base(dir), err)
		}
	}
	path := InjectionPath(dir, f)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("injecting a fault into %s: %w", filepath.Base(dir), err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("injecting a fault into %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// RemoveInjection removes a fault if the machine has it. The program in the machine calls it when a
// fault that does not last has happened.
func RemoveInjection(dir string, f Injection) error {
	if err := os.Remove(InjectionPath(dir, f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a fault from %s: %w", filepath.Base(dir), err)
	}
	if f != DiskLost {
		return nil
	}
	if err := moveDisk(lostDiskPath(dir), DiskPath(dir)); err != nil {
		return fmt.Errorf("restoring the disk of %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// moveDisk renames from to to, if from exists.
func moveDisk(from, to string) error {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.Rename(from, to) // fails if there is a disk already
}

// HasInjection reports whether the machine in dir has the fault.
func HasInjection(dir string, f Injection) bool {
	_, err := os.Stat(InjectionPath(dir, f))
	if err != nil && f == DiskLost {
		_, err = os.Stat(lostDiskPath(dir))
	}
	return err == nil
}

// ListInjections returns the faults of the machine in dir.
func ListInjections(dir string) []Injection {
	var out []Injection
	for _, p := range InjectionProfiles() {
		if HasInjection(dir, p.Fault) {
			out = append(out, p.Fault)
		}
	}
	return out
}

// LoadConfigs reads the Configs of the machines whose folders are in dir, sorted by name.
func LoadConfigs(dir string) ([]Config, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	var all []Config
	for _, e := range entries {
		c, err := LoadConfig(filepath.Join(dir, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // being created or deleted
		case err != nil:
			return nil, err
		default:
			all = append(all, c)
		}
	}
	return all, nil
}
