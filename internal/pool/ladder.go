package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Depths of sleep, as in the annotation of a cluster. A deeper one costs less and takes longer to wake from.
const (
	DepthFreeze  = "freeze"
	DepthSuspend = "suspend"
	DepthStop    = "stop"
)

// depthOrder has the depths from the shallowest to the deepest.
var depthOrder = []string{DepthFreeze, DepthSuspend, DepthStop}

// rankDepth returns the position of a depth in depthOrder. An unknown depth, as of a cluster that was put to sleep before
// depths existed, counts as DepthStop.
func rankDepth(depth string) int {
	if i := slices.Index(depthOrder, depth); i >= 0 {
		return i
	}
	return len(depthOrder) - 1
}

// A Rung says how many spare clusters sleep at a depth.
type Rung struct {
	Depth string
	// Count is the maximum number of clusters; nil means no limit.
	Count *int
}

// A Ladder says at which depths the spare clusters of a pool sleep: each at the shallowest one that has room. Its
// depths become deeper. A cluster for which no rung has room sleeps at DepthStop.
type Ladder []Rung

// String returns the ladder in the form of ParseLadder: "freeze:1,stop".
func (l Ladder) String() string {
	parts := make([]string, len(l))
	for i, r := range l {
		parts[i] = r.Depth
		if r.Count != nil {
			parts[i] += ":" + strconv.Itoa(*r.Count)
		}
	}
	return strings.Join(parts, ",")
}

// maxRungCount is the largest count of a rung, as that of a pool's size in a PoolPolicy.
const maxRungCount = 100000

// ParseLadder parses a ladder such as "freeze:1,suspend:3,stop"; "" is no ladder. The error names the rung and the
// remedy.
func ParseLadder(text string) (Ladder, error) {
	if text == "" {
		return nil, nil
	}
	var l Ladder
	for part := range strings.SplitSeq(text, ",") {
		depth, count, limited := strings.Cut(strings.TrimSpace(part), ":")
		r := Rung{Depth: depth}
		if limited {
			n, err := strconv.Atoi(count)
			if err != nil || n < 0 || n > maxRungCount {
				return nil, fmt.Errorf("rung %q has count %q: write a number from 0 to %d, as in freeze:1", part, count, maxRungCount)
			}
			r.Count = &n
		}
		l = append(l, r)
	}
	return l, l.Validate()
}

// Validate returns an error unless the depths exist and become deeper, and only the last one has no limit.
func (l Ladder) Validate() error {
	for _, r := range l {
		if !slices.Contains(depthOrder, r.Depth) {
			return fmt.Errorf("there is no depth %q: choose one of %s", r.Depth, strings.Join(depthOrder, ", "))
		}
	}
	for i, r := range l {
		switch {
		case i > 0 && rankDepth(r.Depth) <= rankDepth(l[i-1].Depth):
			return fmt.Errorf("depth %s comes after %s: write the depths from the shallowest to the deepest: %s", r.Depth, l[i-1].Depth, strings.Join(depthOrder, ", "))
		case r.Count == nil && i < len(l)-1:
			return fmt.Errorf("depth %s has no count, so that no cluster would sleep at %s: write a count, as in %s:1", r.Depth, l[i+1].Depth, r.Depth)
		}
	}
	return nil
}

// sleepDepth returns the depth at which m sleeps or is about to: the platform may have made it deeper than was wanted.
func (m *Member) sleepDepth() string {
	if rankDepth(m.WantedDepth) >= rankDepth(m.Depth) || m.Depth == "" {
		return depthOrder[rankDepth(m.WantedDepth)]
	}
	return m.Depth
}

// wakeDepth returns the depth from which m would wake now: some platforms cannot move a machine that sleeps to a deeper depth that is
// wanted.
func (m *Member) wakeDepth() string {
	if m.Depth != "" {
		return m.Depth
	}
	return m.sleepDepth()
}

// isAsleep reports whether m sleeps or is about to.
func (m *Member) isAsleep() bool { return m.Wanted == Hibernating }

// hibernateMembers hibernates the members in list, which are sorted by age. With a ladder, each gets the shallowest
// depth that has room. Those that sleep already keep their depth or get a deeper one, because nothing can
// make a sleep shallower; then the others get what is left, so that none is woken or moved for another.
func (d *draft) hibernateMembers(list []*Member) {
	reason := fmt.Sprintf("runningCount is %d, and enough other clusters run", d.Settings.RunningCount)
	if len(d.Settings.Sleep) == 0 {
		for _, m := range list {
			d.setPower(m, Hibernating, AboveRunningCount, reason)
		}
		return
	}
	taken := make([]int, len(d.Settings.Sleep))
	asleep := slices.DeleteFunc(slices.Clone(list), func(m *Member) bool { return !m.isAsleep() })
	slices.SortStableFunc(asleep, func(a, b *Member) int { return rankDepth(a.sleepDepth()) - rankDepth(b.sleepDepth()) })
	for _, m := range asleep {
		depth := d.takeDepth(taken, rankDepth(m.sleepDepth()))
		if rankDepth(depth) > rankDepth(m.sleepDepth()) {
			d.addHibernation(m, depth, LadderFull, fmt.Sprintf("the ladder of depths is %s, and enough others sleep at depth %s", d.Settings.Sleep, m.sleepDepth()))
		}
	}
	for _, m := range list {
		if !m.isAsleep() {
			d.addHibernation(m, d.takeDepth(taken, 0), AboveRunningCount, reason)
		}
	}
}

// takeDepth takes a place on the shallowest rung that has one and is not shallower than the depth of that rank.
func (d *draft) takeDepth(taken []int, rank int) string {
	for i, r := range d.Settings.Sleep {
		if rankDepth(r.Depth) >= rank && taken[i] < limitOrUnlimited(r.Count) {
			taken[i]++
			return r.Depth
		}
	}
	return DepthStop
}

func (d *draft) addHibernation(m *Member, depth string, cause Cause, reason string) {
	if i, isNew := d.creations[m]; isNew {
		d.steps[i].Power, d.steps[i].Depth = Hibernating, depth
		return
	}
	d.steps = append(d.steps, Step{Verb: Hibernate, Cluster: m.Name, Depth: depth, Cause: cause, Reason: reason})
}

// sortByWake sorts members so that those that run sooner come first: those that are awake, then those that sleep
// less deeply, then installs. Otherwise the order is kept.
func sortByWake(list []*Member) []*Member {
	rank := func(m *Member) int {
		switch {
		case !m.Installed:
			return len(depthOrder)
		case !m.isAsleep():
			return -1
		default:
			return rankDepth(m.wakeDepth())
		}
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b *Member) int { return rank(a) - rank(b) })
	return out
}
