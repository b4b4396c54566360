// Package machinepool decides what to change in a cluster for a MachinePool.
//
// There are two kinds of clusters. OpenShift clusters create machines themselves:
// DecideMachineSets decides about their MachineSets and MachineAutoscalers. Clusters of the local
// platform do not: DecideWorkers decides about each machine and its node, and DesiredNodes about
// their number when the pool is autoscaled.
//
// The package is pure: the same snapshot and time give the same plan.
package machinepool
