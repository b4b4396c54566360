package cli

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

// dataDirName is the data folder's, below here or below the home folder.
const dataDirName = ".hotspare"

// DataDir is the data folder of the hub on this machine: --data-dir, else
// $HOTSPARE_DATA_DIR, else ./.hotspare if it exists, else ~/.hotspare. It need
// not exist. cmd is any command below the root.
func DataDir(cmd *cobra.Command) string {
	return resolveDataDir(cmd.Flag("data-dir").Value.String())
}

// DefaultDataDir is the data folder when no flag names one.
func DefaultDataDir() string { return resolveDataDir("") }

func resolveDataDir(flag string) string {
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

var errNoHub = errors.New("there is no hub to talk to")

// kubeconfigPath is where the hub's kubeconfig is; "" when $KUBECONFIG tells.
func (a *app) kubeconfigPath() (string, error) {
	switch {
	case a.flags.kubeconfig != "":
		return a.flags.kubeconfig, nil
	case a.flags.dataDir == "" && os.Getenv("KUBECONFIG") != "":
		return "", nil
	}
	path := filepath.Join(resolveDataDir(a.flags.dataDir), "kubeconfig")
	if _, err := os.Stat(path); err != nil {
		return "", withRemedy(errNoHub, "no "+path+", and $KUBECONFIG is not set; start a hub with: "+cmp.Or(a.Name, programName)+" up")
	}
	return path, nil
}

// readMetricsURL is where the hub serves its metrics; "" unless it is one of hotspare
// up, which writes that into its data folder.
func (a *app) readMetricsURL() string {
	dir := resolveDataDir(a.flags.dataDir)
	if path, err := a.kubeconfigPath(); err != nil || path != filepath.Join(dir, "kubeconfig") {
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(dir, "metrics"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// loadClientConfig reads the kubeconfig: how to reach the hub, and the namespace.
func (a *app) loadClientConfig() (*rest.Config, string, error) {
	path, err := a.kubeconfigPath()
	if err != nil {
		return nil, "", err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	overrides := &clientcmd.ConfigOverrides{CurrentContext: a.flags.context}
	overrides.Context.Namespace = a.flags.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", withRemedy(fmt.Errorf("reading the kubeconfig: %w", err), "see --kubeconfig and --context")
	}
	namespace, _, err := loader.Namespace()
	return config, namespace, err
}
