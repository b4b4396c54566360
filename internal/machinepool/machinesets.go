package machinepool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// MachineSet is an observed or desired MachineSet.
type MachineSet struct {
	Name string
	// Pool is the MachinePool in its label; "" if there is none.
	Pool string
	// Role is the role of its machines, such as worker.
	Role            string
	Replicas, Ready int64
	// Labels and Taints are for its nodes, MachineLabels for its machines.
	Labels, MachineLabels map[string]string
	Taints                []corev1.Taint
	// Provider is its providerSpec.
	Provider map[string]any
	// ErrorReason and ErrorMessage are the error that the cluster reports for it.
	ErrorReason, ErrorMessage string
	// Deleting is set while it is being deleted.
	Deleting bool
}

// MachineAutoscaler is a MachineAutoscaler, with the name of its MachineSet.
type MachineAutoscaler struct {
	Name  string
	Pool  string
	Range Range
}

// MachineSetSnapshot is the input of DecideMachineSets: a MachinePool, and the objects in its
// cluster.
type MachineSetSnapshot struct {
	Pool Pool
	// InfraID is the prefix of the names of all MachineSets.
	InfraID string
	// Platform is the key in the cluster's spec.platform, and Settings the MachinePool's settings
	// for it. Foreign lists the other platforms for which the MachinePool has settings.
	Platform string
	Settings map[string]any
	Foreign  []string
	Sets     []MachineSet
	Scalers  []MachineAutoscaler
	// Autoscaling reports whether the cluster has a ClusterAutoscaler.
	Autoscaling bool
}

// workerRole is the role of the machines of all pools, and the name of the installer's pool.
const workerRole = "worker"

// DecideMachineSets decides about the MachineSets of a pool.
func DecideMachineSets(f MachineSetSnapshot) Plan {
	d := Plan{Unsupported: configSupported, NotEnough: boundsSufficient}
	mine := f.poolMachineSets()
	if v := f.Pool.unsupportedCondition(); v != nil {
		d.Unsupported, d.Owned = *v, f.Pool.Owned
		return d
	}
	if f.Pool.Deleted {
		d.Steps = f.planDeletions(mine, nil)
		d.Owned = f.Pool.Owned
		if len(d.Steps) == 0 && len(mine) > 0 {
			d.Waiting = "the cluster still has " + joinSetNames(mine)
		}
		return d
	}
	want, bad := f.desiredMachineSets(mine)
	if bad != nil {
		return f.planNoChanges(d, mine, *bad, boundsSufficient)
	}
	if short := f.boundsCondition(len(want)); short.IsTrue() {
		return f.planNoChanges(d, mine, configSupported, short)
	}
	f.distributeReplicas(want)
	d.Steps = append(f.planSetChanges(want), f.planAutoscalers(want)...)
	d.Steps = append(d.Steps, f.planDeletions(mine, want)...)
	d.Replicas, d.Sets = f.machineSetStatuses(want)
	d.Owned = f.ownedBySets(mine)
	return d
}

// planNoChanges returns a plan that changes nothing and reports the current state.
func (m MachineSetSnapshot) planNoChanges(d Plan, mine []MachineSet, unsupported, short condition.Value) Plan {
	d.Unsupported, d.NotEnough = unsupported, short
	d.Replicas, d.Sets = m.machineSetStatuses(mine)
	d.Owned = m.Pool.Owned
	return d
}

// poolMachineSets returns the MachineSets of the pool, sorted by name. A MachineSet without a
// pool label belongs to the pool if it has exactly the name that the pool's own would have there:
// so the installer's workers become those of pool worker, and MachineSets that users created
// remain theirs.
func (m MachineSetSnapshot) poolMachineSets() []MachineSet {
	var out []MachineSet
	for _, s := range m.Sets {
		if s.Pool == m.Pool.Name || s.Pool == "" && s.Role == workerRole && m.isNamedForPool(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b MachineSet) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (m MachineSetSnapshot) isNamedForPool(s MachineSet) bool {
	suffix, ok := strings.CutPrefix(s.Name, m.InfraID+"-"+m.Pool.Name)
	if !ok {
		return false
	}
	p := platforms[m.Platform]
	if p.zone == nil {
		return suffix == "" || parseOrdinal(strings.TrimPrefix(suffix, "-")) >= 0
	}
	zone, region := stringAt(s.Provider, p.zone), stringAt(s.Provider, p.region)
	return suffix == p.suffix(region, zone)
}

// desiredMachineSets returns the MachineSets that the pool should have, sorted by name, without
// their replicas.
func (m MachineSetSnapshot) desiredMachineSets(mine []MachineSet) ([]MachineSet, *condition.Value) {
	p, known := platforms[m.Platform]
	if !known {
		v := blockingCondition(hivev1.ReasonUnsupportedPlatform, "Platform %q of the cluster is not supported for MachinePools: supported are %s and local.",
			m.Platform, strings.Join(SupportedPlatforms(), ", "))
		return nil, &v
	}
	if len(m.Foreign) > 0 {
		v := blockingCondition(hivev1.ReasonUnsupportedSetting, "spec.platform.%s is not the cluster's platform, which is %s: remove it.", m.Foreign[0], m.Platform)
		return nil, &v
	}
	if v := p.checkSettings(m.Platform, m.Settings); v != nil {
		return nil, v
	}
	zones, v := p.requestedZones(m.Settings)
	if v != nil {
		return nil, v
	}
	templates := m.findTemplates()
	if len(zones) > 0 {
		return m.desiredSetsInZones(p, zones, mine, templates)
	}
	return m.desiredSetsLikeTemplates(p, mine, templates)
}

// template is a worker MachineSet from which the providerSpec can be copied, and the part of its
// name after the name of its pool.
type template struct {
	MachineSet
	suffix string
}

// findTemplates returns the worker MachineSets: the installer's or, if none are left, those of
// the first pool that has any.
func (m MachineSetSnapshot) findTemplates() []template {
	byPool := map[string][]template{}
	for _, s := range m.Sets {
		pool := cmp.Or(s.Pool, workerRole)
		suffix, ok := strings.CutPrefix(s.Name, m.InfraID+"-"+pool)
		if s.Role != workerRole || s.Deleting || !ok || len(s.Provider) == 0 {
			continue
		}
		if own := (MachineSetSnapshot{Pool: Pool{Name: pool}, InfraID: m.InfraID, Platform: m.Platform}); s.Pool == "" && !own.isNamedForPool(s) {
			continue
		}
		byPool[pool] = append(byPool[pool], template{s, suffix})
	}
	pools := slices.SortedFunc(maps.Keys(byPool), func(a, b string) int {
		return cmp.Or(-compareBool(a == workerRole, b == workerRole), -compareBool(a == m.Pool.Name, b == m.Pool.Name), cmp.Compare(a, b))
	})
	if len(pools) == 0 {
		return nil
	}
	out := byPool[pools[0]]
	slices.SortFunc(out, func(a, b template) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// desiredSetsInZones returns one MachineSet for each zone.
func (m MachineSetSnapshot) desiredSetsInZones(p platform, zones []string, mine []MachineSet, templates []template) ([]MachineSet, *condition.Value) {
	var out []MachineSet
	for _, zone := range zones {
		if i := slices.IndexFunc(mine, func(s MachineSet) bool { return stringAt(s.Provider, p.zone) == zone }); i >= 0 {
			out = append(out, m.desiredExistingSet(mine[i]))
			continue
		}
		if len(templates) == 0 {
			return nil, m.noTemplateCondition()
		}
		t := templates[0]
		for _, other := range templates {
			if stringAt(other.Provider, p.zone) == zone {
				t = other
				break
			}
		}
		provider, err := p.buildProviderSpec(t.Provider, zone, m.Settings)
		if err != nil {
			v := blockingCondition(hivev1.ReasonNoTemplate, "zone %s: %s: remove the zone, or create a MachineSet %s there manually.", zone, err,
				m.InfraID+"-"+m.Pool.Name+p.suffix(stringAt(t.Provider, p.region), zone))
			return nil, &v
		}
		out = append(out, m.desiredNewSet(p.suffix(stringAt(provider, p.region), zone), provider))
	}
	return out, nil
}

// desiredSetsLikeTemplates returns one MachineSet for each template. It keeps the pool's existing
// MachineSets even where no other workers are left, because no user asked to remove them.
func (m MachineSetSnapshot) desiredSetsLikeTemplates(p platform, mine []MachineSet, templates []template) ([]MachineSet, *condition.Value) {
	if len(templates) == 0 && len(mine) == 0 {
		return nil, m.noTemplateCondition()
	}
	var out []MachineSet
	for _, s := range mine {
		out = append(out, m.desiredExistingSet(s))
	}
	for _, t := range templates {
		name := m.InfraID + "-" + m.Pool.Name + t.suffix
		if slices.ContainsFunc(mine, func(s MachineSet) bool { return s.Name == name }) {
			continue
		}
		provider, err := p.buildProviderSpec(t.Provider, "", m.Settings)
		if err != nil {
			v := blockingCondition(hivev1.ReasonUnsupportedSetting, "spec.platform.%s cannot be applied: %s.", m.Platform, err)
			return nil, &v
		}
		out = append(out, m.desiredNewSet(t.suffix, provider))
	}
	return out, nil
}

func (m MachineSetSnapshot) noTemplateCondition() *condition.Value {
	v := blockingCondition(hivev1.ReasonNoTemplate, "The cluster has no worker MachineSet to copy the providerSpec from: create %s-worker manually, with replicas 0.", m.InfraID)
	return &v
}

// desiredExistingSet returns an existing MachineSet of the pool as it should be. It keeps the
// providerSpec.
func (m MachineSetSnapshot) desiredExistingSet(s MachineSet) MachineSet {
	s.Pool = m.Pool.Name
	s.Labels = mergeLabels(s.Labels, m.Pool.Labels, m.Pool.Owned.Labels)
	s.MachineLabels = mergeLabels(s.MachineLabels, m.Pool.MachineLabels, m.Pool.Owned.MachineLabels)
	s.Taints = mergeTaints(s.Taints, m.Pool.Taints, m.Pool.Owned.Taints)
	return s
}

func (m MachineSetSnapshot) desiredNewSet(suffix string, provider map[string]any) MachineSet {
	return MachineSet{
		Name: m.InfraID + "-" + m.Pool.Name + suffix, Pool: m.Pool.Name, Role: workerRole,
		Labels: mergeLabels(nil, m.Pool.Labels, nil), MachineLabels: mergeLabels(nil, m.Pool.MachineLabels, nil), Taints: m.Pool.Taints,
		Provider: provider,
	}
}

// scaleFromZeroPlatforms are the platforms whose autoscaler can scale a MachineSet up from zero
// machines.
var scaleFromZeroPlatforms = []string{"aws", "azure", "gcp", "openstack"}

// boundsCondition reports whether the autoscaling limits are too low for n MachineSets.
func (m MachineSetSnapshot) boundsCondition(n int) condition.Value {
	r := m.Pool.Range
	switch {
	case r == nil:
		return boundsSufficient
	case r.Max < int64(n):
		return blockingCondition(hivev1.ReasonMaxTooSmall, "The pool has %d MachineSets, and spec.autoscaling.maxReplicas is %d: set it to at least %d.", n, r.Max, n)
	case r.Min < int64(n) && !slices.Contains(scaleFromZeroPlatforms, m.Platform):
		return blockingCondition(hivev1.ReasonMinTooSmall,
			"The pool has %d MachineSets, and on %s each needs a machine: set spec.autoscaling.minReplicas to at least %d.", n, m.Platform, n)
	}
	return boundsSufficient
}

// distributeReplicas sets the replicas of the MachineSets. An autoscaled MachineSet keeps its
// replicas, within its range.
func (m MachineSetSnapshot) distributeReplicas(want []MachineSet) {
	slices.SortFunc(want, func(a, b MachineSet) int { return cmp.Compare(a.Name, b.Name) })
	if m.Pool.Range == nil {
		for i, n := range SpreadReplicas(m.Pool.Replicas, len(want)) {
			want[i].Replicas = n
		}
		return
	}
	for i, r := range SpreadRange(*m.Pool.Range, len(want)) {
		want[i].Replicas = r.clamp(want[i].Replicas)
	}
}

// planSetChanges returns the steps that create or update the MachineSets.
func (m MachineSetSnapshot) planSetChanges(want []MachineSet) []Step {
	var steps []Step
	for _, w := range want {
		i := slices.IndexFunc(m.Sets, func(s MachineSet) bool { return s.Name == w.Name })
		if i < 0 {
			steps = append(steps, Step{Verb: CreateSet, Name: w.Name, Set: &w, Why: fmt.Sprintf("the pool needs %d replicas there", w.Replicas)})
			continue
		}
		have := m.Sets[i]
		if have.Deleting {
			continue // it is re-created after its deletion
		}
		if why := describeDifference(have, w); why != "" {
			steps = append(steps, Step{Verb: UpdateSet, Name: w.Name, Set: &w, Why: why})
		}
	}
	return steps
}

// describeDifference returns what differs; "" if nothing does.
func describeDifference(have, want MachineSet) string {
	switch {
	case have.Pool != want.Pool:
		return "it joins the pool"
	case have.Replicas != want.Replicas:
		return fmt.Sprintf("replicas from %d to %d", have.Replicas, want.Replicas)
	case !maps.Equal(have.Labels, want.Labels), !maps.Equal(have.MachineLabels, want.MachineLabels):
		return "its labels have changed"
	case !sameTaints(have.Taints, want.Taints):
		return "its taints have changed"
	}
	return ""
}

// planAutoscalers returns the steps that create or update the MachineAutoscalers.
func (m MachineSetSnapshot) planAutoscalers(want []MachineSet) []Step {
	if m.Pool.Range == nil {
		return nil
	}
	var steps []Step
	if !m.Autoscaling {
		steps = append(steps, Step{Verb: AddAutoscaling, Name: "default", Why: "the cluster does not autoscale without it"})
	}
	for i, r := range SpreadRange(*m.Pool.Range, len(want)) {
		s := Step{Verb: PutAutoscaler, Name: want[i].Name, Range: r, Why: fmt.Sprintf("from %d to %d replicas", r.Min, r.Max)}
		if !slices.ContainsFunc(m.Scalers, func(a MachineAutoscaler) bool { return a.Name == s.Name && a.Range == r }) {
			steps = append(steps, s)
		}
	}
	return steps
}

// planDeletions returns the steps that delete what the pool has and should not have.
func (m MachineSetSnapshot) planDeletions(mine, want []MachineSet) []Step {
	wanted := func(name string) bool {
		return slices.ContainsFunc(want, func(s MachineSet) bool { return s.Name == name })
	}
	var steps []Step
	for _, a := range m.Scalers {
		is := a.Pool == m.Pool.Name || slices.ContainsFunc(mine, func(s MachineSet) bool { return s.Name == a.Name })
		if is && !(wanted(a.Name) && m.Pool.Range != nil) {
			steps = append(steps, Step{Verb: DeleteAutoscaler, Name: a.Name, Why: "the pool does not need it"})
		}
	}
	for _, s := range mine {
		if !wanted(s.Name) && !s.Deleting {
			steps = append(steps, Step{Verb: DeleteSet, Name: s.Name, Why: "the pool does not need it"})
		}
	}
	return steps
}

// machineSetStatuses returns the replicas and the MachineSets for the status.
func (m MachineSetSnapshot) machineSetStatuses(sets []MachineSet) (int64, []hivev1.MachineSetStatus) {
	var sum int64
	var out []hivev1.MachineSetStatus
	var ranges []Range
	if m.Pool.Range != nil {
		ranges = SpreadRange(*m.Pool.Range, len(sets))
	}
	for i, s := range sets {
		sum += s.Replicas
		st := hivev1.MachineSetStatus{
			Name: s.Name, Replicas: int32(s.Replicas), ReadyReplicas: int32(s.Ready),
			MinReplicas: int32(s.Replicas), MaxReplicas: int32(s.Replicas),
		}
		if ranges != nil {
			st.MinReplicas, st.MaxReplicas = int32(ranges[i].Min), int32(ranges[i].Max)
		}
		if s.ErrorReason != "" {
			st.ErrorReason = &s.ErrorReason
		}
		if s.ErrorMessage != "" {
			st.ErrorMessage = &s.ErrorMessage
		}
		out = append(out, st)
	}
	return sum, out
}

func (m MachineSetSnapshot) ownedBySets(mine []MachineSet) OwnedMetadata {
	var labels, machines []map[string]string
	var taints [][]corev1.Taint
	for _, s := range mine {
		labels, machines, taints = append(labels, s.Labels), append(machines, s.MachineLabels), append(taints, s.Taints)
	}
	return m.Pool.computeOwned(labels, machines, taints)
}

func joinSetNames(sets []MachineSet) string {
	var out []string
	for _, s := range sets {
		out = append(out, s.Name)
	}
	return strings.Join(out, ", ")
}
