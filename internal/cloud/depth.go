package cloud

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// Depth is how deeply a machine sleeps (ADR 0031). A deeper sleep costs less and takes longer to wake
// from. The value "" means DepthStop.
type Depth string

// The depths, from the shallowest to the deepest.
const (
	// DepthFreeze keeps the machine's memory in memory: its processes, or the guest, do not run.
	DepthFreeze Depth = hivev1.DepthFreeze
	// DepthSuspend keeps the machine's memory on disk.
	DepthSuspend Depth = hivev1.DepthSuspend
	// DepthStop loses the machine's memory, as a shutdown does. Every machine can sleep at this depth.
	DepthStop Depth = hivev1.DepthStop
)

// Depths returns all depths, from the shallowest to the deepest.
func Depths() []Depth { return []Depth{DepthFreeze, DepthSuspend, DepthStop} }

// ParseDepth returns the depth with this name; "" is DepthStop. The error names all depths.
func ParseDepth(name string) (Depth, error) {
	d := Depth(name).orStop()
	if !slices.Contains(Depths(), d) {
		return "", fmt.Errorf("there is no depth of sleep %q: choose one of %s", name, joinDepths(Depths()))
	}
	return d, nil
}

func joinDepths(all []Depth) string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// orStop returns d, and DepthStop for "".
func (d Depth) orStop() Depth {
	if d == "" {
		return DepthStop
	}
	return d
}

// IsDeeperThan reports whether d is a deeper sleep than other. A depth that does not exist counts as
// DepthStop.
func (d Depth) IsDeeperThan(other Depth) bool { return d.rank() > other.rank() }

func (d Depth) rank() int {
	if i := slices.Index(Depths(), d); i >= 0 {
		return i
	}
	return len(Depths()) - 1
}

// IsAsleepAbove reports whether the machine sleeps less deeply than at depth d, so that Stop puts it
// deeper. It is false for a machine that cannot be put deeper.
func (m Machine) IsAsleepAbove(d Depth) bool {
	return m.State == Stopped && d.IsDeeperThan(m.Depth) && !m.CannotDeepen
}

// SelectDepth returns the depth at which Stop puts a machine to sleep: the shallowest one that is at
// least as deep as r.Depth, that the platform has not refused, and that the machine supports. supports is
// not asked about DepthStop.
func (r Ref) SelectDepth(supports func(Depth) bool) Depth {
	for _, d := range Depths() {
		if d == DepthStop || !r.Depth.IsDeeperThan(d) && !slices.Contains(r.RefusedDepths, d) && supports(d) {
			return d
		}
	}
	return DepthStop
}

// DepthSupport describes one depth of a platform.
type DepthSupport struct {
	// Depth is DepthFreeze or DepthSuspend.
	Depth Depth
	// Obstacle is why clusters with the given settings cannot sleep at this depth, as a sentence that
	// says what to do; "" if they can, as far as the platform knows before it tries.
	Obstacle string
	// Limits says, as a sentence, what a user must know about this depth: for how long machines can sleep
	// at it, which of them, and what ends it. "" if there is nothing to say.
	Limits string
}

// DepthReporter is an optional interface of a platform, in addition to Actuator (ADR 0031), whose
// machines can sleep at other depths than DepthStop.
type DepthReporter interface {
	// ReportDepths describes the depths other than DepthStop for clusters with these settings. A depth
	// that it leaves out does not exist on the platform. It calls no API.
	ReportDepths(p hivev1.Platform) []DepthSupport
}

// DepthRefusedError is the error of Stop if the platform permanently refuses to put a machine to sleep at a
// depth: another attempt would be refused too, and a deeper one may not be. Its kind is fault.Denied.
type DepthRefusedError struct {
	Depth Depth
	// Machine is the name of the machine.
	Machine string
	// Reason is why, as a clause. It contains no secrets.
	Reason string
}

// Error implements error.
func (e *DepthRefusedError) Error() string {
	return fmt.Sprintf("machine %s cannot sleep at depth %s: %s", e.Machine, e.Depth, e.Reason)
}

// RefuseDepth returns a DepthRefusedError of kind fault.Denied.
func RefuseDepth(d Depth, machine, reason string) error {
	return fault.New(fault.Denied, &DepthRefusedError{Depth: d, Machine: machine, Reason: reason})
}

// SplitRefusedDepths returns the DepthRefusedErrors among err and everything that it joins, and the other
// errors, joined; nil if there are no others.
func SplitRefusedDepths(err error) (refused []*DepthRefusedError, others error) {
	if err == nil {
		return nil, nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			more, rest := SplitRefusedDepths(one)
			refused, others = append(refused, more...), errors.Join(others, rest)
		}
		return refused, others
	}
	var is *DepthRefusedError
	if errors.As(err, &is) {
		return []*DepthRefusedError{is}, nil
	}
	return nil, err
}
