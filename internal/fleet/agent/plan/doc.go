// Package plan decides what an agent does on its data plane: from the instances that the hub lists
// and the existing objects, it computes which objects to create and to delete, and what to report.
// It is pure: no client, no clock, no randomness.
package plan
