//go:build linux

package containernode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are the programs of this computer that a node uses.
type programs struct {
	containerd string
	ctr        string
	// plugins is the folder of the CNI plugins.
	plugins string
	// proxyMode is the mode of kube-proxy: iptables or nftables.
	proxyMode string
}

// pluginFolders are where distributions install CNI plugins.
var pluginFolders = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni", "/usr/local/libexec/cni"}

// requiredPlugins are the CNI plugins that a node uses.
var requiredPlugins = []string{"ptp", "host-local", "portmap", "loopback"}

// findPrograms finds the programs. The error names all that are missing.
func findPrograms() (programs, error) {
	var p programs
	var missing []string
	find := func(name string) string {
		path, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, name)
		}
		return path
	}
	p.containerd, p.ctr = find("containerd"), find("ctr")
	find("containerd-shim-runc-v2")
	find("runc")
	if p.plugins = findPlugins(); p.plugins == "" {
		missing = append(missing, "the CNI plugins "+strings.Join(requiredPlugins, ", "))
	}
	switch {
	case isInstalled("iptables-restore"):
		p.proxyMode = "iptables"
	case isInstalled("nft"):
		p.proxyMode = "nftables"
	default:
		missing = append(missing, "iptables")
	}
	if len(missing) > 0 {
		return programs{}, fmt.Errorf("these programs are missing on this computer: %s: install them (on Debian: "+
			"apt-get install containerd runc containernetworking-plugins iptables)", strings.Join(missing, ", "))
	}
	return p, nil
}

func isInstalled(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// findPlugins returns the first folder with all required plugins, or "".
func findPlugins() string {
	for _, dir := range pluginFolders {
		if containsAll(dir, requiredPlugins) {
			return dir
		}
	}
	return ""
}

func containsAll(dir string, names []string) bool {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
