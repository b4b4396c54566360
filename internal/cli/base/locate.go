package base

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// dataDirName is the name of the data folder in the working folder or in the home folder.
const dataDirName = ".hotspare"

// kubeconfigName is the name of the hub's kubeconfig in the data folder.
const kubeconfigName = "kubeconfig"

// DataDir returns the data folder of the hub on this machine: --data-dir, else
// $HOTSPARE_DATA_DIR, else ./.hotspare if it exists, else ~/.hotspare. The folder
// may not exist. cmd is any command below the root.
func DataDir(cmd *cobra.Command) string {
	return ResolveDataDir(cmd.Flag("data-dir").Value.String())
}

// DefaultDataDir returns the data folder that applies without --data-dir.
func DefaultDataDir() string { return ResolveDataDir("") }

// ResolveDataDir returns the data folder for a value of --data-dir, which may be empty: see DataDir.
func ResolveDataDir(flag string) string {
	if flag != "" {
		return flag
	}
	if dir := os.Getenv("HOTSPARE_DATA_DIR"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if info, here := os.Stat(dataDirName); err != nil || here == nil && info.IsDir() {
		return dataDirName
	}
	return filepath.Join(home, dataDirName)
}

var errNoHub = errors.New("no hub found")

// KubeconfigPath returns the path of the hub's kubeconfig; "" if $KUBECONFIG applies.
func (a *App) KubeconfigPath() (string, error) {
	switch {
	case a.Flags.Kubeconfig != "":
		return a.Flags.Kubeconfig, nil
	case !a.isOwnHub && a.Flags.DataDir == "" && os.Getenv("KUBECONFIG") != "":
		return "", nil
	}
	path := filepath.Join(ResolveDataDir(a.Flags.DataDir), kubeconfigName)
	if _, err := os.Stat(path); err != nil {
		return "", WithRemedy(errNoHub, path+" does not exist and $KUBECONFIG is not set; start a hub with: "+cmp.Or(a.Name, ProgramName)+" up")
	}
	return path, nil
}

// HubDataDir returns the data folder of the hub that the command uses; "" unless the hub is the hotspare up
// on that folder.
func (a *App) HubDataDir() string {
	dir := ResolveDataDir(a.Flags.DataDir)
	if path, err := a.KubeconfigPath(); err != nil || path != filepath.Join(dir, kubeconfigName) {
		return ""
	}
	return dir
}

// ReadMetricsURL returns the URL of the hub's metrics; "" unless the hub is hotspare up, which
// writes the URL to its data folder.
func (a *App) ReadMetricsURL() string {
	dir := a.HubDataDir()
	if dir == "" {
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(dir, "metrics"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// LoadClientConfig reads the kubeconfig. It returns the client configuration for the hub and the
// namespace that the command uses.
func (a *App) LoadClientConfig() (*rest.Config, string, error) {
	path, err := a.KubeconfigPath()
	if err != nil {
		return nil, "", err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	overrides := &clientcmd.ConfigOverrides{CurrentContext: a.Flags.Context}
	overrides.Context.Namespace = a.Flags.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", WithRemedy(fmt.Errorf("reading the kubeconfig: %w", err), "see --kubeconfig and --context")
	}
	namespace, _, err := loader.Namespace()
	return config, namespace, err
}
