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

// A Fault is something that is wrong with a machine because a person or a test
// wanted it so.
type Fault string

// All faults that there are.
const (
	MachineCrash          Fault = "machine-crash"
	DiskLost              Fault = "disk-lost"
	HangOnStart           Fault = "hang-on-start"
	HangOnStop            Fault = "hang-on-stop"
	APISilent             Fault = "api-silent"
	CertificatesExpired   Fault = "certificates-expired"
	ControllerManagerDead Fault = "controller-manager-dead"
	NodeNeverReady        Fault = "node-never-ready"
)

// A Profile says what a fault is.
type Profile struct {
	Fault Fault `json:"fault"`
	// Does is what it does, in one line.
	Does string `json:"does"`
	// Only is the role of the machines that can have it; empty: any machine can.
	Only Role `json:"only,omitempty"`
	// Strikes are the machines that get it if none is named.
	Strikes Target `json:"strikes"`
	// Lasts says that it stays until somebody heals it. Others are over as soon as
	// they have happened.
	Lasts bool `json:"lasts"`
	// AtStart says that a machine that runs has nothing of it until it starts again.
	AtStart bool `json:"atStart"`
}

// Target tells which machines of a cluster a fault strikes.
type Target string

// The targets.
const (
	TheControlPlane Target = "control plane"
	FirstWorker     Target = "first worker" // or the control plane if there is none
	EveryMachine    Target = "every machine"
)

// Profiles returns all faults, in the order in which they are told to people.
func Profiles() []Profile {
	return []Profile{
		{Fault: MachineCrash, Strikes: TheControlPlane, Does: "its process is killed, once"},
		{Fault: DiskLost, Strikes: TheControlPlane, Lasts: true, Does: "its process is killed and its disk is gone"},
		{Fault: HangOnStart, Strikes: TheControlPlane, Lasts: true, AtStart: true, Does: "its process starts, and nothing more happens"},
		{Fault: HangOnStop, Strikes: TheControlPlane, Lasts: true, Does: "it does not stop when it is told to"},
		{Fault: APISilent, Strikes: TheControlPlane, Only: ControlPlane, Lasts: true, Does: "the API takes connections and never answers"},
		{Fault: CertificatesExpired, Strikes: EveryMachine, AtStart: true, Does: "the certificates of its node have expired, as in a long sleep"},
		{Fault: ControllerManagerDead, Strikes: TheControlPlane, Only: ControlPlane, Lasts: true, Does: "kube-controller-manager does nothing"},
		{Fault: NodeNeverReady, Strikes: FirstWorker, Lasts: true, Does: "its node gives no sign of life"},
	}
}

// Profile returns what the fault is. The error, if there is no such fault, lists
// those that there are.
func (f Fault) Profile() (Profile, error) {
	all := Profiles()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.Fault == f })
	if i < 0 {
		return Profile{}, fmt.Errorf("there is no fault %q: choose one of %s", f, strings.Join(FaultNames(), ", "))
	}
	return all[i], nil
}

// FaultNames returns the names of all faults.
func FaultNames() []string {
	var names []string
	for _, p := range Profiles() {
		names = append(names, string(p.Fault))
	}
	return names
}

// Fits reports whether a machine of that role can have the fault.
func (p Profile) Fits(r Role) bool { return p.Only == "" || p.Only == r }

// Pick returns those of a cluster's machines that get the fault if none is named.
func (p Profile) Pick(all []Config) []Config {
	all = slices.SortedFunc(slices.Values(all), func(a, b Config) int { return strings.Compare(a.Name, b.Name) })
	if p.Strikes == EveryMachine {
		return all
	}
	want := ControlPlane
	if p.Strikes == FirstWorker && slices.ContainsFunc(all, func(c Config) bool { return c.Role == Worker }) {
		want = Worker
	}
	i := slices.IndexFunc(all, func(c Config) bool { return c.Role == want })
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}

// FaultPath is there while the machine in dir has the fault, or has yet to suffer it.
func FaultPath(dir string, f Fault) string { return filepath.Join(dir, "faults", string(f)) }

// lostDisk is where the disk is while it is gone.
func lostDisk(dir string) string { return filepath.Join(dir, "disk.lost") }

// Break gives a machine a fault. If its process runs, that will know within a
// second. A second time it changes nothing.
func Break(dir string, f Fault) error {
	if f == DiskLost {
		if err := moveDisk(DiskPath(dir), lostDisk(dir)); err != nil {
			return fmt.Errorf("taking the disk of %s: %w", filepath.Base(dir), err)
		}
	}
	path := FaultPath(dir, f)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("breaking %s: %w", filepath.Base(dir), err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("breaking %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// Heal takes a fault away, if the machine has it. The program in the machine calls
// it when a fault that does not last has happened.
func Heal(dir string, f Fault) error {
	if err := os.Remove(FaultPath(dir, f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("healing %s: %w", filepath.Base(dir), err)
	}
	if f != DiskLost {
		return nil
	}
	if err := moveDisk(lostDisk(dir), DiskPath(dir)); err != nil {
		return fmt.Errorf("putting the disk of %s back: %w", filepath.Base(dir), err)
	}
	return nil
}

// moveDisk renames from to to, if from is there.
func moveDisk(from, to string) error {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.Rename(from, to) // fails if there is a disk already
}

// Has reports whether the machine in dir has the fault.
func Has(dir string, f Fault) bool {
	_, err := os.Stat(FaultPath(dir, f))
	if err != nil && f == DiskLost {
		_, err = os.Stat(lostDisk(dir))
	}
	return err == nil
}

// FaultsOf returns the faults that the machine in dir has.
func FaultsOf(dir string) []Fault {
	var out []Fault
	for _, p := range Profiles() {
		if Has(dir, p.Fault) {
			out = append(out, p.Fault)
		}
	}
	return out
}

// LoadAll reads the Configs of the machines whose folders are in dir, sorted by name.
func LoadAll(dir string) ([]Config, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	var all []Config
	for _, e := range entries {
		c, err := Load(filepath.Join(dir, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // on its way in or out
		case err != nil:
			return nil, err
		default:
			all = append(all, c)
		}
	}
	return all, nil
}
