//go:build linux

package containernode

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
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
	var err error
	if p.proxyMode, err = selectProxyMode(func(program string) error { return tryKernelFeatures(ctx, program) }); err != nil {
		missing = append(missing, err.Error())
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

// proxyModes are the modes of kube-proxy, in the order in which they are tried, and the programs that they use.
var proxyModes = []struct{ mode, program string }{{"iptables", nodeprograms.IPTables}, {"nftables", nodeprograms.NFT}}

// selectProxyMode returns the first mode of kube-proxy whose program works. try returns why a program does not. The
// error says so of all of them.
func selectProxyMode(try func(program string) error) (string, error) {
	var reasons []string
	for _, m := range proxyModes {
		err := try(m.program)
		if err == nil {
			return m.mode, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s (%v)", m.program, err))
	}
	return "", errors.New(strings.Join(reasons, " and "))
}

// trialTimeout is how long a packet filter may take to use a feature of the kernel.
const trialTimeout = 10 * time.Second

var errNoProgram = errors.New("it does not exist")

// tryKernelFeatures returns nil if a packet filter can use the features of the kernel that kube-proxy needs, which
// hotspare doctor tries, too.
func tryKernelFeatures(ctx context.Context, name string) error {
	path := nodeprograms.Find(name, isProgram)
	if path == "" {
		return errNoProgram
	}
	missing, err := nodeprograms.FindMissing(name, true, func(arguments []string) error { return runTrial(ctx, path, arguments) })
	if err != nil {
		return fmt.Errorf("%s: %w", missing.Name, err)
	}
	return nil
}

// runTrial runs a packet filter in a network namespace that ends with it.
func runTrial(ctx context.Context, path string, arguments []string) error {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	output, err := cmd.CombinedOutput()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
		return fmt.Errorf("%w: %s", err, line)
	}
	return nil
}
