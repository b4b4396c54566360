package plan

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func pools() []v1alpha1.AgentPool {
	return []v1alpha1.AgentPool{
		{Type: "standard", MaxNodes: 9, NodesPerUnit: quantity("3")},
		{Type: "developer", MaxNodes: 1, UnitsPerNode: quantity("10")},
	}
}

// instance parses "uid kind units" and optional words: reserved, deleted, again (another
// placement).
func instance(s string) v1alpha1.AgentInstance {
	var in v1alpha1.AgentInstance
	var words string
	if _, err := fmt.Sscanf(s, "%s %s %d", &in.UID, &in.Type, &in.Units); err != nil {
		panic(s + ": " + err.Error())
	}
	words = s
	in.Namespace, in.Name, in.Size, in.PlacementID = "ns", "i-"+in.UID, "x1", "p1"
	in.Versions = v1alpha1.InstanceVersions{Strimzi: "s1", Kafka: "3.9.0", KafkaIBP: "3.9"}
	in.Deleted = strings.Contains(words, "deleted")
	if strings.Contains(words, "again") {
		in.PlacementID = "p2"
	}
	if strings.Contains(words, "reserved") {
		in.Reserved, in.Namespace = true, ""
		in.UID = "reserved-kafka-" + in.Type + "-" + in.UID
		in.Name = in.UID
	}
	return in
}

func instances(list ...string) []v1alpha1.AgentInstance {
	var out []v1alpha1.AgentInstance
	for _, s := range list {
		out = append(out, instance(s))
	}
	return out
}

// made returns the world after these instances have been applied.
func made(standIn bool, list ...string) World {
	w := World{}
	for _, s := range list {
		in := instance(s)
		pool, _ := v1alpha1.DataPlaneAgentSpec{Pools: pools()}.Pool(in.Type)
		objects, err := Render(in, pool, "pause", standIn)
		if err != nil {
			panic(err)
		}
		for _, u := range objects {
			w.Add(u.DeepCopy())
		}
	}
	return w
}

func (w World) drop(kind, namespace, name string) World {
	delete(w, Key{kind, namespace, name})
	return w
}

// status sets the status of an object.
func (w World) status(kind, namespace, name, status string) World {
	u := w[Key{kind, namespace, name}]
	var s map[string]any
	if err := json.Unmarshal([]byte(status), &s); err != nil {
		panic(err)
	}
	for k, v := range s { // the API returns whole numbers as int64
		if f, ok := v.(float64); ok {
			s[k] = int64(f)
		}
	}
	u.Object["status"] = s
	return w
}

func (w World) going(kind, namespace, name string) World {
	w[Key{kind, namespace, name}].SetDeletionTimestamp(&noon)
	return w
}

func words(p Plan) string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, s.String())
	}
	for _, r := range p.Report.Instances {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s is %s %s", r.UID, r.Phase, r.Reason)))
	}
	return strings.Join(lines, "; ")
}

func readyStatus(reason string) string {
	status := "False"
	if reason == "" {
		status = "True"
	}
	return `{"conditions":[{"type":"Ready","status":"` + status + `","reason":"` + reason + `"}]}`
}

func TestDecide(t *testing.T) {
	const mk, ns, dep = "ManagedKafka", "Namespace", "Deployment"
	for name, c := range map[string]struct {
		listed  []string
		world   World
		standIn bool
		want    string
	}{
		"nothing is listed, and nothing is done": {want: ""},
		"a listed instance is made": {
			listed: []string{"a standard 1"},
			want:   "create Namespace kafka-a; apply ManagedKafka kafka-a/i-a; a is Provisioning Installing",
		},
		"a reserved one is made with placeholders": {
			listed: []string{"1 standard 1 reserved"},
			want: "create Namespace reserved-kafka-standard-1; apply ManagedKafka reserved-kafka-standard-1/reserved-kafka-standard-1; " +
				"apply Deployment reserved-kafka-standard-1/placeholder; reserved-kafka-standard-1 is Provisioning Installing",
		},
		"the stand-in makes pods of a real one": {
			listed: []string{"a standard 1"}, standIn: true,
			want: "create Namespace kafka-a; apply ManagedKafka kafka-a/i-a; apply Deployment kafka-a/stand-in; a is Provisioning Installing",
		},
		"what is as listed is left alone": {
			listed: []string{"a standard 1"}, world: made(false, "a standard 1").status(mk, "kafka-a", "i-a", readyStatus("")),
			want: "a is Ready",
		},
		"what is missing is made again": {
			listed: []string{"1 standard 1 reserved"}, world: made(false, "1 standard 1 reserved").drop(dep, "reserved-kafka-standard-1", "placeholder"),
			want: "apply Deployment reserved-kafka-standard-1/placeholder; reserved-kafka-standard-1 is Provisioning Installing",
		},
		"an operator's error is told": {
			listed: []string{"a standard 1"}, world: made(false, "a standard 1").status(mk, "kafka-a", "i-a", readyStatus("Error")),
			want: "a is Failed Error",
		},
		"an operator's refusal is told": {
			listed: []string{"a standard 1"}, world: made(false, "a standard 1").status(mk, "kafka-a", "i-a", readyStatus("Rejected")),
			want: "a is Rejected Rejected",
		},
		"a status of another form is told": {
			listed: []string{"a standard 1"}, world: made(false, "a standard 1").status(mk, "kafka-a", "i-a", `{"conditions":"none"}`),
			want: "a is Provisioning StatusUnreadable",
		},
		"placeholders that run are ready": {
			listed: []string{"1 standard 1 reserved"},
			world:  made(false, "1 standard 1 reserved").status(dep, "reserved-kafka-standard-1", "placeholder", `{"availableReplicas":3}`),
			want:   "reserved-kafka-standard-1 is Ready",
		},
		"two of three are not": {
			listed: []string{"1 standard 1 reserved"},
			world:  made(false, "1 standard 1 reserved").status(dep, "reserved-kafka-standard-1", "placeholder", `{"availableReplicas":2}`),
			want:   "reserved-kafka-standard-1 is Provisioning Installing",
		},
		"what does not fthe object is refused": {
			listed: []string{"a standard 2", "b standard 2", "c standard 1"},
			want: "create Namespace kafka-a; apply ManagedKafka kafka-a/i-a; create Namespace kafka-c; apply ManagedKafka kafka-c/i-c; " +
				"a is Provisioning Installing; b is Rejected NoRoom; c is Provisioning Installing",
		},
		"what is there keeps its place": {
			listed: []string{"a standard 2", "b standard 2"}, world: made(false, "b standard 2"),
			want: "a is Rejected NoRoom; b is Provisioning Installing",
		},
		"reserved ones take no room": {
			listed: []string{"1 standard 3 reserved", "a standard 3"}, world: made(false, "1 standard 3 reserved"),
			want: "create Namespace kafka-a; apply ManagedKafka kafka-a/i-a; reserved-kafka-standard-1 is Provisioning Installing; a is Provisioning Installing",
		},
		"a type without nodes is refused": {
			listed: []string{"a huge 1"}, want: "a is Rejected NoPool",
		},
		"one that is to go is marked first": {
			listed: []string{"a standard 1 deleted"}, world: made(false, "a standard 1").status(mk, "kafka-a", "i-a", readyStatus("")),
			want: "apply ManagedKafka kafka-a/i-a; a is Deleting",
		},
		"its operator is waited for": {
			listed: []string{"a standard 1 deleted"}, world: made(false, "a standard 1 deleted").status(mk, "kafka-a", "i-a", readyStatus("")),
			want: "a is Deleting",
		},
		"then the ManagedKafka goes": {
			listed: []string{"a standard 1 deleted"}, world: made(false, "a standard 1 deleted").status(mk, "kafka-a", "i-a", readyStatus("Deleted")),
			want: "delete ManagedKafka kafka-a/i-a; a is Deleting",
		},
		"then the namespace": {
			listed: []string{"a standard 1 deleted"}, world: made(false, "a standard 1 deleted").drop(mk, "kafka-a", "i-a"),
			want: "delete Namespace kafka-a; a is Deleting",
		},
		"which takes its time": {
			listed: []string{"a standard 1 deleted"}, world: made(false, "a standard 1 deleted").drop(mk, "kafka-a", "i-a").going(ns, "", "kafka-a"),
			want: "a is Deleting",
		},
		"then it is gone": {
			listed: []string{"a standard 1 deleted"}, want: "a is Deleted",
		},
		"the stand-in takes its pods away": {
			listed: []string{"a standard 1 deleted"}, standIn: true, world: made(true, "a standard 1 deleted"),
			want: "delete Deployment kafka-a/stand-in; a is Deleting",
		},
		"and says so": {
			listed: []string{"a standard 1 deleted"}, standIn: true, world: made(true, "a standard 1 deleted").drop(dep, "kafka-a", "stand-in"),
			want: "update status of ManagedKafka kafka-a/i-a; a is Deleting",
		},
		"the stand-in's pods run": {
			listed: []string{"a standard 1"}, standIn: true,
			world: made(true, "a standard 1").status(dep, "kafka-a", "stand-in", `{"availableReplicas":3}`),
			want:  "update status of ManagedKafka kafka-a/i-a; a is Ready",
		},
		"a real one that is not listed is left alone": {
			world: made(false, "a standard 1"), want: "a is Unlisted",
		},
		"a reserved one that is not listed goes": {
			world: made(false, "1 standard 1 reserved"), want: "delete Namespace reserved-kafka-standard-1",
		},
		"so does a namespace without an instance": {
			world: made(false, "a standard 1").drop(mk, "kafka-a", "i-a"), want: "delete Namespace kafka-a",
		},
		"one that was marked as deleted goes, though it is not listed any more": {
			world: made(false, "a standard 1 deleted").status(mk, "kafka-a", "i-a", readyStatus("Deleted")),
			want:  "delete ManagedKafka kafka-a/i-a; a is Deleting",
		},
		"another placement waits for the end of the one before": {
			listed: []string{"a standard 1 again"}, world: made(false, "a standard 1"),
			want: "apply ManagedKafka kafka-a/i-a; a is Provisioning Replacing",
		},
		"one that goes does not come back": {
			listed: []string{"a standard 1"}, world: made(false, "a standard 1 deleted"),
			want: "a is Provisioning Replacing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{
				Spec:  v1alpha1.DataPlaneAgentSpec{Pools: pools(), Instances: instances(c.listed...)},
				World: c.world, StandIn: c.standIn, Pause: "pause", Now: noon,
			}
			if diff := cmp.Diff(c.want, words(Decide(s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCapacityIsArithmetic(t *testing.T) {
	r := Decide(Snapshot{Spec: v1alpha1.DataPlaneAgentSpec{
		Pools: pools(), Instances: instances("a standard 2", "1 developer 3 reserved", "b developer 4"),
	}, World: made(false, "z developer 9")}).Report // z is not listed, but takes its units
	want := map[string]v1alpha1.ReportedCapacity{
		"standard":  {MaxNodes: 9, MaxUnits: 3, RemainingUnits: 1},
		"developer": {MaxNodes: 1, MaxUnits: 10, RemainingUnits: 1, ReservedUnits: 3},
	}
	if diff := cmp.Diff(want, r.Capacity); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsAreTheOperators(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ManagedKafkaAgent)
	u.SetName("managed-agent")
	w := World{}
	w.Add(u)
	r := Decide(Snapshot{World: w}).Report
	if r.Ready || r.Reason != v1alpha1.ReasonNoOperator || r.Message == "" {
		t.Errorf("without a version it says %+v", r)
	}
	raw := `{"strimzi":[{"version":"s2","ready":true,"kafkaVersions":["3.0","3.0","3.1"]},{"version":"s1","kafkaIbpVersions":["3"]},{"version":""}]}`
	w.status("ManagedKafkaAgent", "", "managed-agent", raw)
	r = Decide(Snapshot{World: w}).Report
	want := []v1alpha1.OperatorVersion{{Strimzi: "s1", KafkaIBP: []string{"3"}}, {Strimzi: "s2", Ready: true, Kafka: []string{"3.0", "3.1"}}}
	if diff := cmp.Diff(want, r.Versions); diff != "" || !r.Ready {
		t.Errorf("ready %t: %s", r.Ready, diff)
	}
}

func TestRender(t *testing.T) {
	real, reserved := instance("0c1f standard 2"), instance("1 developer 2 reserved")
	real.Capacity = &v1alpha1.KafkaCapacity{IngressPerSec: quantity("50Mi"), TotalMaxConnections: 9000, MaxDataRetentionPeriod: "P14D", ReplicationFactor: 3}
	real.Parameters = &runtime.RawExtension{Raw: []byte(`{"owners":["me"],"endpoint":{"bootstrapServerHost":"k.example.com"},"deleted":true,"versions":{"kafka":"mine"}}`)}
	for name, c := range map[string]struct {
		in      v1alpha1.AgentInstance
		pool    v1alpha1.AgentPool
		standIn bool
	}{
		"real": {real, pools()[0], false}, "stand-in": {real, pools()[0], true}, "reserved": {reserved, pools()[1], false},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Render(c.in, c.pool, "pause", c.standIn)
			if err != nil {
				t.Fatal(err)
			}
			var docs []string
			for _, u := range objects {
				raw, err := yaml.Marshal(u.Object)
				if err != nil {
					t.Fatal(err)
				}
				docs = append(docs, string(raw))
			}
			golden(t, name+".yaml", strings.Join(docs, "---\n"))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestParametersThatAreNoFields(t *testing.T) {
	in := instance("a standard 1")
	for _, raw := range []string{`[]`, `"x"`, `null`, `{`} {
		in.Parameters = &runtime.RawExtension{Raw: []byte(raw)}
		p := Decide(Snapshot{Spec: v1alpha1.DataPlaneAgentSpec{Pools: pools(), Instances: []v1alpha1.AgentInstance{in}}})
		if got := words(p); got != "a is Failed InvalidParameters" {
			t.Errorf("%s: %s", raw, got)
		}
	}
}

func TestHowManyPods(t *testing.T) {
	for name, c := range map[string]struct {
		units int32
		pool  v1alpha1.AgentPool
		want  string
	}{
		"three nodes a unit":                  {2, v1alpha1.AgentPool{NodesPerUnit: quantity("3")}, "6 of map[cpu:2900m memory:17Gi] alone true"},
		"one and a half":                      {3, v1alpha1.AgentPool{NodesPerUnit: quantity("1500m")}, "5 of map[cpu:2900m memory:17Gi] alone true"},
		"ten units a node":                    {2, v1alpha1.AgentPool{NodesPerUnit: quantity("0.1")}, "2 of map[cpu:290m memory:1825361100] alone false"},
		"three units a node":                  {1, v1alpha1.AgentPool{UnitsPerNode: quantity("3")}, "1 of map[cpu:966m memory:6084537002] alone false"},
		"no nodes a unit, which nobody means": {2, v1alpha1.AgentPool{NodesPerUnit: quantity("0")}, "2 of map[cpu:2900m memory:17Gi] alone true"},
		"a unit on two nodes":                 {1, v1alpha1.AgentPool{UnitsPerNode: quantity("0.5")}, "2 of map[cpu:2900m memory:17Gi] alone true"},
	} {
		t.Run(name, func(t *testing.T) {
			n, requests, alone := podsForUnits(c.units, c.pool)
			if got := fmt.Sprintf("%d of %v alone %t", n, requests, alone); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
