// Package etcdclient connects the API server of this process with the etcd of this process: the API
// server calls etcd's functions, without gRPC, which would keep one connection, with buffers and
// goroutines at both ends, for each kind of object.
package etcdclient

import (
	"context"
	_ "unsafe" // for go:linkname

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	_ "k8s.io/apiserver/pkg/storage/storagebackend/factory" // has newClient
)

// newClient is the function with which an API server creates its clients of etcd, one for each kind
// of object and some more. It is a variable of Kubernetes that only Kubernetes' own packages can
// reach by its name; no option of an API server replaces it.
//
//go:linkname newClient k8s.io/apiserver/pkg/storage/storagebackend/factory.newETCD3Client
var newClient func(storagebackend.TransportConfig) (*kubernetes.Client, error)

// New returns a client that calls server. Requests and responses are not copied: what a response
// contains may be shared with other watches, and must not be changed. A client that is closed does
// not stop server.
//
// Reads are not repeated when etcd answers that it is too slow at the moment, as a client with a
// connection would: the API server's own clients repeat them.
func New(server *etcdserver.EtcdServer) *kubernetes.Client {
	c := &kubernetes.Client{Client: v3client.New(server)}
	watcher := &cacheWatcher{Watcher: clientv3.NewWatchFromWatchClient(watchClient{v3rpc.NewWatchServer(server)}, c.Client)}
	c.Watcher, c.Kubernetes = watcher, progressClient{c, watcher}
	return c
}

// Use makes the API server that this process starts next call server, whose URL is url. ctx ends
// when server does.
func Use(ctx context.Context, server *etcdserver.EtcdServer, url string) {
	newClient = func(storagebackend.TransportConfig) (*kubernetes.Client, error) { return New(server), nil }
	// Clients without a connection have no endpoints, which are what API servers ask for the
	// features of etcd. Without this feature, consistent lists would be read from etcd.
	feature.DefaultFeatureSupportChecker.CheckClient(ctx, endpoint{New(server).Client, url}, storage.RequestWatchProgress)
}

// An endpoint is a client with the URL of its server.
type endpoint struct {
	*clientv3.Client
	url string
}

// Endpoints implements the interface that the API server's check of features needs.
func (e endpoint) Endpoints() []string { return []string{e.url} }
