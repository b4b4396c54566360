package power

import (
	"fmt"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// TargetDepth returns the depth for which the platform is asked: the shallowest one that is at least as deep as the
// wanted one and that the platform has. What the platform refuses does not change it.
func (s Snapshot) TargetDepth() cloud.Depth {
	return cloud.Ref{Depth: s.WantedDepth}.SelectDepth(func(d cloud.Depth) bool {
		i := s.indexOfSupport(d)
		return i >= 0 && s.Depths[i].Obstacle == ""
	})
}

func (s Snapshot) indexOfSupport(d cloud.Depth) int {
	return slices.IndexFunc(s.Depths, func(r cloud.DepthSupport) bool { return r.Depth == d })
}

// RefusedDepths returns the depths that the platform has refused in this hibernation.
func (s Snapshot) RefusedDepths() []cloud.Depth {
	if s.Record == nil || s.Record.Target != hivev1.PowerHibernating {
		return nil
	}
	var out []cloud.Depth
	for _, r := range s.Record.RefusedDepths {
		out = append(out, cloud.Depth(r.Depth))
	}
	return out
}

// hasMachineAbove reports whether a machine sleeps less deeply than it should.
func (s Snapshot) hasMachineAbove(target cloud.Depth) bool {
	return slices.ContainsFunc(s.Machines, func(m cloud.Machine) bool { return m.IsAsleepAbove(target) })
}

// depthGap returns the gap until no machine sleeps less deeply than it should; nil if none does.
func (s Snapshot) depthGap() *gap {
	target := s.TargetDepth()
	names := machineNames(s.Machines, func(m cloud.Machine) bool { return m.IsAsleepAbove(target) })
	if len(names) == 0 {
		return nil
	}
	return &gap{message: fmt.Sprintf("Waiting for machines to sleep at depth %s: %s.", target, strings.Join(names, ", "))}
}

// machineNames returns the sorted names of the selected machines.
func machineNames(ms cloud.Machines, those func(cloud.Machine) bool) []string {
	var names []string
	for _, m := range ms {
		if those(m) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// depthOf returns the depth of a stopped machine.
func depthOf(m cloud.Machine) cloud.Depth {
	if m.Depth == "" {
		return cloud.DepthStop
	}
	return m.Depth
}

// recordDepth records the depth of the deepest machine: a resume takes as long as that of the slowest one. While the
// machines are not observed, it keeps the depth.
func (s Snapshot) recordDepth(r *record) {
	if len(s.Machines) == 0 {
		return
	}
	deepest := cloud.DepthFreeze
	for _, m := range s.Machines {
		if depthOf(m).IsDeeperThan(deepest) {
			deepest = depthOf(m)
		}
	}
	r.Depth = string(deepest)
}

// hibernatingMessage says at which depth the cluster sleeps, and why that is not the wanted one. It says nothing about
// the depth of clusters that are stopped as wanted, as all clusters are on most platforms.
func (s Snapshot) hibernatingMessage(r record) string {
	const plain = "The cluster is hibernating."
	wanted, _ := cloud.ParseDepth(string(s.WantedDepth)) // otherwise SpecProblem says so, and the depth is stop
	var parts []string
	for _, d := range cloud.Depths() {
		if names := machineNames(s.Machines, func(m cloud.Machine) bool { return depthOf(m) == d }); len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", d, strings.Join(names, ", ")))
		}
	}
	isDeeper := func(m cloud.Machine) bool { return depthOf(m).IsDeeperThan(wanted) }
	switch {
	case len(parts) == 0:
		return plain
	case len(parts) == 1 && !slices.ContainsFunc(s.Machines, isDeeper):
		if depthOf(s.Machines[0]) == cloud.DepthStop {
			return plain
		}
		return fmt.Sprintf("The cluster is hibernating at depth %s.", s.Machines[0].Depth)
	case len(parts) == 1:
		return fmt.Sprintf("The cluster is hibernating at depth %s. %s", depthOf(s.Machines[0]), s.explainDepth(wanted, r))
	case slices.ContainsFunc(s.Machines, isDeeper):
		return fmt.Sprintf("The cluster is hibernating, its machines at depths %s. %s", strings.Join(parts, ", "), s.explainDepth(wanted, r))
	default:
		return fmt.Sprintf("The cluster is hibernating, its machines at depths %s.", strings.Join(parts, ", "))
	}
}

// explainDepth says, as a sentence, why the cluster or some of its machines sleep deeper than at the wanted depth.
func (s Snapshot) explainDepth(wanted cloud.Depth, r record) string {
	var reasons []string
	for _, refused := range r.RefusedDepths {
		if !wanted.IsDeeperThan(cloud.Depth(refused.Depth)) {
			reasons = append(reasons, refused.Reason)
		}
	}
	for _, m := range s.Machines {
		if m.DepthObstacle != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %s", m.Name, m.DepthObstacle))
		}
	}
	i := s.indexOfSupport(wanted)
	switch {
	case i < 0:
		return fmt.Sprintf("The platform %s does not support the requested depth %s.", s.Platform, wanted)
	case s.Depths[i].Obstacle != "":
		return fmt.Sprintf("The requested depth %s is not possible. %s", wanted, s.Depths[i].Obstacle)
	case len(reasons) > 0:
		slices.Sort(reasons)
		return fmt.Sprintf("The requested depth %s is not possible: %s.", wanted, strings.Join(slices.Compact(reasons), "; "))
	default:
		return fmt.Sprintf("The requested depth %s applies to the next hibernation.", wanted)
	}
}

// AfterRefusedDepths returns the plan after the platform has refused to put machines to sleep at a depth: the refusals are
// recorded, and the next pass, which follows at once, asks for a deeper one. A platform that refuses a depth
// which it was not asked for has refused the request.
func (p Plan) AfterRefusedDepths(refused []*cloud.DepthRefusedError) (Plan, bool) {
	r := record{PowerTransition: *p.Record.DeepCopy()}
	byDepth := map[cloud.Depth][]string{}
	for _, e := range refused {
		if e.Depth == cloud.DepthStop || slices.ContainsFunc(r.RefusedDepths, func(old hivev1.RefusedDepth) bool { return old.Depth == string(e.Depth) }) {
			return p, false
		}
		byDepth[e.Depth] = append(byDepth[e.Depth], e.Error())
	}
	for _, depth := range cloud.Depths() {
		if said := byDepth[depth]; len(said) > 0 {
			slices.Sort(said)
			r.RefusedDepths = append(r.RefusedDepths, hivev1.RefusedDepth{Depth: string(depth), Reason: describeRefusals(said)})
		}
	}
	p.Record, p.Next = r.toTransition(), nextPassDelay
	return p, true
}

// describeRefusals returns the first of the sorted refusals, and how many more there are.
func describeRefusals(said []string) string {
	first := strings.ReplaceAll(said[0], "\n", "; ")
	if more := len(said) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more machines)", first, more)
	}
	return first
}
