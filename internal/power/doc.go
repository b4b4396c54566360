// Package power decides what to do about a cluster's machines, and what to tell
// its users.
//
// Next is pure: it goes from what was seen of one cluster, and the time, to a
// Decision. What counts is what is observed and the record of the transition
// (status.powerTransition), never the reason that an earlier pass left in a
// condition: a flip in the middle of a stop is then nothing special.
//
// The record is opened before the machines are told, and stored by the caller
// under an optimistic lock: a decision made on a stale object dies there, and
// no machine has heard of it. Timeouts, hibernateAfter and the freshness of
// nodes all count from the record.
package power
