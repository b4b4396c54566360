// Package csr judges which certificate requests of a cluster's nodes the hub
// approves after a resume.
//
// A cluster that slept longer than its kubelets' certificates live has nodes that
// must ask as strangers again, with the account that every machine boots with.
// Inside the cluster nobody approves that: the node exists already, so the request
// looks like that of an impostor. It may be one. Whoever has the account's token,
// and each machine has it, can ask for any node. So a request is approved only
// within a resume, only for a node that is known to be down, and once a node.
// The rules have the numbers of the reference (S, C and V); table_test.go has a
// row for each.
//
// Where the trust comes from. That a name is a machine of the cluster is said by
// one of two, never by the node itself:
//
//   - On OpenShift, by the Machines in namespace openshift-machine-api. Their
//     addresses come from the cloud, by way of the machine controllers. Who may
//     write there can make machines anyway. Machines elsewhere do not count.
//   - On a platform whose actuator knows the nodes of its machines, by the hub's
//     own inventory (cloud.Machine.Node and Addresses). The cluster is not
//     believed at all. The local platform is one: its clusters have Machines, but
//     they repeat what the nodes say of themselves.
//
// A cluster with neither has no known machines, and nothing is approved there.
// What is believed of every cluster is its API server: who asked and when, which
// nodes there are, and when each last gave a sign of life.
//
// The package is pure. It never denies: a request may be somebody else's.
package csr
