//go:build linux

package containernode

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/embedded/nodeprograms"
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

// findPrograms finds the programs. The error names all that are missing.
func findPrograms(ctx context.Context) (programs, error) {
	found := map[string]string{}
	var missing []string
	for _, name := range nodeprograms.Required {
		if found[name] = nodeprograms.Find(name, isProgram); found[name] == "" {
			missing = append(missing, name)
		}
	}
	p := programs{containerd: found[nodeprograms.Containerd], ctr: found[nodeprograms.CTR], plugins: nodeprograms.FindPlugins(isProgram)}
	if p.plugins == "" {
		missing = append(missing, "the CNI plugins "+strings.Join(nodeprograms.Plugins, ", "))
	}
	switch {
	case isWorking(ctx, nodeprograms.IPTables):
		p.proxyMode = "iptables"
	case isWorking(ctx, nodeprograms.NFT):
		p.proxyMode = "nftables"
	default:
		missing = append(missing, nodeprograms.IPTables)
	}
	if len(missing) > 0 {
		return programs{}, fmt.Errorf("these programs are missing on this computer, or do not run: %s: run \"hotspare doctor\", "+
			"which prints the command that installs them", strings.Join(missing, ", "))
	}
	return p, nil
}

func isProgram(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}

// versionTimeout is how long a program may take to print its version.
const versionTimeout = 5 * time.Second

// isWorking reports whether there is a program that prints its version, as hotspare doctor requires.
func isWorking(ctx context.Context, name string) bool {
	path := nodeprograms.Find(name, isProgram)
	if path == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	return exec.CommandContext(ctx, path, "--version").Run() == nil
}
