// Package remote asks clusters' own APIs, with the admin kubeconfig that the
// hub keeps of them.
//
// A cluster that does not answer is a fact, not an error: it may be booting.
// Errors are the hub's. What is said of a cluster that does not answer is one
// of a few fixed phrases: transport errors quote times, addresses and at worst
// the kubeconfig, and would change from pass to pass.
//
// Kubeconfigs come from Secrets that tenants can write. One that would run a
// program or read a file on the hub is refused.
package remote
