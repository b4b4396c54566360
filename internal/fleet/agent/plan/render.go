package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// PriorityClass is the priority class of placeholders. Its value is below that of all other pods,
// and above what the cluster autoscaler calls expendable (-10), so that the autoscaler adds nodes
// for them.
const (
	PriorityClass      = "hotspare-reservation"
	PriorityClassValue = -4
)

// NamespaceOf returns the namespace of an instance on a data plane: kafka- and its ID, as the fleet
// manager names it, or the name of a reserved one. It has at most 63 characters, and is unique to
// the instance, even if an earlier instance had the same name.
func NamespaceOf(in v1alpha1.AgentInstance) string {
	if in.Reserved {
		return in.UID
	}
	return "kafka-" + in.UID
}

// Render returns the objects of an instance: its namespace, its ManagedKafka, and a Deployment: of
// placeholders if the instance is reserved, or of its stand-in if standIn is set.
func Render(in v1alpha1.AgentInstance, pool v1alpha1.AgentPool, pause string, standIn bool) ([]*unstructured.Unstructured, error) {
	mk, err := renderKafka(in)
	if err != nil {
		return nil, err
	}
	out := []*unstructured.Unstructured{renderNamespace(in), mk}
	if in.Reserved || standIn {
		out = append(out, renderDeployment(in, pool, pause))
	}
	return out, nil
}

func newObject(kind schema.GroupVersionKind, namespace, name string, labels map[string]any) *unstructured.Unstructured {
	meta := map[string]any{"name": name, "labels": labels}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": meta}}
	u.SetGroupVersionKind(kind)
	return u
}

func instanceLabels(in v1alpha1.AgentInstance) map[string]any {
	return map[string]any{LabelManagedBy: ManagedBy, LabelInstance: in.UID}
}

func renderNamespace(in v1alpha1.AgentInstance) *unstructured.Unstructured {
	u := newObject(Namespace, "", NamespaceOf(in), instanceLabels(in))
	if !in.Reserved {
		u.SetAnnotations(map[string]string{annotationOwner: in.Namespace + "/" + in.Name})
	}
	return u
}

func renderKafka(in v1alpha1.AgentInstance) (*unstructured.Unstructured, error) {
	labels := instanceLabels(in)
	labels[v1alpha1.LabelInstanceType] = in.Type
	labels[v1alpha1.LabelUnits] = strconv.Itoa(int(in.Units))
	notes := map[string]string{v1alpha1.AnnotationID: in.UID, v1alpha1.AnnotationPlacementID: in.PlacementID}
	if in.Reserved {
		labels[v1alpha1.LabelDeployment] = v1alpha1.DeploymentReserved
		// The agent creates the placeholders; a fleetshard operator would create them again.
		notes["managedkafka.bf2.org/pause-reconciliation"] = "true"
	}
	spec, err := kafkaSpec(in)
	if err != nil {
		return nil, err
	}
	u := newObject(ManagedKafka, NamespaceOf(in), in.Name, labels)
	u.SetAnnotations(notes)
	u.Object["spec"] = spec
	return addAppliedHash(u), nil
}

// kafkaSpec returns the spec of the ManagedKafka: the parameters, overridden by the fields that hub
// and agent set.
func kafkaSpec(in v1alpha1.AgentInstance) (map[string]any, error) {
	spec := map[string]any{}
	if p := in.Parameters; p != nil && len(p.Raw) > 0 {
		if err := json.Unmarshal(p.Raw, &spec); err != nil || spec == nil {
			return nil, fmt.Errorf("spec.parameters is not a JSON object: write fields of the spec of a ManagedKafka, such as owners")
		}
	}
	if _, there := spec["endpoint"]; !there {
		spec["endpoint"] = map[string]any{"bootstrapServerHost": in.UID + "-dummyhost"}
	}
	if _, there := spec["owners"]; !there {
		spec["owners"] = []any{}
	}
	spec["capacity"] = kafkaCapacity(in.Capacity)
	versions := map[string]any{"kafka": in.Versions.Kafka, "strimzi": in.Versions.Strimzi}
	if in.Versions.KafkaIBP != "" {
		versions["kafkaIbp"] = in.Versions.KafkaIBP
	}
	spec["versions"] = versions
	spec["deleted"] = in.Deleted
	return spec, nil
}

// kafkaCapacity returns the capacity fields that a ManagedKafka has.
func kafkaCapacity(c *v1alpha1.KafkaCapacity) map[string]any {
	out := map[string]any{}
	if c == nil {
		return out
	}
	for name, q := range map[string]*resource.Quantity{
		"ingressPerSec": c.IngressPerSec, "egressPerSec": c.EgressPerSec, "maxDataRetentionSize": c.MaxDataRetentionSize,
	} {
		if q != nil {
			out[name] = q.String()
		}
	}
	for name, n := range map[string]int32{
		"totalMaxConnections": c.TotalMaxConnections, "maxPartitions": c.MaxPartitions,
		"maxConnectionAttemptsPerSec": c.MaxConnectionAttemptsPerSec,
	} {
		if n != 0 {
			out[name] = int64(n)
		}
	}
	if c.MaxDataRetentionPeriod != "" {
		out["maxDataRetentionPeriod"] = c.MaxDataRetentionPeriod
	}
	return out
}

// deploymentName returns a constant name: each instance has its own namespace.
func deploymentName(reserved bool) string {
	if reserved {
		return "placeholder"
	}
	return "stand-in"
}

// renderDeployment returns a Deployment of pods that do nothing and take the room of an instance:
// with the lowest priority if it is reserved, and with normal priority if not.
func renderDeployment(in v1alpha1.AgentInstance, pool v1alpha1.AgentPool, pause string) *unstructured.Unstructured {
	replicas, requests, alone := podsForUnits(in.Units, pool)
	labels := instanceLabels(in)
	labels[v1alpha1.LabelInstanceType] = in.Type
	pod := map[string]any{
		"automountServiceAccountToken":  false,
		"enableServiceLinks":            false,
		"terminationGracePeriodSeconds": int64(0),
		"affinity":                      podAffinity(in.Type, alone),
		"tolerations": []any{map[string]any{
			"key": v1alpha1.LabelInstanceType, "operator": "Equal", "value": in.Type, "effect": "NoExecute",
		}},
		"containers": []any{map[string]any{
			"name": "pause", "image": pause,
			"resources":       map[string]any{"requests": requests},
			"securityContext": map[string]any{"allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": int64(65534), "capabilities": map[string]any{"drop": []any{"ALL"}}},
		}},
	}
	if in.Reserved {
		pod["priorityClassName"] = PriorityClass
	}
	u := newObject(Deployment, NamespaceOf(in), deploymentName(in.Reserved), labels)
	u.Object["spec"] = map[string]any{
		"replicas": replicas,
		// There is no room for a new pod while the old one runs.
		"strategy": map[string]any{"type": "Recreate"},
		"selector": map[string]any{"matchLabels": map[string]any{LabelInstance: in.UID}},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod},
	}
	return addAppliedHash(u)
}

// podAffinity keeps pods on nodes of their type; with alone, each pod gets a node of its own.
func podAffinity(kind string, alone bool) map[string]any {
	out := map[string]any{"nodeAffinity": map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
			"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
				map[string]any{"key": v1alpha1.LabelInstanceType, "operator": "In", "values": []any{kind}},
			}}},
		},
	}}
	if alone {
		out["podAntiAffinity"] = map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"labelSelector":     map[string]any{"matchLabels": map[string]any{v1alpha1.LabelInstanceType: kind}},
			"namespaceSelector": map[string]any{}, // all namespaces
			"topologyKey":       corev1.LabelHostname,
		}}}
	}
	return out
}

// nodeCPU and nodeMemory are what the pods of instances request on one node when the pool does not
// set it. Together with what each node runs anyway, they fit on the smallest nodes that the fleet
// manager uses, with 4 CPUs and 32 GB.
var (
	nodeCPU    = resource.MustParse("2900m")
	nodeMemory = resource.MustParse("17Gi")
)

// podsForUnits returns how many pods the units need, what each pod requests, and whether each needs
// a node of its own. A unit that takes one or more nodes is that number of pods; a unit that takes
// a fraction of a node is one pod with that fraction of what a node has for instances.
func podsForUnits(units int32, pool v1alpha1.AgentPool) (replicas int64, requests map[string]any, alone bool) {
	per := nodesPerUnit(pool)
	cpu, memory := nodeCPU, nodeMemory
	if q, ok := pool.NodeRequests[corev1.ResourceCPU]; ok {
		cpu = q
	}
	if q, ok := pool.NodeRequests[corev1.ResourceMemory]; ok {
		memory = q
	}
	one := big.NewRat(1, 1)
	if per.Cmp(one) >= 0 {
		nodes := new(big.Rat).Mul(per, new(big.Rat).SetInt64(int64(units)))
		return roundUp(nodes), map[string]any{"cpu": cpu.String(), "memory": memory.String()}, true
	}
	return int64(units), map[string]any{"cpu": scaleQuantity(cpu, per, resource.Milli), "memory": scaleQuantity(memory, per, 0)}, false
}

// scaleQuantity returns a fraction of a quantity, rounded down, so that the expected number of pods
// fits.
func scaleQuantity(q resource.Quantity, part *big.Rat, scale resource.Scale) string {
	whole := new(big.Rat).SetInt64(q.ScaledValue(scale))
	x := whole.Mul(whole, part)
	n := max(new(big.Int).Quo(x.Num(), x.Denom()).Int64(), 1)
	return resource.NewScaledQuantity(n, scale).String()
}

func roundUp(r *big.Rat) int64 {
	n, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		return n.Int64() + 1
	}
	return n.Int64()
}

// nodesPerUnit returns the number of nodes that a unit takes; 1 if the pool does not set it, which
// the schema rejects.
func nodesPerUnit(p v1alpha1.AgentPool) *big.Rat {
	if r := quantityToRat(p.NodesPerUnit); r != nil {
		return r
	}
	if r := quantityToRat(p.UnitsPerNode); r != nil {
		return r.Inv(r)
	}
	return big.NewRat(1, 1)
}

func quantityToRat(q *resource.Quantity) *big.Rat {
	if q == nil || q.Sign() <= 0 {
		return nil
	}
	own := q.DeepCopy() // AsDec changes its receiver
	r, ok := new(big.Rat).SetString(own.AsDec().String())
	if !ok {
		return nil
	}
	return r
}

// addAppliedHash records a hash of the rendered object in an annotation, so that a field that is no
// longer rendered is noticed.
func addAppliedHash(u *unstructured.Unstructured) *unstructured.Unstructured {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		panic(err) // it was built from JSON
	}
	sum := sha256.Sum256(raw)
	notes := u.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[annotationApplied] = hex.EncodeToString(sum[:8])
	u.SetAnnotations(notes)
	return u
}

// matchesRendered reports whether the existing object has everything that is rendered.
func matchesRendered(there, rendered *unstructured.Unstructured) bool {
	return there != nil && coversFields(there.Object, rendered.Object)
}

// coversFields reports whether have equals want, ignoring fields that want does not have.
func coversFields(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for k, v := range w {
			if !coversFields(h[k], v) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return len(w) == 0 && have == nil
		}
		for i := range w {
			if !coversFields(h[i], w[i]) {
				return false
			}
		}
		return true
	case float64: // parameters decode as float64; whole numbers of the API decode as int64
		if h, ok := have.(int64); ok {
			return float64(h) == w
		}
	}
	return reflect.DeepEqual(have, want)
}
