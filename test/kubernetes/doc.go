// Package kubernetes names the programs of Kubernetes' own end-to-end tests, which make
// kubernetes-tests builds and runs on a local cluster: see test/containers/kubernetes_test.go.
package kubernetes
