package machinepool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// told returns a plan as text: its steps without their reasons.
func told(d Plan) string {
	var out []string
	for _, s := range d.Steps {
		out = append(out, string(s.Verb)+" "+s.Name)
	}
	return strings.Join(out, "; ")
}

// at are machines with ready nodes, created one hour ago, each a minute after the previous one.
func at(names ...string) WorkerSnapshot {
	c := WorkerSnapshot{InfraID: "c", Pool: Pool{Name: "p"}}
	for i, n := range names {
		c.Machines = append(c.Machines, Machine{Name: n, Created: now.Add(time.Duration(i)*time.Minute - time.Hour)})
		c.Nodes = append(c.Nodes, Node{Name: n, Ready: true})
		c.Objects = append(c.Objects, MachineObject{Name: n, Labels: map[string]string{hivev1.LabelMachinePool: "p"}})
	}
	return c
}

func (w WorkerSnapshot) with(edit func(c *WorkerSnapshot)) WorkerSnapshot {
	edit(&w)
	return w
}

func replicas(n int64) func(*WorkerSnapshot) { return func(c *WorkerSnapshot) { c.Pool.Replicas = n } }

func TestWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		crew WorkerSnapshot
		want string
	}{
		"none are asked for":                     {at(), ""},
		"some are added":                         {at().with(replicas(2)), "add worker c-p-0; add worker c-p-1"},
		"the lowest free numbers":                {at("c-p-1").with(replicas(3)), "add worker c-p-0; add worker c-p-2"},
		"as many as there are":                   {at("c-p-0", "c-p-1").with(replicas(2)), ""},
		"of equal ones the newest goes":          {at("c-p-0", "c-p-1").with(replicas(1)), "remove worker c-p-1"},
		"the newest by time, not by number":      {at("c-p-1", "c-p-0").with(replicas(1)), "remove worker c-p-0"},
		"of two of one moment the higher number": {at("c-p-0", "c-p-1", "c-p-2").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 2; c.Machines[1].Created = c.Machines[2].Created }), "remove worker c-p-2"},
		"the emptiest goes first":                {at("c-p-0", "c-p-1").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 1; c.Nodes[1].Pods = 3; c.Nodes[0].Pods = 2 }), "remove worker c-p-0"},
		"who has not joined goes before":         {at("c-p-0", "c-p-1").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 1; c.Nodes = c.Nodes[1:]; c.Machines[0].Created = now }), "remove worker c-p-0"},
		"who has begun to leave goes on":         {at("c-p-0", "c-p-1").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 1; c.Nodes[0].Taints = []corev1.Taint{LeavingTaint} }), "remove worker c-p-0"},
		"who has begun to leave may stay":        {at("c-p-0").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 1; c.Nodes[0].Taints = []corev1.Taint{LeavingTaint} }), "update node c-p-0"},
		"others' are left alone":                 {at("c-q-0", "c-p-q-0", "c-master-0", "d-p-0", "c-p-00", "c-p--1", "c-p-1x", "c-p"), ""},
		"a node without a machine is forgotten":  {at("c-p-0").with(func(c *WorkerSnapshot) { c.Machines = nil }), "delete node c-p-0"},
		"so is a Machine":                        {at("c-p-0").with(func(c *WorkerSnapshot) { c.Machines, c.Nodes = nil, nil }), "delete node c-p-0"},
		"its name is not used before":            {at("c-p-0").with(func(c *WorkerSnapshot) { c.Machines = nil; c.Pool.Replicas = 1 }), "delete node c-p-0; add worker c-p-1"},
		"a deleted pool has none":                {at("c-p-0", "c-p-1").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 2; c.Pool.Deleted = true }), "remove worker c-p-1; remove worker c-p-0"},
		"settings do not keep it":                {at("c-p-0").with(func(c *WorkerSnapshot) { c.PlatformSettings = []string{"aws"}; c.Pool.Deleted = true }), "remove worker c-p-0"},
		"who never joins is replaced":            {at("c-p-0").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 1; c.Nodes = nil }), "remove worker c-p-0; add worker c-p-1"},
		"but not before its time": {at("c-p-0").with(func(c *WorkerSnapshot) {
			c.Pool.Replicas = 1
			c.Nodes = nil
			c.Machines[0].Created = now.Add(time.Second - JoinTimeout)
		}), ""},
		"nor soon after the cluster has resumed": {at("c-p-0").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 1; c.Nodes = nil; c.Up = now.Add(-time.Minute) }), ""},
		"nor if its platform is at fault":        {at("c-p-0").with(func(c *WorkerSnapshot) { c.Pool.Replicas = 1; c.Nodes = nil; c.Machines[0].Problem = "no disk" }), ""},
		"settings are refused":                   {at("c-p-0").with(func(c *WorkerSnapshot) { c.PlatformSettings = []string{"aws"} }), ""},
		"a second pool of one name has nothing":  {at("c-p-0").with(func(c *WorkerSnapshot) { c.Pool.DuplicateOf = "first"; c.Pool.Deleted = true }), ""},
		"the control plane is no pool":           {at("c-master-0").with(func(c *WorkerSnapshot) { c.Pool.Name = "master" }), ""},
		"a name must fit":                        {at().with(func(c *WorkerSnapshot) { c.Pool.Name = "../x"; c.Pool.Replicas = 1 }), ""},
		"autoscaling: at least so many":          {at().with(func(c *WorkerSnapshot) { c.Pool.Range = &Range{2, 3} }), "add worker c-p-0; add worker c-p-1"},
		"autoscaling: at most so many":           {at("c-p-0", "c-p-1").with(func(c *WorkerSnapshot) { c.Pool.Range = &Range{0, 1}; c.Nodes[0].Pods, c.Nodes[1].Pods = 2, 1 }), "remove worker c-p-1"},
		"autoscaling: one more for pods":         {at("c-p-0").with(func(c *WorkerSnapshot) { c.Pool.Range = &Range{0, 3}; c.Nodes[0].Pods = 1; c.Pending = 9 }), "add worker c-p-1"},
		"autoscaling: since when it is empty":    {at("c-p-0").with(func(c *WorkerSnapshot) { c.Pool.Range = &Range{0, 3} }), "update node c-p-0"},
		"autoscaling: not yet for long": {at("c-p-0").with(func(c *WorkerSnapshot) {
			c.Pool.Range = &Range{0, 3}
			c.Nodes[0].EmptySince = now.Add(time.Second - IdleTimeout)
		}), ""},
		"autoscaling: the idle one goes": {at("c-p-0", "c-p-1").with(func(c *WorkerSnapshot) {
			c.Pool.Range = &Range{0, 3}
			c.Nodes[0].EmptySince = now.Add(-IdleTimeout)
			c.Nodes[1].Pods = 1
		}), "remove worker c-p-0"},
		"autoscaling: no longer empty": {at("c-p-0").with(func(c *WorkerSnapshot) {
			c.Pool.Range = &Range{0, 3}
			c.Nodes[0].EmptySince = now.Add(-IdleTimeout)
			c.Nodes[0].Pods = 1
		}), "update node c-p-0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(DecideWorkers(tc.crew, now)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMarks(t *testing.T) {
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	sick := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}
	c := at("c-p-0")
	c.Pool.Replicas = 1
	c.Pool.Labels, c.Pool.MachineLabels, c.Pool.Taints = map[string]string{"a": "new"}, map[string]string{"m": "1"}, []corev1.Taint{gpu}
	c.Pool.Owned = OwnedMetadata{
		Labels: []string{"a", "old"}, MachineLabels: []string{"gone"},
		Taints: []hivev1.TaintIdentifier{{Key: "former", Effect: corev1.TaintEffectNoExecute}},
	}
	c.Nodes[0].Labels = map[string]string{"a": "was", "old": "x", "theirs": "y"}
	c.Nodes[0].Taints = []corev1.Taint{{Key: "gpu", Value: "no", Effect: gpu.Effect}, sick, {Key: "former", Effect: corev1.TaintEffectNoExecute}}
	c.Objects[0].Labels = map[string]string{"gone": "x", "role": "worker"}

	d := DecideWorkers(c, now)
	if len(d.Steps) != 2 {
		t.Fatalf("steps: %s", told(d))
	}
	if diff := cmp.Diff(map[string]string{"a": "new", "theirs": "y"}, d.Steps[0].Node.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]corev1.Taint{gpu, sick}, d.Steps[0].Node.Taints); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"m": "1", "role": "worker", hivev1.LabelMachinePool: "p"}, d.Steps[1].Labels); diff != "" {
		t.Error(diff)
	}
	want := OwnedMetadata{
		Labels: []string{"a", "old"}, MachineLabels: []string{"gone", "m"},
		Taints: []hivev1.TaintIdentifier{{Key: "former", Effect: corev1.TaintEffectNoExecute}, {Key: "gpu", Effect: gpu.Effect}},
	}
	if diff := cmp.Diff(want, d.Owned); diff != "" {
		t.Errorf("owned until they are seen to be gone: %s", diff)
	}
	c.Nodes[0], c.Objects[0].Labels, c.Pool.Owned = *d.Steps[0].Node, d.Steps[1].Labels, d.Owned
	if d = DecideWorkers(c, now); len(d.Steps) > 0 || slices.Contains(d.Owned.Labels, "old") || len(d.Owned.Taints) != 1 {
		t.Errorf("then: %s, %+v", told(d), d.Owned)
	}
}

func TestWhatWorkersAreAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*WorkerSnapshot)
		want string
	}{
		"nothing": {func(*WorkerSnapshot) {}, ""},
		"its images": {func(c *WorkerSnapshot) {
			c.Nodes, c.Machines[0].Created = nil, now.Add(-2*JoinTimeout)
			c.Machines[0].Obstacle = "the image a could not be pulled: no such host"
		}, "machine c-p-0 has not joined yet: the image a could not be pulled: no such host"},
		"its node":         {func(c *WorkerSnapshot) { c.Nodes = nil; c.Machines[0].Created = now }, "machine c-p-0 has not joined yet"},
		"its readiness":    {func(c *WorkerSnapshot) { c.Nodes[0].Ready = false }, "node c-p-0 is not ready"},
		"a better machine": {func(c *WorkerSnapshot) { c.Machines[0].Problem = "no disk" }, "machine c-p-0 does not run: no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := DecideWorkers(at("c-p-0").with(replicas(1)).with(tc.edit), now); d.Waiting != tc.want {
				t.Errorf("got %q, want %q", d.Waiting, tc.want)
			}
		})
	}
}

// From any state, with steps that are done in any order, some of them and some not, the
// pool comes to what it asks for, never touches what is another's, and rests there.
func TestWorkersConverge(t *testing.T) {
	first := rand.Uint64()
	t.Logf("seed %d", first)
	for i := range uint64(300) {
		seed := first + i
		r := rand.New(rand.NewPCG(seed, 0))
		c := at()
		c.Pool.Labels = map[string]string{"l": "v"}
		clock := now
		others := at("c-q-0", "c-p-q-1")
		for n := range r.IntN(6) {
			name := fmt.Sprint("c-p-", r.IntN(8))
			if r.IntN(4) > 0 && !slices.ContainsFunc(c.Machines, func(m Machine) bool { return m.Name == name }) {
				c.Machines = append(c.Machines, Machine{Name: name, Created: clock.Add(-time.Duration(n) * time.Minute)})
			}
			if r.IntN(4) > 0 && !slices.ContainsFunc(c.Nodes, func(m Node) bool { return m.Name == name }) {
				c.Nodes = append(c.Nodes, Node{Name: name, Ready: true, Pods: r.IntN(3)})
			}
		}
		c.Machines, c.Nodes = append(c.Machines, others.Machines...), append(c.Nodes, others.Nodes...)
		c.Pool.Replicas = r.Int64N(5)
		for pass := 0; ; pass++ {
			d := DecideWorkers(c, clock)
			if len(d.Steps) == 0 && d.Waiting == "" {
				break
			}
			if pass > 60 {
				t.Fatalf("seed %d: no rest: %s, %s", seed, told(d), d.Waiting)
			}
			done := d.Steps
			r.Shuffle(len(done), func(i, j int) { done[i], done[j] = done[j], done[i] })
			if pass < 30 {
				done = done[:r.IntN(len(done)+1)]
			}
			for _, s := range done {
				c = c.after(t, s, clock)
			}
			clock = clock.Add(time.Second)
			for _, m := range c.Machines { // they join
				if r.IntN(2) == 0 && !slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Name == m.Name }) {
					c.Nodes = append(c.Nodes, Node{Name: m.Name, Ready: true})
				}
			}
		}
		if n := int64(len(c.Machines) - len(others.Machines)); n != c.Pool.Replicas || len(c.Nodes) != len(c.Machines) {
			t.Fatalf("seed %d: %d machines and %d nodes, want %d", seed, n, len(c.Nodes), c.Pool.Replicas)
		}
	}
}

// after does a step.
func (w WorkerSnapshot) after(t *testing.T, s Step, at time.Time) WorkerSnapshot {
	t.Helper()
	if !strings.HasPrefix(s.Name, "c-p-") || strings.Contains(s.Name, "q") {
		t.Fatalf("%s is not the pool's", s)
	}
	machine := func(m Machine) bool { return m.Name == s.Name }
	node := func(n Node) bool { return n.Name == s.Name }
	switch s.Verb {
	case AddWorker:
		if slices.ContainsFunc(w.Machines, machine) || slices.ContainsFunc(w.Nodes, node) {
			t.Fatalf("%s: there is one", s)
		}
		w.Machines = append(slices.Clone(w.Machines), Machine{Name: s.Name, Created: at})
	case RemoveWorker:
		w.Machines = slices.DeleteFunc(slices.Clone(w.Machines), machine)
		w.Nodes = slices.DeleteFunc(slices.Clone(w.Nodes), node)
	case DeleteNode:
		w.Nodes = slices.DeleteFunc(slices.Clone(w.Nodes), node)
	case UpdateNode:
		w.Nodes = slices.Clone(w.Nodes)
		if i := slices.IndexFunc(w.Nodes, node); i >= 0 {
			w.Nodes[i] = *s.Node
		}
	default:
		t.Fatalf("unexpected: %s", s)
	}
	return w
}
