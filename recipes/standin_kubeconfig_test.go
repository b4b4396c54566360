package recipes

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigPath returns the kubeconfig that a tool changes: explicit, $KUBECONFIG or ~/.kube/config.
func (t toolCall) kubeconfigPath(explicit string) string {
	switch {
	case explicit != "":
		return explicit
	case t.Getenv("KUBECONFIG") != "":
		return t.Getenv("KUBECONFIG")
	}
	return filepath.Join(t.Getenv("HOME"), ".kube", "config")
}

// changeKubeconfig changes a kubeconfig as mergeKubeconfig does, and holds the lock file that client-go
// and kind use. A killed process leaves it behind, and then each later change fails.
func (t toolCall) changeKubeconfig(explicit, context, server string) error {
	path := t.kubeconfigPath(explicit)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL, 0)
	if err != nil {
		return err
	}
	_ = lock.Close() // empty
	t.step()
	defer func() { _ = os.Remove(path + ".lock") }()
	return t.mergeKubeconfig(explicit, context, server)
}

// mergeKubeconfig adds a context to a kubeconfig, or removes it if server is empty.
func (t toolCall) mergeKubeconfig(explicit, context, server string) error {
	path := t.kubeconfigPath(explicit)
	config, err := clientcmd.LoadFromFile(path)
	if os.IsNotExist(err) {
		config, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return err
	}
	if _, exists := config.Contexts[context]; server == "" && !exists {
		return nil
	}
	delete(config.Clusters, context)
	delete(config.AuthInfos, context)
	delete(config.Contexts, context)
	config.CurrentContext = ""
	if server != "" {
		setContext(config, context, server)
	}
	defer t.step()
	return clientcmd.WriteToFile(*config, path)
}

// printKubeconfig prints a kubeconfig with one context and returns the exit code.
func (t toolCall) printKubeconfig(context, server string) int {
	config := clientcmdapi.NewConfig()
	setContext(config, context, server)
	raw, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	t.step()
	_, _ = t.Stdout.Write(raw) // a broken pipe ends the process
	return 0
}

func setContext(config *clientcmdapi.Config, name, server string) {
	cluster, user, context := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo(), clientcmdapi.NewContext()
	cluster.Server, user.Token = server, "stand-in"
	context.Cluster, context.AuthInfo = name, name
	config.Clusters[name], config.AuthInfos[name], config.Contexts[name], config.CurrentContext = cluster, user, context, name
}
