package kasconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// readTypes reads the instance types file.
func (r *reader) readTypes(n node) {
	n.checkKeys("supported_instance_types")
	list := n.field("supported_instance_types")
	if !list.isSet() {
		list.addError("list the types")
	}
	for _, t := range list.listItems() {
		t.checkKeys("id", "display_name", "supported_billing_models", "sizes")
		r.recordIgnoredKeys(t, "display_name", "supported_billing_models")
		for _, b := range t.field("supported_billing_models").listItems() {
			b.checkKeys("id", "ams_resource", "ams_product", "ams_billing_models", "grace_period_days")
			if g := b.field("grace_period_days"); g.isSet() {
				g.parseWholeNumber(0)
			}
		}
		name := t.field("id").parseText()
		if r.types[name] != nil {
			t.field("id").addError("the type is listed twice: keep one")
			continue
		}
		it := &v1alpha1.InstanceType{ObjectMeta: metav1.ObjectMeta{Name: name}}
		it.Spec.NodesPerUnit = r.parseNodesPerUnit(t.field("id"), name)
		it.Spec.Workload.ManagedKafka = &v1alpha1.ManagedKafkaWorkload{}
		r.readSizes(t.field("sizes"), it)
		r.order, r.types[name] = append(r.order, name), it
	}
}

var sizeKeys = []string{
	"id", "display_name", "ingressThroughputPerSec", "egressThroughputPerSec", "totalMaxConnections", "maxConnectionAttemptsPerSec",
	"maxDataRetentionSize", "maxDataRetentionPeriod", "maxPartitions", "maxMessageSize", "minInSyncReplicas", "replicationFactor",
	"quotaConsumed", "quotaType", "capacityConsumed", "supportedAZModes", "lifespanSeconds", "maturityStatus",
}

func (r *reader) readSizes(list node, it *v1alpha1.InstanceType) {
	if len(list.listItems()) == 0 {
		list.addError("list one size or more")
	}
	single, multi := false, false
	for _, z := range list.listItems() {
		z.checkKeys(sizeKeys...)
		r.recordIgnoredKeys(z, "display_name", "quotaType", "lifespanSeconds", "maturityStatus")
		if l := z.field("lifespanSeconds"); l.isSet() {
			l.parseWholeNumber(1)
		}
		size := v1alpha1.InstanceSize{Name: z.field("id").parseText(), Units: z.field("capacityConsumed").parseWholeNumber(1), Capacity: parseCapacity(z)}
		if _, twice := it.Spec.Size(size.Name); twice {
			z.field("id").addError("the size is listed twice: keep one")
		}
		if q := z.field("quotaConsumed"); q.parseWholeNumber(1) != size.Units {
			r.notes = append(r.notes, q.path+" is not capacityConsumed, which hotspare uses both on the hub and on data planes")
		}
		size.AvailabilityZones = parseZones(z.field("supportedAZModes"))
		single = single || size.AvailabilityZones == v1alpha1.ZonesSingle
		multi = multi || size.AvailabilityZones == v1alpha1.ZonesMulti
		it.Spec.Sizes = append(it.Spec.Sizes, size)
	}
	if single && multi {
		list.addError("some sizes support only a single zone, and others only several: split them into two types")
	}
	it.Spec.MultiZone = multi
}

// parseZones returns the zone layout of a size; empty when the size supports both.
func parseZones(n node) v1alpha1.AvailabilityZones {
	var out v1alpha1.AvailabilityZones
	modes := map[string]v1alpha1.AvailabilityZones{"single": v1alpha1.ZonesSingle, "multi": v1alpha1.ZonesMulti}
	for i, m := range n.listItems() {
		zones, ok := modes[m.parseText()]
		switch {
		case !ok:
			m.addError("write single or multi")
		case i > 0 && zones != out:
			return ""
		}
		out = zones
	}
	if out == "" {
		n.addError("list single, multi or both")
	}
	return out
}

func parseCapacity(z node) *v1alpha1.KafkaCapacity {
	return &v1alpha1.KafkaCapacity{
		IngressPerSec: z.field("ingressThroughputPerSec").parseQuantity(), EgressPerSec: z.field("egressThroughputPerSec").parseQuantity(),
		MaxDataRetentionSize: z.field("maxDataRetentionSize").parseQuantity(), MaxDataRetentionPeriod: z.field("maxDataRetentionPeriod").parseText(),
		MaxMessageSize: z.field("maxMessageSize").parseQuantity(), TotalMaxConnections: z.field("totalMaxConnections").parseWholeNumber(1),
		MaxConnectionAttemptsPerSec: z.field("maxConnectionAttemptsPerSec").parseWholeNumber(1), MaxPartitions: z.field("maxPartitions").parseWholeNumber(1),
		MinInSyncReplicas: z.field("minInSyncReplicas").parseWholeNumber(1), ReplicationFactor: z.field("replicationFactor").parseWholeNumber(1),
	}
}
