package cloudtest

import "hotspare.io/hotspare/internal/cloud"

// How many steps of a simulator's clock a guest needs. A step is about ten seconds: an operating system
// with a kubelet boots in three minutes, and a guest that has kept its memory continues at once.
const (
	bootSteps   = 18
	resumeSteps = 1
)

// Guest is the operating system of a machine in a simulator with a clock. A simulator has one for each
// machine and calls Step for it. The zero value is a guest that is off.
type Guest struct {
	steps        int
	keepsMemory  bool
	bootedBefore bool
}

// Step lets one step of the clock pass, in which the machine is in this state and, if it is stopped,
// sleeps at this depth.
func (g *Guest) Step(state cloud.State, depth cloud.Depth) {
	switch {
	case state == cloud.Running:
		g.steps++
		g.bootedBefore = g.bootedBefore || g.IsUp()
	case state != cloud.Stopped:
	case cloud.DepthStop.IsDeeperThan(depth):
		g.steps, g.keepsMemory = 0, g.bootedBefore
	default:
		*g = Guest{}
	}
}

// IsUp reports whether the guest has booted, or continues with the memory that it had.
func (g *Guest) IsUp() bool {
	if g.keepsMemory {
		return g.steps >= resumeSteps
	}
	return g.steps >= bootSteps
}
