package spoke

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/clusterdns"
)

// resolvConf is where this computer names the resolvers for names outside of a cluster.
const resolvConf = "/etc/resolv.conf"

// runDNS runs the cluster's DNS server at the gateway of the network of pods until ctx ends.
func runDNS(ctx context.Context, root *rest.Config, pods *podNetwork) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	packets, err := pods.ListenPacket(dnsPort)
	if err != nil {
		return fmt.Errorf("starting the DNS server of the cluster: %w", err)
	}
	connections, err := pods.Listen(dnsPort)
	if err != nil {
		return fmt.Errorf("starting the DNS server of the cluster: %w", errors.Join(err, packets.Close()))
	}
	return clusterdns.Run(ctx, client, clusterdns.Options{
		CIDRs:     []netip.Prefix{machine.PodNetwork, netip.MustParsePrefix(controlplane.ServiceNetwork)},
		Upstreams: readUpstreams(ctx),
		Addresses: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(clusterDNSIP), dnsPort)},
	}, packets, connections)
}

// readUpstreams returns the resolvers of this computer. Without any, the cluster's DNS server answers
// names of the cluster only.
func readUpstreams(ctx context.Context) []string {
	f, err := os.Open(resolvConf)
	if err != nil {
		klog.FromContext(ctx).Info("the DNS server of the cluster answers names of the cluster only", "reason", err.Error())
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	upstreams, err := clusterdns.ParseResolvConf(f)
	if err != nil {
		klog.FromContext(ctx).Info("the DNS server of the cluster answers names of the cluster only", "reason", err.Error())
		return nil
	}
	return upstreams
}
