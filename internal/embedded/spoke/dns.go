package spoke

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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
		CIDRs:      []netip.Prefix{machine.PodNetwork, netip.MustParsePrefix(controlplane.ServiceNetwork)},
		ResolvConf: resolvConf,
		Addresses:  []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(clusterDNSIP), dnsPort)},
	}, packets, connections)
}
