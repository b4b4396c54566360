// Package capi hibernates and resumes clusters of Cluster API under Cluster API's own controllers.
//
// The controllers are those of v1.14.2, unmodified, as programs: core, kubeadm bootstrap, kubeadm
// control plane, and the development provider with its in-memory backend, which simulates machines
// and an API server for each cluster. The hub is hotspare up --hub-only.
//
// The controllers expect what clusterctl and cert-manager would set up, and the test does instead:
//   - The custom resource definitions of the modules' config folders, each with its storage version
//     only: v1beta2 everywhere. Nothing converts, because nothing else is stored.
//   - The webhooks of the same folders, called by URL at 127.0.0.1. They are not optional: without
//     the defaults that they set, the topology controller and the bootstrap provider fail.
//   - The label that says which version of the contract a definition implements.
//
// The development provider listens at port 19000: only one of these tests can run on a machine at a
// time.
//
// The in-memory backend has no power. power_test.go simulates it: a stopped machine is a node that is
// not ready, for which a MachineHealthCheck replaces the machine if Cluster API is not paused.
package capi
