// Package history runs the controllers of pools, claims, ClaimSets, ClaimPolicies and gates together through random
// histories, on a store in memory, with caches that are behind and processes that are killed.
//
// The other histories run one decider or one controller each. This one is for what only their composition can break: a
// limit that spans pools, a set that changes its pool while a policy withdraws its admission, a cluster that is assigned
// while its run ends. What must hold is derived from ADR 0032, 0033, 0035, 0037 and 0038, and computed without the code of
// the deciders.
package history
