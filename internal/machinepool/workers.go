package machinepool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

const (
	// Idle is how long a node of an autoscaled pool is empty before it goes.
	Idle = 5 * time.Minute
	// JoinLimit is how long a machine may take to become a node before it is replaced.
	JoinLimit = 10 * time.Minute
)

// Leaving is the taint of a node that is about to be removed. It keeps pods away, as a
// cordon does; but it is ours, so that a node that stays after all can be told from one
// that somebody has cordoned.
var Leaving = corev1.Taint{Key: "hotspare.io/leaving", Effect: corev1.TaintEffectNoSchedule}

// Machine is a worker at its platform.
type Machine struct {
	Name    string
	Created time.Time
	// Trouble says why it does not run, if it cannot.
	Trouble string
}

// Node is a node of the cluster.
type Node struct {
	Name   string
	Ready  bool
	Labels map[string]string
	Taints []corev1.Taint
	// Pods is how many pods run there that would have to go elsewhere.
	Pods int
	// EmptySince is since when there are none, as far as that was noted.
	EmptySince time.Time
}

// Object is a Machine as the cluster's API shows it.
type Object struct {
	Name   string
	Labels map[string]string
}

// Crew is what Workers goes by: a MachinePool, and the workers of its cluster.
type Crew struct {
	Pool    Pool
	InfraID string
	// Set are the sections of the MachinePool's spec.platform that have settings.
	Set      []string
	Machines []Machine
	Nodes    []Node
	Objects  []Object
	// Pending are pods that fit nowhere and could run on a node of the pool.
	Pending int64
	// Up is since when the cluster runs; zero if that is not known.
	Up time.Time
}

// member is one worker of the pool: its machine, its node, or both.
type member struct {
	name    string
	machine *Machine
	node    *Node
	object  *Object
}

// Workers decides about the workers of a pool on the local platform.
func Workers(c Crew, now time.Time) Decision {
	d := Decision{Unsupported: supported, NotEnough: enough, Owned: c.Pool.Owned}
	if v := c.Pool.refused(); v != nil {
		d.Unsupported = *v
		return d
	}
	all := c.members()
	have := slices.DeleteFunc(slices.Clone(all), func(m member) bool { return m.machine == nil })
	want := c.wanted(have, now)
	if v := c.unset(); v != nil && !c.Pool.Deleted {
		d.Unsupported = *v
		d.Replicas, d.Sets = c.told(have, int64(len(have)))
		return d
	}
	for _, m := range all {
		if m.machine == nil {
			d.Steps = append(d.Steps, Step{Verb: ForgetNode, Name: m.name, Why: "its machine is gone"})
		}
	}
	gone := c.leaving(have, want, now)
	d.Steps = append(d.Steps, gone...)
	stay := slices.DeleteFunc(slices.Clone(have), func(m member) bool {
		return slices.ContainsFunc(gone, func(s Step) bool { return s.Name == m.name })
	})
	d.Steps = append(d.Steps, c.adding(all, want-int64(len(stay)))...)
	for _, m := range stay {
		d.Steps = append(d.Steps, c.marks(m, now)...)
		if why := m.awaited(); why != "" && d.Waiting == "" {
			d.Waiting = why
		}
	}
	d.Owned = c.ownedOf(all)
	d.Replicas, d.Sets = c.told(have, want)
	return d
}

// unset says which settings there are, which there cannot be.
func (c Crew) unset() *condition.Value {
	if len(c.Set) == 0 {
		return nil
	}
	v := objection(hivev1.ReasonUnsupportedSetting, "spec.platform.%s: the workers of a local cluster have no settings: remove it.", c.Set[0])
	return &v
}

// prefix begins the names of the pool's machines. A number follows, and nothing else:
// so machines of pool a-1 are none of pool a, and the installer's workers are those of
// pool worker.
func (c Crew) prefix() string { return c.InfraID + "-" + c.Pool.Name + "-" }

// ordinal is the number in text, or -1 if it is none that we would write.
func ordinal(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || strconv.Itoa(n) != text {
		return -1
	}
	return n
}

func (c Crew) ordinal(name string) int {
	rest, ok := strings.CutPrefix(name, c.prefix())
	if !ok {
		return -1
	}
	return ordinal(rest)
}

// members are the pool's workers, sorted by their numbers.
func (c Crew) members() []member {
	byName := map[string]*member{}
	at := func(name string) *member {
		if c.ordinal(name) < 0 {
			return &member{} // another's
		}
		if byName[name] == nil {
			byName[name] = &member{name: name}
		}
		return byName[name]
	}
	for i := range c.Machines {
		at(c.Machines[i].Name).machine = &c.Machines[i]
	}
	for i := range c.Nodes {
		at(c.Nodes[i].Name).node = &c.Nodes[i]
	}
	for i := range c.Objects {
		at(c.Objects[i].Name).object = &c.Objects[i]
	}
	out := make([]member, 0, len(byName))
	for _, m := range byName {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b member) int { return cmp.Compare(c.ordinal(a.name), c.ordinal(b.name)) })
	return out
}

// wanted is how many workers the pool should have.
func (c Crew) wanted(have []member, now time.Time) int64 {
	switch {
	case c.Pool.Deleted:
		return 0
	case c.Pool.Range == nil:
		return c.Pool.Replicas
	}
	l := Load{Nodes: int64(len(have)), Pending: c.Pending}
	for _, m := range have {
		switch {
		case m.node == nil || !m.node.Ready:
			l.Joining++
		case m.idle(now):
			l.Empty++
		}
	}
	return Scale(*c.Pool.Range, l)
}

// idle reports whether the node has been empty for long.
func (m member) idle(now time.Time) bool {
	return m.node != nil && m.node.Pods == 0 && !m.node.EmptySince.IsZero() && now.Sub(m.node.EmptySince) >= Idle
}

// late reports whether the machine should have become a node long ago.
func (c Crew) late(m member, now time.Time) bool {
	since := m.machine.Created
	if c.Up.After(since) {
		since = c.Up
	}
	return m.node == nil && m.machine.Trouble == "" && !since.IsZero() && now.Sub(since) >= JoinLimit
}

// leaving are the workers that go: those that never joined, and then as many as there
// are too many. The emptiest goes first, of those the newest.
func (c Crew) leaving(have []member, want int64, now time.Time) []Step {
	var steps []Step
	var rest []member
	for _, m := range have {
		if c.late(m, now) {
			steps = append(steps, Step{Verb: RemoveWorker, Name: m.name, Why: fmt.Sprintf("it has not joined within %s", JoinLimit)})
			continue
		}
		rest = append(rest, m)
	}
	slices.SortStableFunc(rest, func(a, b member) int {
		return cmp.Or(
			cmp.Compare(a.pods(), b.pods()),
			b.machine.Created.Compare(a.machine.Created),
			cmp.Compare(c.ordinal(b.name), c.ordinal(a.name)),
		)
	})
	for i := int64(0); i < int64(len(rest))-want; i++ {
		steps = append(steps, Step{
			Verb: RemoveWorker, Name: rest[i].name,
			Why: fmt.Sprintf("the pool is to have %d replicas, not %d", want, len(have)),
		})
	}
	return steps
}

// pods are how many have to go elsewhere. A worker that is none yet, or whose removal
// has begun, is the first to go.
func (m member) pods() int {
	if m.node == nil {
		return -1
	}
	if _, leaving := taintIn(m.node.Taints, idOf(Leaving)); leaving {
		return -1
	}
	return m.node.Pods
}

// adding are n new workers. They take the lowest numbers that nothing bears.
func (c Crew) adding(all []member, n int64) []Step {
	var steps []Step
	for i := 0; int64(len(steps)) < n; i++ {
		name := c.prefix() + strconv.Itoa(i)
		if slices.ContainsFunc(all, func(m member) bool { return m.name == name }) {
			continue
		}
		steps = append(steps, Step{Verb: AddWorker, Name: name, Why: "the pool has too few replicas"})
	}
	return steps
}

// marks are the steps that give a worker's node and machine what the pool asks for.
func (c Crew) marks(m member, now time.Time) []Step {
	var steps []Step
	if m.node != nil {
		want := c.node(*m.node, now)
		switch {
		case !maps.Equal(want.Labels, m.node.Labels):
			steps = append(steps, Step{Verb: MarkNode, Name: m.name, Node: &want, Why: "its labels are to be the pool's"})
		case !sameTaints(want.Taints, m.node.Taints):
			steps = append(steps, Step{Verb: MarkNode, Name: m.name, Node: &want, Why: "its taints are to be the pool's"})
		case !want.EmptySince.Equal(m.node.EmptySince):
			steps = append(steps, Step{Verb: MarkNode, Name: m.name, Node: &want, Why: "whether it is empty has changed"})
		}
	}
	if m.object != nil {
		labels := merged(m.object.Labels, c.machineLabels(), c.Pool.Owned.MachineLabels)
		if !maps.Equal(labels, m.object.Labels) {
			steps = append(steps, Step{Verb: MarkMachine, Name: m.name, Labels: labels, Why: "its labels are to be the pool's"})
		}
	}
	return steps
}

// machineLabels are those of the pool, and the one that tells whose the machine is.
func (c Crew) machineLabels() map[string]string {
	return merged(c.Pool.MachineLabels, map[string]string{hivev1.LabelMachinePool: c.Pool.Name}, nil)
}

// node is a node of the pool as it should be.
func (c Crew) node(n Node, now time.Time) Node {
	n.Labels = merged(n.Labels, c.Pool.Labels, c.Pool.Owned.Labels)
	n.Taints = tainted(n.Taints, c.Pool.Taints, append([]hivev1.TaintIdentifier{idOf(Leaving)}, c.Pool.Owned.Taints...))
	switch {
	case c.Pool.Range == nil || n.Pods > 0:
		n.EmptySince = time.Time{}
	case n.EmptySince.IsZero() || n.EmptySince.After(now):
		n.EmptySince = now.UTC().Truncate(time.Second)
	}
	return n
}

// awaited says what a worker of the pool lacks.
func (m member) awaited() string {
	switch {
	case m.machine.Trouble != "":
		return fmt.Sprintf("machine %s does not run: %s", m.name, m.machine.Trouble)
	case m.node == nil:
		return fmt.Sprintf("machine %s has not joined yet", m.name)
	case !m.node.Ready:
		return fmt.Sprintf("node %s is not ready", m.name)
	}
	return ""
}

func (c Crew) ownedOf(all []member) Owned {
	var labels, machines []map[string]string
	var taints [][]corev1.Taint
	for _, m := range all {
		if m.node != nil {
			labels, taints = append(labels, m.node.Labels), append(taints, m.node.Taints)
		}
		if m.object != nil {
			machines = append(machines, m.object.Labels)
		}
	}
	return c.Pool.owned(labels, machines, taints)
}

// told is what the status says: one entry stands for all workers.
func (c Crew) told(have []member, want int64) (int64, []hivev1.MachineSetStatus) {
	st := hivev1.MachineSetStatus{
		Name: strings.TrimSuffix(c.prefix(), "-"), Replicas: int32(want), MinReplicas: int32(want), MaxReplicas: int32(want),
	}
	if r := c.Pool.Range; r != nil {
		st.MinReplicas, st.MaxReplicas = int32(r.Min), int32(r.Max)
	}
	for _, m := range have {
		if m.node != nil && m.node.Ready {
			st.ReadyReplicas++
		}
		if m.machine.Trouble != "" && st.ErrorMessage == nil {
			why := m.awaited()
			st.ErrorMessage = &why
		}
	}
	return int64(len(have)), []hivev1.MachineSetStatus{st}
}
