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
	// IdleTimeout is how long a node of an autoscaled pool must be empty before it is removed.
	IdleTimeout = 5 * time.Minute
	// JoinTimeout is how long a machine may take to join as a node before it is replaced.
	JoinTimeout = 10 * time.Minute
)

// LeavingTaint is the taint of a node that is about to be removed. It keeps pods away, as a
// cordon does. Because the taint is hotspare's own, a node that stays after all can be
// distinguished from one that somebody has cordoned.
var LeavingTaint = corev1.Taint{Key: "hotspare.io/leaving", Effect: corev1.TaintEffectNoSchedule}

// Machine is a worker at its platform.
type Machine struct {
	Name    string
	Created time.Time
	// Problem says why it cannot run; empty if it can.
	Problem string
	// Obstacle says why its node cannot become ready although it runs; empty if that is not known.
	Obstacle string
}

// Node is a node of the cluster.
type Node struct {
	Name   string
	Ready  bool
	Labels map[string]string
	Taints []corev1.Taint
	// Pods is the number of its pods that would have to move to another node.
	Pods int
	// EmptySince is since when it has had no such pods, if recorded.
	EmptySince time.Time
}

// MachineObject is a Machine in the cluster's API.
type MachineObject struct {
	Name   string
	Labels map[string]string
}

// WorkerSnapshot is the input of DecideWorkers: a MachinePool, and the workers of its cluster.
type WorkerSnapshot struct {
	Pool    Pool
	InfraID string
	// PlatformSettings lists the sections of the MachinePool's spec.platform that have settings.
	PlatformSettings []string
	Machines         []Machine
	Nodes            []Node
	Objects          []MachineObject
	// Pending is the number of pods that fit on no node and could run on a node of the pool.
	Pending int64
	// Up is when the cluster started running; zero if unknown.
	Up time.Time
}

// poolWorker is one worker of the pool: its machine, its node, or both.
type poolWorker struct {
	name    string
	machine *Machine
	node    *Node
	object  *MachineObject
}

// DecideWorkers decides about the workers of a pool on the local platform.
func DecideWorkers(c WorkerSnapshot, now time.Time) Plan {
	d := Plan{Unsupported: configSupported, NotEnough: boundsSufficient, Owned: c.Pool.Owned}
	if v := c.Pool.unsupportedCondition(); v != nil {
		d.Unsupported = *v
		return d
	}
	all := c.collectWorkers()
	have := slices.DeleteFunc(slices.Clone(all), func(m poolWorker) bool { return m.machine == nil })
	want := c.desiredReplicas(have, now)
	if v := c.unsupportedSettingCondition(); v != nil && !c.Pool.Deleted {
		d.Unsupported = *v
		d.Replicas, d.Sets = c.workerStatus(have, int64(len(have)))
		return d
	}
	for _, m := range all {
		if m.machine == nil {
			d.Steps = append(d.Steps, Step{Verb: DeleteNode, Name: m.name, Why: "its machine no longer exists"})
		}
	}
	gone := c.planRemovals(have, want, now)
	d.Steps = append(d.Steps, gone...)
	stay := slices.DeleteFunc(slices.Clone(have), func(m poolWorker) bool {
		return slices.ContainsFunc(gone, func(s Step) bool { return s.Name == m.name })
	})
	d.Steps = append(d.Steps, c.planAdditions(all, want-int64(len(stay)))...)
	for _, m := range stay {
		d.Steps = append(d.Steps, c.planMarks(m, now)...)
		if why := m.notReadyReason(); why != "" && d.Waiting == "" {
			d.Waiting = why
		}
	}
	d.Owned = c.ownedByWorkers(all)
	d.Replicas, d.Sets = c.workerStatus(have, want)
	return d
}

// unsupportedSettingCondition reports settings that the local platform does not support.
func (w WorkerSnapshot) unsupportedSettingCondition() *condition.Value {
	if len(w.PlatformSettings) == 0 {
		return nil
	}
	v := blockingCondition(hivev1.ReasonUnsupportedSetting, "spec.platform.%s: workers of a local cluster take no platform settings: remove it.", w.PlatformSettings[0])
	return &v
}

// machineNamePrefix returns the prefix of the names of the pool's machines. Only a number follows
// it, so that machines of pool a-1 do not belong to pool a, and the installer's workers belong to
// pool worker.
func (w WorkerSnapshot) machineNamePrefix() string { return w.InfraID + "-" + w.Pool.Name + "-" }

// parseOrdinal parses the number at the end of a machine's name. It returns -1 if hotspare would
// not write the number in this form.
func parseOrdinal(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || strconv.Itoa(n) != text {
		return -1
	}
	return n
}

func (w WorkerSnapshot) machineOrdinal(name string) int {
	rest, ok := strings.CutPrefix(name, w.machineNamePrefix())
	if !ok {
		return -1
	}
	return parseOrdinal(rest)
}

// collectWorkers returns the pool's workers, sorted by their numbers.
func (w WorkerSnapshot) collectWorkers() []poolWorker {
	byName := map[string]*poolWorker{}
	at := func(name string) *poolWorker {
		if w.machineOrdinal(name) < 0 {
			return &poolWorker{} // another pool's
		}
		if byName[name] == nil {
			byName[name] = &poolWorker{name: name}
		}
		return byName[name]
	}
	for i := range w.Machines {
		at(w.Machines[i].Name).machine = &w.Machines[i]
	}
	for i := range w.Nodes {
		at(w.Nodes[i].Name).node = &w.Nodes[i]
	}
	for i := range w.Objects {
		at(w.Objects[i].Name).object = &w.Objects[i]
	}
	out := make([]poolWorker, 0, len(byName))
	for _, m := range byName {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b poolWorker) int { return cmp.Compare(w.machineOrdinal(a.name), w.machineOrdinal(b.name)) })
	return out
}

// desiredReplicas returns how many workers the pool should have.
func (w WorkerSnapshot) desiredReplicas(have []poolWorker, now time.Time) int64 {
	switch {
	case w.Pool.Deleted:
		return 0
	case w.Pool.Range == nil:
		return w.Pool.Replicas
	}
	l := PoolLoad{Nodes: int64(len(have)), Pending: w.Pending}
	for _, m := range have {
		switch {
		case m.node == nil || !m.node.Ready:
			l.Joining++
		case m.isIdleTooLong(now):
			l.Empty++
		}
	}
	return DesiredNodes(*w.Pool.Range, l)
}

// isIdleTooLong reports whether the node has been empty for IdleTimeout.
func (w poolWorker) isIdleTooLong(now time.Time) bool {
	return w.node != nil && w.node.Pods == 0 && !w.node.EmptySince.IsZero() && now.Sub(w.node.EmptySince) >= IdleTimeout
}

// hasJoinTimedOut reports whether the machine has exceeded JoinTimeout without joining, and nobody knows why: a new machine would
// meet the same obstacle.
func (w WorkerSnapshot) hasJoinTimedOut(m poolWorker, now time.Time) bool {
	since := m.machine.Created
	if w.Up.After(since) {
		since = w.Up
	}
	return m.node == nil && m.machine.Problem == "" && m.machine.Obstacle == "" && !since.IsZero() && now.Sub(since) >= JoinTimeout
}

// planRemovals returns the steps that remove workers: first those that never joined, then the
// surplus. Workers with the fewest pods are removed first, and among those the newest.
func (w WorkerSnapshot) planRemovals(have []poolWorker, want int64, now time.Time) []Step {
	var steps []Step
	var rest []poolWorker
	for _, m := range have {
		if w.hasJoinTimedOut(m, now) {
			steps = append(steps, Step{Verb: RemoveWorker, Name: m.name, Why: fmt.Sprintf("it has not joined within %s", JoinTimeout)})
			continue
		}
		rest = append(rest, m)
	}
	slices.SortStableFunc(rest, func(a, b poolWorker) int {
		return cmp.Or(
			cmp.Compare(a.podsToMove(), b.podsToMove()),
			b.machine.Created.Compare(a.machine.Created),
			cmp.Compare(w.machineOrdinal(b.name), w.machineOrdinal(a.name)),
		)
	})
	for i := int64(0); i < int64(len(rest))-want; i++ {
		steps = append(steps, Step{
			Verb: RemoveWorker, Name: rest[i].name,
			Why: fmt.Sprintf("the pool wants %d replicas and has %d", want, len(have)),
		})
	}
	return steps
}

// podsToMove returns how many pods would have to move to another node. A worker that has not
// joined yet, or whose removal has begun, sorts first.
func (w poolWorker) podsToMove() int {
	if w.node == nil {
		return -1
	}
	if _, leaving := findTaint(w.node.Taints, taintIdentifier(LeavingTaint)); leaving {
		return -1
	}
	return w.node.Pods
}

// planAdditions returns the steps that add n workers. They get the lowest unused numbers.
func (w WorkerSnapshot) planAdditions(all []poolWorker, n int64) []Step {
	var steps []Step
	for i := 0; int64(len(steps)) < n; i++ {
		name := w.machineNamePrefix() + strconv.Itoa(i)
		if slices.ContainsFunc(all, func(m poolWorker) bool { return m.name == name }) {
			continue
		}
		steps = append(steps, Step{Verb: AddWorker, Name: name, Why: "the pool has too few replicas"})
	}
	return steps
}

// planMarks returns the steps that set what the pool asks for on a worker's node and machine.
func (w WorkerSnapshot) planMarks(m poolWorker, now time.Time) []Step {
	var steps []Step
	if m.node != nil {
		want := w.desiredNode(*m.node, now)
		switch {
		case !maps.Equal(want.Labels, m.node.Labels):
			steps = append(steps, Step{Verb: UpdateNode, Name: m.name, Node: &want, Why: "its labels differ from the pool's"})
		case !sameTaints(want.Taints, m.node.Taints):
			steps = append(steps, Step{Verb: UpdateNode, Name: m.name, Node: &want, Why: "its taints differ from the pool's"})
		case !want.EmptySince.Equal(m.node.EmptySince):
			steps = append(steps, Step{Verb: UpdateNode, Name: m.name, Node: &want, Why: "whether it is empty has changed"})
		}
	}
	if m.object != nil {
		labels := mergeLabels(m.object.Labels, w.machineLabels(), w.Pool.Owned.MachineLabels)
		if !maps.Equal(labels, m.object.Labels) {
			steps = append(steps, Step{Verb: UpdateMachine, Name: m.name, Labels: labels, Why: "its labels differ from the pool's"})
		}
	}
	return steps
}

// machineLabels returns the pool's machine labels, and the label that identifies the machine's
// pool.
func (w WorkerSnapshot) machineLabels() map[string]string {
	return mergeLabels(w.Pool.MachineLabels, map[string]string{hivev1.LabelMachinePool: w.Pool.Name}, nil)
}

// desiredNode returns a node of the pool as it should be.
func (w WorkerSnapshot) desiredNode(n Node, now time.Time) Node {
	n.Labels = mergeLabels(n.Labels, w.Pool.Labels, w.Pool.Owned.Labels)
	n.Taints = mergeTaints(n.Taints, w.Pool.Taints, append([]hivev1.TaintIdentifier{taintIdentifier(LeavingTaint)}, w.Pool.Owned.Taints...))
	switch {
	case w.Pool.Range == nil || n.Pods > 0:
		n.EmptySince = time.Time{}
	case n.EmptySince.IsZero() || n.EmptySince.After(now):
		n.EmptySince = now.UTC().Truncate(time.Second)
	}
	return n
}

// notReadyReason returns why a worker of the pool is not ready.
func (w poolWorker) notReadyReason() string {
	switch {
	case w.machine.Problem != "":
		return fmt.Sprintf("machine %s does not run: %s", w.name, w.machine.Problem)
	case w.node == nil:
		return fmt.Sprintf("machine %s has not joined yet", w.name) + w.machine.formatObstacle()
	case !w.node.Ready:
		return fmt.Sprintf("node %s is not ready", w.name) + w.machine.formatObstacle()
	}
	return ""
}

// formatObstacle returns the obstacle as the end of a clause.
func (m Machine) formatObstacle() string {
	if m.Obstacle == "" {
		return ""
	}
	return ": " + m.Obstacle
}

func (w WorkerSnapshot) ownedByWorkers(all []poolWorker) OwnedMetadata {
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
	return w.Pool.computeOwned(labels, machines, taints)
}

// workerStatus returns the replicas and the status, in which one entry stands for all workers.
func (w WorkerSnapshot) workerStatus(have []poolWorker, want int64) (int64, []hivev1.MachineSetStatus) {
	st := hivev1.MachineSetStatus{
		Name: strings.TrimSuffix(w.machineNamePrefix(), "-"), Replicas: int32(want), MinReplicas: int32(want), MaxReplicas: int32(want),
	}
	if r := w.Pool.Range; r != nil {
		st.MinReplicas, st.MaxReplicas = int32(r.Min), int32(r.Max)
	}
	for _, m := range have {
		if m.node != nil && m.node.Ready {
			st.ReadyReplicas++
		}
		if m.machine.Problem != "" && st.ErrorMessage == nil {
			why := m.notReadyReason()
			st.ErrorMessage = &why
		}
	}
	return int64(len(have)), []hivev1.MachineSetStatus{st}
}
