//go:build linux

package containernode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/podnetwork"
)

// nodeInterface is the name of the interface that connects the node to the network of pods.
const nodeInterface = "eth0"

// sysctls are the settings of the node's network. Each node answers for the addresses of its pods,
// so that all nodes and the gateway reach them without routes.
var sysctls = []struct{ path, value string }{
	{"net/ipv4/ip_forward", "1"},
	{"net/ipv4/conf/" + nodeInterface + "/proxy_arp", "1"},
	{"net/ipv4/neigh/" + nodeInterface + "/proxy_delay", "0"},
	{"net/ipv4/conf/all/rp_filter", "0"},
	{"net/ipv4/conf/default/rp_filter", "0"},
}

// configureNetwork configures the interfaces of the node and returns the device through which the
// frames of its interface pass.
func configureNetwork(c machine.Config) (*os.File, error) {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("finding the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return nil, fmt.Errorf("starting the loopback interface: %w", err)
	}
	tap, err := createTap(nodeInterface)
	if err != nil {
		return nil, err
	}
	if err := configureInterface(c); err != nil {
		return nil, errors.Join(err, tap.Close())
	}
	for _, s := range sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", s.path), []byte(s.value), 0o600); err != nil {
			return nil, errors.Join(err, tap.Close())
		}
	}
	return tap, nil
}

// createTap creates an interface whose frames this program sends and receives.
func createTap(name string) (*os.File, error) {
	const device = "/dev/net/tun"
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w: load the kernel's module tun (modprobe tun)", device, err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(fmt.Errorf("creating interface %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), device), nil
}

func configureInterface(c machine.Config) error {
	link, err := netlink.LinkByName(nodeInterface)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", nodeInterface, err)
	}
	own := c.NodeAddress().As4()
	hardware := net.HardwareAddr{0x0a, 0x58, own[0], own[1], own[2], own[3]}
	if err := netlink.LinkSetHardwareAddr(link, hardware); err != nil {
		return fmt.Errorf("setting the hardware address of %s: %w", nodeInterface, err)
	}
	if err := netlink.LinkSetMTU(link, podnetwork.MTU); err != nil {
		return fmt.Errorf("setting the MTU of %s: %w", nodeInterface, err)
	}
	address := &net.IPNet{IP: own[:], Mask: net.CIDRMask(machine.PodNetwork.Bits(), 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: address}); err != nil {
		return fmt.Errorf("adding %s to %s: %w", address, nodeInterface, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting %s: %w", nodeInterface, err)
	}
	gateway := net.IP(machine.Gateway.AsSlice())
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway}); err != nil {
		return fmt.Errorf("adding a route through %s: %w", gateway, err)
	}
	return nil
}

// reconnectInterval is the interval between attempts to reach the control plane's socket.
const reconnectInterval = 100 * time.Millisecond

// connectNetwork carries frames between the node's interface and the control plane until ctx ends.
// It connects again whenever the control plane has restarted.
func connectNetwork(ctx context.Context, tap *os.File, socket string) {
	context.AfterFunc(ctx, func() { _ = tap.Close() }) // ends reads
	uplink := &uplink{}
	go readFrames(tap, uplink)
	reported := false
	for ctx.Err() == nil {
		conn, err := dialSocket(ctx, socket)
		if err != nil {
			if !reported {
				klog.FromContext(ctx).Info("the network of pods is not connected: will retry", "reason", err.Error())
				reported = true
			}
			select {
			case <-time.After(reconnectInterval):
			case <-ctx.Done():
			}
			continue
		}
		reported = false
		uplink.set(conn)
		writeFrames(ctx, conn, tap)
		uplink.set(nil)
	}
}

// dialSocket connects to a Unix socket whose path may be too long for a socket's address.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	return new(net.Dialer).DialContext(ctx, "unixpacket", short)
}

// readFrames sends the frames of the interface to the control plane until the interface is closed.
func readFrames(tap *os.File, to *uplink) {
	frame := make([]byte, maxFrame)
	for {
		size, err := tap.Read(frame)
		if err != nil {
			return
		}
		to.send(frame[:size])
	}
}

// maxFrame is the size of the largest Ethernet frame, with a margin for tags.
const maxFrame = podnetwork.MTU + 64

// writeFrames passes the frames of the control plane to the interface until the connection ends or
// ctx ends. It closes the connection.
func writeFrames(ctx context.Context, conn net.Conn, tap *os.File) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close() //nolint:errcheck // it is broken, or was closed
	frame := make([]byte, maxFrame)
	for {
		size, err := conn.Read(frame)
		if err != nil {
			return
		}
		_, _ = tap.Write(frame[:size]) // like a cable, it loses what an interface does not accept
	}
}
