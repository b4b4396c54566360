// Package plan decides what an agent does on its data plane: from what the hub lists
// and what is there, it tells which objects to make and to remove, and what to report.
// It is pure: no client, no clock, no randomness.
package plan
