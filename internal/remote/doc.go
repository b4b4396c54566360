// Package remote accesses clusters' own APIs, with the admin kubeconfigs that the hub stores.
//
// A cluster that does not answer is a fact, not an error: it may be booting. Errors are the hub's
// own. The package describes a cluster that does not answer with one of a few fixed phrases:
// transport errors contain times, addresses and at worst the kubeconfig, and would change from
// pass to pass.
//
// Kubeconfigs come from Secrets that tenants can write. The package refuses a kubeconfig that
// would run a program or read a file on the hub.
package remote
