package kasconfig

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

const (
	keyComputeMachines = "compute_machine_per_cloud_provider"
	keyClusterWide     = "cluster_wide_workload"
	keyKafka           = "kafka_workload_per_instance_type"
)

// readScaling reads the dynamic scaling file: nodes, and whether decisions are executed.
func (r *reader) readScaling(n node) {
	n.checkKeys("new_data_plane_openshift_version", "enable_dynamic_data_plane_scale_up", "enable_dynamic_data_plane_scale_down", keyComputeMachines)
	if v := n.field("new_data_plane_openshift_version"); v.isSet() && v.value != "" {
		r.notes = append(r.notes, "new_data_plane_openshift_version is "+v.parseText()+": set spec.imageSetRef of the ClusterPools to that release")
	}
	r.scaleUpMode, r.scaleDownMode = parseScalingMode(n.field("enable_dynamic_data_plane_scale_up")), parseScalingMode(n.field("enable_dynamic_data_plane_scale_down"))
	r.defaultNodePools = map[string]v1alpha1.DefaultNodePool{}
	providers := n.field(keyComputeMachines)
	if !providers.checkObject() {
		return
	}
	for _, provider := range providers.sortedKeys() {
		p := providers.field(provider)
		p.checkKeys(keyClusterWide, keyKafka)
		machine, least, most := parseNodePool(p.field(keyClusterWide))
		r.defaultNodePools[provider] = v1alpha1.DefaultNodePool{MachineType: machine, MinNodes: least, MaxNodes: most}
		types := p.field(keyKafka)
		if !types.checkObject() {
			types.addError("list the nodes of each type")
		}
		for _, name := range types.sortedKeys() {
			machine, least, most := parseNodePool(types.field(name))
			if it := r.findType(types.field(name), name); it != nil {
				it.Spec.NodePools = append(it.Spec.NodePools, v1alpha1.NodePool{Platform: provider, MachineType: machine, MinNodes: &least, MaxNodes: most})
			}
		}
	}
}

// parseScalingMode returns the mode for a switch: on is Auto; off is DryRun, which reports
// decisions without executing them.
func parseScalingMode(n node) v1alpha1.ScalingMode {
	if n.parseBool(true) {
		return v1alpha1.ScalingAuto
	}
	return v1alpha1.ScalingDryRun
}

func parseNodePool(n node) (machine string, least, most int32) {
	if !n.checkObject() {
		n.addError("set compute_machine_type and compute_node_autoscaling")
		return "", 1, 1
	}
	n.checkKeys("compute_machine_type", "compute_node_autoscaling")
	scale := n.field("compute_node_autoscaling")
	scale.checkKeys("min_compute_nodes", "max_compute_nodes")
	least, most = scale.field("min_compute_nodes").parseWholeNumber(1), scale.field("max_compute_nodes").parseWholeNumber(1)
	if least > most {
		scale.field("min_compute_nodes").addError("it is above max_compute_nodes, %d", most)
	}
	return n.field("compute_machine_type").parseText(), least, most
}

// readPrewarming reads the reserved instances of each type. An empty file reserves nothing.
func (r *reader) readPrewarming(n node) {
	r.reserved = map[string]*v1alpha1.Reserved{}
	if !n.checkObject() {
		return
	}
	for _, name := range n.sortedKeys() {
		p := n.field(name)
		p.checkKeys("num_reserved_instances", "base_streaming_unit_size")
		it := r.findType(p, name)
		out := &v1alpha1.Reserved{Size: "x1"}
		if c := p.field("num_reserved_instances"); c.isSet() {
			out.Count = c.parseWholeNumber(0)
		}
		size := p.field("base_streaming_unit_size")
		if size.isSet() {
			out.Size = size.parseText()
		}
		if it == nil {
			continue
		}
		if _, ok := it.Spec.Size(out.Size); !ok {
			size.addError("type %s has no size %q: it is one of %s", name, out.Size, joinSizeNames(it))
		}
		r.reserved[name] = out
	}
}

func joinSizeNames(it *v1alpha1.InstanceType) string {
	var names []string
	for _, z := range it.Spec.Sizes {
		names = append(names, z.Name)
	}
	return strings.Join(names, ", ")
}

// readProviders reads the regions and their limits.
func (r *reader) readProviders(n node) {
	n.checkKeys("supported_providers")
	list := n.field("supported_providers")
	if !list.isSet() {
		list.addError("list the providers")
	}
	for _, p := range list.listItems() {
		p.checkKeys("name", "default", "regions")
		r.recordIgnoredKeys(p, "default")
		p.field("default").parseBool(false)
		provider := p.field("name").parseText()
		for _, region := range p.field("regions").listItems() {
			region.checkKeys("name", "default", "supported_instance_type")
			region.field("default").parseBool(false)
			r.readRegion(provider, region)
		}
	}
}

func (r *reader) readRegion(provider string, n node) {
	fr := &v1alpha1.FleetRegion{}
	fr.Spec.Provider, fr.Spec.Region = provider, n.field("name").parseText()
	fr.ObjectMeta = metav1.ObjectMeta{Namespace: r.Namespace, Name: strings.ToLower(provider + "-" + fr.Spec.Region)}
	if slices.ContainsFunc(r.regions, func(other *v1alpha1.FleetRegion) bool { return other.Name == fr.Name }) {
		n.field("name").addError("the region is listed twice: keep one")
	}
	fr.Spec.ScaleUp.Mode, fr.Spec.ScaleDown.Mode = r.scaleUpMode, r.scaleDownMode
	types := n.field("supported_instance_type")
	types.checkObject()
	for _, name := range types.sortedKeys() {
		t := types.field(name)
		rt := parseLimits(t, name)
		rt.Reserved = r.reserved[name]
		if it := r.findType(t, name); it != nil {
			r.checkNodePools(t, it, provider)
		}
		fr.Spec.InstanceTypes = append(fr.Spec.InstanceTypes, rt)
	}
	if r.scaling != nil {
		fr.Spec.DefaultNodePool = r.defaultNodePools[provider]
		if _, ok := r.defaultNodePools[provider]; !ok {
			r.scaling.field(keyComputeMachines).field(provider).addError("%s has this provider, so list its nodes here", ProvidersFile)
		}
	}
	fr.Spec.ClusterSource.Claim = r.claimSource(fr)
	r.regions = append(r.regions, fr)
}

// checkNodePools records an error for a type that a region offers and that has no nodes there.
func (r *reader) checkNodePools(n node, it *v1alpha1.InstanceType, provider string) {
	if r.scaling == nil {
		return
	}
	if _, _, ok := it.Spec.Nodes(provider); !ok {
		r.scaling.field(keyComputeMachines).field(provider).field(keyKafka).field(it.Name).addError("%s offers the type there, at %s, so list its nodes", n.file, n.path)
	}
}

// parseLimits reads the limit and the slack of a type.
func parseLimits(n node, name string) v1alpha1.RegionType {
	rt := v1alpha1.RegionType{Name: name}
	n.checkKeys("limit", "min_available_capacity_slack_streaming_units")
	if l := n.field("limit"); l.isSet() {
		limit := l.parseWholeNumber(0)
		rt.Limit = &limit
	}
	slack := n.field("min_available_capacity_slack_streaming_units")
	if slack.isSet() {
		rt.SlackUnits = slack.parseWholeNumber(0)
	}
	if rt.Limit != nil && rt.SlackUnits > *rt.Limit {
		slack.addError("it is above the limit, %d, which can never be exceeded", *rt.Limit)
	}
	return rt
}

// claimSource returns the pools for the zone layouts that the region's types need.
func (r *reader) claimSource(fr *v1alpha1.FleetRegion) *v1alpha1.ClaimSource {
	out := &v1alpha1.ClaimSource{}
	for _, multi := range []bool{false, true} {
		name := cmp.Or(r.Pool, fr.Name)
		if multi {
			name = cmp.Or(r.MultiZonePool, fr.Name+"-multi-zone")
		}
		wanted := slices.ContainsFunc(fr.Spec.InstanceTypes, func(t v1alpha1.RegionType) bool {
			it := r.types[t.Name]
			return it != nil && it.Spec.MultiZone == multi
		})
		if wanted || multi && len(out.Pools) == 0 {
			out.Pools = append(out.Pools, v1alpha1.PoolSource{PoolRef: v1alpha1.PoolReference{Name: name}, MultiZone: multi})
		}
	}
	return out
}
