// Package csr judges which certificate requests of a cluster's nodes the hub approves after a
// resume.
//
// If a cluster hibernates longer than its kubelets' certificates are valid, its nodes must
// request new ones with the account that every machine boots with. Nothing inside the cluster
// approves such a request: the node already exists, so the request looks like that of an
// impostor. It may be one: every machine has the account's token, and the token is enough to
// request a certificate for any node. A request is therefore approved only during a resume, only
// for a node that is known to be down, and only once per node. The rules have the numbers of the
// reference (S, C and V); table_test.go has a row for each.
//
// Where the trust comes from: one of two sources confirms that a name is a machine of the
// cluster, and never the node itself:
//
//   - On OpenShift, the Machines in namespace openshift-machine-api. Their
//     addresses come from the cloud, by way of the machine controllers. Users who
//     can write there can create machines anyway. Machines in other namespaces do not count.
//   - On a platform whose actuator knows the nodes of its machines, the hub's
//     own inventory (cloud.Machine.Node and Addresses). The cluster is not
//     trusted at all. The local platform is one: its clusters have Machines, but
//     these repeat what the nodes report about themselves.
//
// A cluster with neither has no known machines, and nothing is approved there. In every cluster,
// the API server is trusted: who made a request and when, which nodes exist, and when each last
// gave a sign of life.
//
// The package is pure. It never denies a request, because the request may be for another
// approver.
package csr
