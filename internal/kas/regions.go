package kas

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

const (
	keyMachines = "compute_machine_per_cloud_provider"
	keyWide     = "cluster_wide_workload"
	keyKafka    = "kafka_workload_per_instance_type"
)

// readScaling reads the file of dynamic scaling: nodes, and whether decisions are carried out.
func (r *reader) readScaling(n node) {
	n.has("new_data_plane_openshift_version", "enable_dynamic_data_plane_scale_up", "enable_dynamic_data_plane_scale_down", keyMachines)
	if v := n.at("new_data_plane_openshift_version"); v.given() && v.value != "" {
		r.notes = append(r.notes, "new_data_plane_openshift_version is "+v.text()+": have the ClusterPools name that release, with spec.imageSetRef")
	}
	r.up, r.down = modeOf(n.at("enable_dynamic_data_plane_scale_up")), modeOf(n.at("enable_dynamic_data_plane_scale_down"))
	r.wide = map[string]v1alpha1.DefaultNodePool{}
	providers := n.at(keyMachines)
	if !providers.object() {
		return
	}
	for _, provider := range providers.keys() {
		p := providers.at(provider)
		p.has(keyWide, keyKafka)
		machine, least, most := nodesOf(p.at(keyWide))
		r.wide[provider] = v1alpha1.DefaultNodePool{MachineType: machine, MinNodes: least, MaxNodes: most}
		types := p.at(keyKafka)
		if !types.object() {
			types.fail("say which nodes each type has")
		}
		for _, name := range types.keys() {
			machine, least, most := nodesOf(types.at(name))
			if it := r.known(types.at(name), name); it != nil {
				it.Spec.NodePools = append(it.Spec.NodePools, v1alpha1.NodePool{Platform: provider, MachineType: machine, MinNodes: &least, MaxNodes: most})
			}
		}
	}
}

// modeOf is what a switch means: off, decisions are told and not carried out.
func modeOf(n node) v1alpha1.ScalingMode {
	if n.flag(true) {
		return v1alpha1.ScalingAuto
	}
	return v1alpha1.ScalingDryRun
}

func nodesOf(n node) (machine string, least, most int32) {
	if !n.object() {
		n.fail("say compute_machine_type and compute_node_autoscaling")
		return "", 1, 1
	}
	n.has("compute_machine_type", "compute_node_autoscaling")
	scale := n.at("compute_node_autoscaling")
	scale.has("min_compute_nodes", "max_compute_nodes")
	least, most = scale.at("min_compute_nodes").whole(1), scale.at("max_compute_nodes").whole(1)
	if least > most {
		scale.at("min_compute_nodes").fail("it is above max_compute_nodes, %d", most)
	}
	return n.at("compute_machine_type").text(), least, most
}

// readPrewarming reads what is reserved of each type. An empty file reserves nothing.
func (r *reader) readPrewarming(n node) {
	r.reserved = map[string]*v1alpha1.Reserved{}
	if !n.object() {
		return
	}
	for _, name := range n.keys() {
		p := n.at(name)
		p.has("num_reserved_instances", "base_streaming_unit_size")
		it := r.known(p, name)
		out := &v1alpha1.Reserved{Size: "x1"}
		if c := p.at("num_reserved_instances"); c.given() {
			out.Count = c.whole(0)
		}
		size := p.at("base_streaming_unit_size")
		if size.given() {
			out.Size = size.text()
		}
		if it == nil {
			continue
		}
		if _, ok := it.Spec.Size(out.Size); !ok {
			size.fail("type %s has no size %q: it is one of %s", name, out.Size, sizesOf(it))
		}
		r.reserved[name] = out
	}
}

func sizesOf(it *v1alpha1.InstanceType) string {
	var names []string
	for _, z := range it.Spec.Sizes {
		names = append(names, z.Name)
	}
	return strings.Join(names, ", ")
}

// readProviders reads the regions, with their limits.
func (r *reader) readProviders(n node) {
	n.has("supported_providers")
	list := n.at("supported_providers")
	if !list.given() {
		list.fail("list the providers")
	}
	for _, p := range list.items() {
		p.has("name", "default", "regions")
		r.leave(p, "default")
		p.at("default").flag(false)
		provider := p.at("name").text()
		for _, region := range p.at("regions").items() {
			region.has("name", "default", "supported_instance_type")
			region.at("default").flag(false)
			r.readRegion(provider, region)
		}
	}
}

func (r *reader) readRegion(provider string, n node) {
	fr := &v1alpha1.FleetRegion{}
	fr.Spec.Provider, fr.Spec.Region = provider, n.at("name").text()
	fr.ObjectMeta = metav1.ObjectMeta{Namespace: r.Namespace, Name: strings.ToLower(provider + "-" + fr.Spec.Region)}
	if slices.ContainsFunc(r.regions, func(other *v1alpha1.FleetRegion) bool { return other.Name == fr.Name }) {
		n.at("name").fail("the region is there twice: keep one")
	}
	fr.Spec.ScaleUp.Mode, fr.Spec.ScaleDown.Mode = r.up, r.down
	types := n.at("supported_instance_type")
	types.object()
	for _, name := range types.keys() {
		t := types.at(name)
		rt := limitsOf(t, name)
		rt.Reserved = r.reserved[name]
		if it := r.known(t, name); it != nil {
			r.furnished(t, it, provider)
		}
		fr.Spec.InstanceTypes = append(fr.Spec.InstanceTypes, rt)
	}
	if r.scaling != nil {
		fr.Spec.DefaultNodePool = r.wide[provider]
		if _, ok := r.wide[provider]; !ok {
			r.scaling.at(keyMachines).at(provider).fail("%s has this provider, so say which nodes it has", ProvidersFile)
		}
	}
	fr.Spec.ClusterSource.Claim = r.pools(fr)
	r.regions = append(r.regions, fr)
}

// furnished notes a type that a region offers and that would have no nodes there.
func (r *reader) furnished(n node, it *v1alpha1.InstanceType, provider string) {
	if r.scaling == nil {
		return
	}
	if _, _, ok := it.Spec.Nodes(provider); !ok {
		r.scaling.at(keyMachines).at(provider).at(keyKafka).at(it.Name).fail("%s offers the type there, at %s, so say which nodes it has", n.file, n.path)
	}
}

// limitsOf reads limit and slack.
func limitsOf(n node, name string) v1alpha1.RegionType {
	rt := v1alpha1.RegionType{Name: name}
	n.has("limit", "min_available_capacity_slack_streaming_units")
	if l := n.at("limit"); l.given() {
		limit := l.whole(0)
		rt.Limit = &limit
	}
	slack := n.at("min_available_capacity_slack_streaming_units")
	if slack.given() {
		rt.SlackUnits = slack.whole(0)
	}
	if rt.Limit != nil && rt.SlackUnits > *rt.Limit {
		slack.fail("it is above the limit, %d: more can never be used", *rt.Limit)
	}
	return rt
}

// pools are those for the zones that the region's types need.
func (r *reader) pools(fr *v1alpha1.FleetRegion) *v1alpha1.ClaimSource {
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
