// Package power decides what to do about a cluster's machines, and what to report to users.
//
// Decide is pure: it takes a snapshot of one cluster and the time, and returns a Plan. It depends
// on the observed state and on the record of the transition (status.powerTransition), never on
// the reason that an earlier pass left in a condition. Changing spec.powerState in the middle of
// a stop is therefore not a special case.
//
// The caller stores a new record under an optimistic lock before it starts or stops any machine.
// A plan based on a stale object fails at that write, before it has any effect. Timeouts,
// hibernateAfter and the freshness of nodes all count from the record.
package power
