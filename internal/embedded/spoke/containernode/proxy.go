//go:build linux

package containernode

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"

	"hotspare.io/hotspare/internal/embedded/spoke/node"
)

// nodeAuthProvider is the name of the plugin in the kubeconfig of kube-proxy that replaces its connections by those of the
// node.
const nodeAuthProvider = "hotspare-node"

// nodeTransport is the plugin. kube-proxy takes no client but only the path of a kubeconfig. With the node's certificate in
// that file, client-go would keep connections with an expired certificate for up to 5 minutes; those of the node are
// closed at once.
type nodeTransport struct{ transport http.RoundTripper }

// WrapTransport implements rest.AuthProvider.
func (t nodeTransport) WrapTransport(http.RoundTripper) http.RoundTripper { return t.transport }

// Login implements rest.AuthProvider.
func (nodeTransport) Login() error { return nil }

// registerNodeTransport makes kube-proxy in this process use a transport. It may be called once.
func registerNodeTransport(transport http.RoundTripper) error {
	return rest.RegisterAuthProviderPlugin(nodeAuthProvider, func(string, map[string]string, rest.AuthProviderConfigPersister) (rest.AuthProvider, error) {
		return nodeTransport{transport}, nil
	})
}

// runProxy runs kube-proxy until ctx ends.
func runProxy(ctx context.Context, member *node.Membership) error {
	transport, err := rest.TransportFor(member.ClientConfig())
	if err == nil {
		err = registerNodeTransport(transport)
	}
	if err != nil {
		return fmt.Errorf("configuring kube-proxy: %w", err)
	}
	o := proxy.NewOptions()
	flags := pflag.NewFlagSet("kube-proxy", pflag.ContinueOnError)
	o.AddFlags(flags)
	o.ConfigFile = proxyConfigPath
	if err := o.Complete(flags); err != nil {
		return fmt.Errorf("configuring kube-proxy: %w", err)
	}
	if err := o.Validate(); err != nil {
		return fmt.Errorf("configuring kube-proxy: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.Run(klog.NewContext(ctx, klog.FromContext(ctx).WithName("kube-proxy"))) }()
	select {
	case err := <-ended:
		return fmt.Errorf("kube-proxy ended unexpectedly: %w", err)
	case <-ctx.Done():
		return nil // it does not react; it ends with this process
	}
}
