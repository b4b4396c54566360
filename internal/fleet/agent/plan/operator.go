package plan

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// StandInVersion is the version that the stand-in reports. There is no Kafka behind it.
var StandInVersion = v1alpha1.OperatorVersion{
	Strimzi: "hotspare-stand-in.v1.0.0", Ready: true, Kafka: []string{"3.9.0"}, KafkaIBP: []string{"3.9"},
}

// reportVersions sets the reported versions. Without a ready version, no instance can be created.
func (d *draft) reportVersions() {
	r := &d.plan.Report
	r.Versions = d.listVersions()
	r.Ready, r.Reason = true, v1alpha1.ReasonAgentReady
	if !slices.ContainsFunc(r.Versions, func(v v1alpha1.OperatorVersion) bool { return v.Ready }) {
		r.Ready, r.Reason = false, v1alpha1.ReasonNoOperator
		r.Message = "No ManagedKafkaAgent on the data plane reports a Strimzi version that is ready: install the operators, or check them."
	}
}

func (d *draft) listVersions() []v1alpha1.OperatorVersion {
	if d.StandIn {
		return []v1alpha1.OperatorVersion{StandInVersion}
	}
	byName := map[string]v1alpha1.OperatorVersion{}
	for key, u := range d.World {
		if key.Kind != ManagedKafkaAgent.Kind {
			continue
		}
		for _, v := range operatorVersions(u) {
			if old, there := byName[v.Strimzi]; !there || v.Ready && !old.Ready {
				byName[v.Strimzi] = v
			}
		}
	}
	var out []v1alpha1.OperatorVersion
	for _, v := range byName {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b v1alpha1.OperatorVersion) int { return strings.Compare(a.Strimzi, b.Strimzi) })
	return out
}

// operatorVersions returns the versions in the status of a ManagedKafkaAgent; none if the status
// has another form.
func operatorVersions(u *unstructured.Unstructured) []v1alpha1.OperatorVersion {
	var a struct {
		Status struct {
			Strimzi []struct {
				Version          string   `json:"version"`
				Ready            bool     `json:"ready"`
				KafkaVersions    []string `json:"kafkaVersions"`
				KafkaIBPVersions []string `json:"kafkaIbpVersions"`
			} `json:"strimzi"`
		} `json:"status"`
	}
	raw, err := json.Marshal(u.Object)
	if err != nil || json.Unmarshal(raw, &a) != nil {
		return nil
	}
	var out []v1alpha1.OperatorVersion
	for _, v := range a.Status.Strimzi {
		if v.Version != "" {
			out = append(out, v1alpha1.OperatorVersion{Strimzi: v.Version, Ready: v.Ready, Kafka: removeDuplicates(v.KafkaVersions), KafkaIBP: removeDuplicates(v.KafkaIBPVersions)})
		}
	}
	return out
}

// removeDuplicates keeps the order, in which the last entry is the newest.
func removeDuplicates(list []string) []string {
	var out []string
	for _, v := range list {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// updateStandIn sets the condition that an operator would set: the instance is ready when its pods
// run. It returns the updated instance.
func (d *draft) updateStandIn(id string, k *managedKafka) *managedKafka {
	run, of := availableReplicas(d.findDeployment(k.GetNamespace(), false))
	if of > 0 && run >= of {
		return d.setReadyCondition(id, k, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Message: "Its stand-in is running. The stand-in contains no Kafka."})
	}
	return d.setReadyCondition(id, k, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: reasonInstalling, Message: "The pods of its stand-in are waiting for nodes.",
	})
}

// deleteStandIn deletes the pods, and then reports that everything is deleted.
func (d *draft) deleteStandIn(id string, k *managedKafka) {
	if u := d.findDeployment(k.GetNamespace(), false); u != nil {
		if !isTerminating(u) {
			d.addStep(Remove, id, u)
		}
		return
	}
	d.setReadyCondition(id, k, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: reasonDeleted})
}

// setReadyCondition writes the condition if it has changed.
func (d *draft) setReadyCondition(id string, k *managedKafka, c metav1.Condition) *managedKafka {
	old := k.readyCondition()
	if old.Type != "" && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return k
	}
	c.LastTransitionTime = d.Now
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	spec, _, _ := unstructured.NestedMap(k.Object, "spec") // the schema requires it
	u := k.DeepCopy()
	u.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
			"lastTransitionTime": c.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
		}},
		"capacity": spec["capacity"],
		"versions": spec["versions"],
	}
	d.addStep(UpdateStatus, id, u)
	return parseManagedKafka(u)
}
