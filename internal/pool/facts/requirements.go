package facts

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/gate"
)

// RecordedRequirements returns what a pool requires of its spares as its status records it, for Objects.Gates and
// Objects.Steps. Only the versions of both are known: they are what decides about a cluster. The gates are nil if
// the status records neither: the pool requires nothing, or no controller that records it has processed the pool.
func RecordedRequirements(p *hivev1.ClusterPool) (*gate.Requirement, bootstrap.Requirement) {
	st := p.Status
	if st.StepsVersion == "" && st.GatesVersion == "" {
		return nil, bootstrap.Requirement{}
	}
	steps := bootstrap.Requirement{Version: st.StepsVersion}
	if st.StepsVersion == bootstrap.Unresolved {
		steps = bootstrap.NewUnresolved("the steps are not known")
	}
	return &gate.Requirement{Version: st.GatesVersion}, steps
}
