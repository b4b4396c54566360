package kas

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// readTypes reads the file of the instance types.
func (r *reader) readTypes(n node) {
	n.has("supported_instance_types")
	list := n.at("supported_instance_types")
	if !list.given() {
		list.fail("list the types")
	}
	for _, t := range list.items() {
		t.has("id", "display_name", "supported_billing_models", "sizes")
		r.leave(t, "display_name", "supported_billing_models")
		for _, b := range t.at("supported_billing_models").items() {
			b.has("id", "ams_resource", "ams_product", "ams_billing_models", "grace_period_days")
			if g := b.at("grace_period_days"); g.given() {
				g.whole(0)
			}
		}
		name := t.at("id").text()
		if r.types[name] != nil {
			t.at("id").fail("the type is there twice: keep one")
			continue
		}
		it := &v1alpha1.InstanceType{ObjectMeta: metav1.ObjectMeta{Name: name}}
		it.Spec.NodesPerUnit = r.perUnit(t.at("id"), name)
		it.Spec.Workload.ManagedKafka = &v1alpha1.ManagedKafkaWorkload{}
		r.readSizes(t.at("sizes"), it)
		r.order, r.types[name] = append(r.order, name), it
	}
}

var sizeKeys = []string{
	"id", "display_name", "ingressThroughputPerSec", "egressThroughputPerSec", "totalMaxConnections", "maxConnectionAttemptsPerSec",
	"maxDataRetentionSize", "maxDataRetentionPeriod", "maxPartitions", "maxMessageSize", "minInSyncReplicas", "replicationFactor",
	"quotaConsumed", "quotaType", "capacityConsumed", "supportedAZModes", "lifespanSeconds", "maturityStatus",
}

func (r *reader) readSizes(list node, it *v1alpha1.InstanceType) {
	if len(list.items()) == 0 {
		list.fail("list one size or more")
	}
	single, multi := false, false
	for _, z := range list.items() {
		z.has(sizeKeys...)
		r.leave(z, "display_name", "quotaType", "lifespanSeconds", "maturityStatus")
		if l := z.at("lifespanSeconds"); l.given() {
			l.whole(1)
		}
		size := v1alpha1.InstanceSize{Name: z.at("id").text(), Units: z.at("capacityConsumed").whole(1), Capacity: capacityOf(z)}
		if _, twice := it.Spec.Size(size.Name); twice {
			z.at("id").fail("the size is there twice: keep one")
		}
		if q := z.at("quotaConsumed"); q.whole(1) != size.Units {
			r.notes = append(r.notes, q.path+" is not capacityConsumed, which is the one number that counts here, on the hub and on data planes")
		}
		size.AvailabilityZones = zonesOf(z.at("supportedAZModes"))
		single = single || size.AvailabilityZones == v1alpha1.ZonesSingle
		multi = multi || size.AvailabilityZones == v1alpha1.ZonesMulti
		it.Spec.Sizes = append(it.Spec.Sizes, size)
	}
	if single && multi {
		list.fail("some sizes are for a single zone only, and some for several only: make two types of them")
	}
	it.Spec.MultiZone = multi
}

// zonesOf is the spread of a size; empty when it can have either.
func zonesOf(n node) v1alpha1.AvailabilityZones {
	var out v1alpha1.AvailabilityZones
	modes := map[string]v1alpha1.AvailabilityZones{"single": v1alpha1.ZonesSingle, "multi": v1alpha1.ZonesMulti}
	for i, m := range n.items() {
		zones, ok := modes[m.text()]
		switch {
		case !ok:
			m.fail("write single or multi")
		case i > 0 && zones != out:
			return ""
		}
		out = zones
	}
	if out == "" {
		n.fail("list single, multi or both")
	}
	return out
}

func capacityOf(z node) *v1alpha1.KafkaCapacity {
	return &v1alpha1.KafkaCapacity{
		IngressPerSec: z.at("ingressThroughputPerSec").quantity(), EgressPerSec: z.at("egressThroughputPerSec").quantity(),
		MaxDataRetentionSize: z.at("maxDataRetentionSize").quantity(), MaxDataRetentionPeriod: z.at("maxDataRetentionPeriod").text(),
		MaxMessageSize: z.at("maxMessageSize").quantity(), TotalMaxConnections: z.at("totalMaxConnections").whole(1),
		MaxConnectionAttemptsPerSec: z.at("maxConnectionAttemptsPerSec").whole(1), MaxPartitions: z.at("maxPartitions").whole(1),
		MinInSyncReplicas: z.at("minInSyncReplicas").whole(1), ReplicationFactor: z.at("replicationFactor").whole(1),
	}
}
