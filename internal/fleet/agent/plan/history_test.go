package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// sim is a hub, a data plane and its operator, with random events at any time.
type sim struct {
	*rand.Rand
	spec    v1alpha1.DataPlaneAgentSpec
	world   World
	standIn bool
	next    int
	// lost are real instances that the hub has forgotten without deleting them.
	lost map[string]bool
	// ordered are the instances that the hub ever deleted or placed again.
	ordered map[string]bool
}

// hub lists, deletes, forgets and places instances again.
func (s *sim) hub() {
	list := &s.spec.Instances
	switch s.IntN(6) {
	case 0, 1:
		s.next++
		*list = append(*list, instance(fmt.Sprintf("%d %s %d", s.next, []string{"standard", "developer"}[s.IntN(2)], 1+s.IntN(3))))
	case 2:
		name := fmt.Sprintf("%d standard 1 reserved", 1+s.IntN(2))
		i := slices.IndexFunc(*list, func(in v1alpha1.AgentInstance) bool { return in.UID == instance(name).UID })
		if i < 0 {
			*list = append(*list, instance(name))
		} else {
			*list = slices.Delete(*list, i, i+1)
		}
	default:
		if len(*list) == 0 {
			return
		}
		i := s.IntN(len(*list))
		in := &(*list)[i]
		switch s.IntN(4) {
		case 0, 1:
			in.Deleted = true
			s.ordered[in.UID] = true
		case 2:
			if in.Deleted || s.IntN(3) == 0 {
				in.Deleted, in.PlacementID = false, in.PlacementID+"x"
				s.ordered[in.UID] = true
			}
		case 3:
			if !in.Reserved && !in.Deleted && s.IntN(4) == 0 {
				s.lost[in.UID] = true
				*list = slices.Delete(*list, i, i+1)
			}
		}
	}
}

// plane is what others do on the data plane.
func (s *sim) plane() {
	for _, key := range s.keys() {
		u := s.world[key]
		if s.IntN(2) == 0 {
			continue
		}
		switch {
		case key.Kind == Namespace.Kind && isTerminating(u):
			for other := range s.world {
				if other.Namespace == key.Name {
					delete(s.world, other)
				}
			}
			delete(s.world, key)
		case key.Kind == Deployment.Kind:
			s.world.status(key.Kind, key.Namespace, key.Name, fmt.Sprintf(`{"availableReplicas":%d}`, s.IntN(10)))
		case key.Kind == ManagedKafka.Kind && !s.standIn:
			reason := []string{"", "Installing", "Error"}[s.IntN(3)]
			if parseManagedKafka(u).Spec.Deleted {
				reason = reasonDeleted
			}
			s.world.status(key.Kind, key.Namespace, key.Name, readyStatus(reason))
		}
	}
}

func (s *sim) keys() []Key {
	var out []Key
	for key := range s.world {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b Key) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

func (s *sim) seen() Snapshot {
	w := World{}
	for k, u := range s.world {
		w[k] = u.DeepCopy()
	}
	return Snapshot{Spec: *s.spec.DeepCopy(), World: w, StandIn: s.standIn, Pause: "pause", Now: noon}
}

// act executes the first n steps: the agent may be killed after any of them.
func (s *sim) act(t *testing.T, p Plan, n int) {
	t.Helper()
	for _, step := range p.Steps[:min(n, len(p.Steps))] {
		u := step.Object.DeepCopy()
		key := Key{u.GetKind(), u.GetNamespace(), u.GetName()}
		old := s.world[key]
		switch step.Verb {
		case Create:
			if old != nil {
				t.Fatalf("%s: it is there", step)
			}
			s.world.Add(u)
		case Apply:
			if ns := s.world[Key{Kind: Namespace.Kind, Name: u.GetNamespace()}]; ns == nil || isTerminating(ns) {
				t.Fatalf("%s: its namespace is not there", step)
			}
			s.permitted(t, step, old)
			if old != nil {
				u.Object["status"] = old.Object["status"]
			}
			s.world.Add(u)
		case UpdateStatus:
			old.Object["status"] = u.Object["status"]
		case Remove:
			s.removed(t, step, old)
		}
	}
}

// permitted checks that no ManagedKafka is marked as deleted unless the hub has deleted the
// instance.
func (s *sim) permitted(t *testing.T, step Step, old *unstructured.Unstructured) {
	t.Helper()
	if old == nil || old.GetKind() != ManagedKafka.Kind {
		return
	}
	if was, is := parseManagedKafka(old), parseManagedKafka(step.Object); was.Spec.Deleted && !is.Spec.Deleted && !was.isReserved() {
		t.Fatalf("%s: it takes a deletion back", step)
	} else if !was.Spec.Deleted && is.Spec.Deleted && !s.ordered[step.ID] {
		t.Fatalf("%s: nobody has ordered that", step)
	}
}

func (s *sim) removed(t *testing.T, step Step, old *unstructured.Unstructured) {
	t.Helper()
	if old.GetKind() != Namespace.Kind {
		if old.GetKind() == ManagedKafka.Kind && IsLive(old) {
			t.Fatalf("%s: a real instance is lost", step)
		}
		delete(s.world, Key{old.GetKind(), old.GetNamespace(), old.GetName()})
		return
	}
	for key, u := range s.world {
		if key.Namespace == old.GetName() && key.Kind == ManagedKafka.Kind && IsLive(u) {
			t.Fatalf("%s: the real instance in it is lost", step)
		}
	}
	old.SetDeletionTimestamp(&noon)
}

func TestHistories(t *testing.T) {
	for seed := range uint64(16) {
		s := &sim{Rand: rand.New(rand.NewPCG(seed, 1)), world: World{}, standIn: seed%2 == 0, lost: map[string]bool{}, ordered: map[string]bool{}}
		s.spec.Pools = pools()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			for range 40 {
				s.hub()
				s.plane()
				p := Decide(s.seen())
				s.same(t, p)
				s.reported(t, p.Report)
				s.act(t, p, s.IntN(len(p.Steps)+2))
			}
			s.settle(t)
		})
	}
}

// same checks that the plan does not depend on the order of lists and maps.
func (s *sim) same(t *testing.T, p Plan) {
	t.Helper()
	other := s.seen()
	s.Shuffle(len(other.Spec.Instances), func(i, j int) {
		l := other.Spec.Instances
		l[i], l[j] = l[j], l[i]
	})
	if a, b := words(p), words(Decide(other)); a != b {
		t.Fatalf("in another order:\n%s\n%s", a, b)
	}
}

// reported checks that the remaining units are between zero and the maximum, that no instance is
// reported twice, and that what is reported as deleted is deleted.
func (s *sim) reported(t *testing.T, r v1alpha1.DataPlaneReport) {
	t.Helper()
	for name, c := range r.Capacity {
		if c.RemainingUnits < 0 || c.RemainingUnits > c.MaxUnits {
			t.Fatalf("%s: %+v", name, c)
		}
	}
	told := map[string]int{}
	for _, i := range r.Instances {
		told[i.UID]++
		if told[i.UID] > 1 {
			t.Fatalf("%s is told of twice", i.UID)
		}
		if i.Phase == v1alpha1.AgentDeleted && s.world[Key{Kind: Namespace.Kind, Name: NamespaceOf(v1alpha1.AgentInstance{UID: i.UID, Reserved: i.Reserved})}] != nil {
			t.Fatalf("%s is not gone", i.UID)
		}
	}
	for _, in := range s.spec.Instances {
		if told[in.UID] != 1 {
			t.Fatalf("%s is listed, and told of %d times", in.UID, told[in.UID])
		}
	}
}

// settle checks that the agent settles once the hub does nothing; that no more instances exist than
// fit; and that the instances that the hub has lost still exist.
func (s *sim) settle(t *testing.T) {
	t.Helper()
	var p Plan
	for range 40 {
		for range 5 { // the operator is done
			s.plane()
		}
		for _, key := range s.keys() {
			if key.Kind == Deployment.Kind {
				s.world.status(key.Kind, key.Namespace, key.Name, `{"availableReplicas":1000}`)
			}
		}
		p = Decide(s.seen())
		s.act(t, p, len(p.Steps))
	}
	if len(p.Steps) > 0 {
		t.Fatalf("it does not come to rest:\n%s", p)
	}
	used := map[string]int32{}
	for _, u := range s.world {
		if u.GetKind() == ManagedKafka.Kind && !parseManagedKafka(u).isReserved() {
			used[parseManagedKafka(u).instanceType()] += parseManagedKafka(u).unitCount()
		}
	}
	for _, pool := range s.spec.Pools {
		if used[pool.Type] > pool.MaxUnits() {
			t.Errorf("%d units of %s are used, of %d", used[pool.Type], pool.Type, pool.MaxUnits())
		}
	}
	for _, i := range p.Report.Instances {
		if i.Phase == v1alpha1.AgentDeleting || i.Phase == v1alpha1.AgentUnlisted && !s.lost[i.UID] {
			t.Errorf("%s is %s for ever", i.UID, i.Phase)
		}
	}
}
