package runner

import (
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hotspare.io/hotspare/internal/recipe"
)

// InlineKubeconfig returns a kubeconfig without references to files: hotspare and its users read it
// elsewhere. It returns a *recipe.VerbError for one that cannot be used there.
func InlineKubeconfig(c recipe.Cluster, raw []byte) ([]byte, error) {
	fail := func(problem string) error {
		return &recipe.VerbError{Recipe: c.Recipe.Name, Verb: recipe.Create, Outcome: recipe.Failed, Problem: problem}
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fail("the kubeconfig cannot be read") // the error quotes its input
	}
	for name, user := range config.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return nil, fail("user " + name + " of the kubeconfig runs a program to authenticate, and hotspare runs no program of a kubeconfig: " +
				"write a kubeconfig with a client certificate or with the token of a ServiceAccount")
		}
	}
	for _, cluster := range config.Clusters {
		cluster.LocationOfOrigin = filepath.Join(c.Dir, recipe.KubeconfigFile)
	}
	for _, user := range config.AuthInfos {
		user.LocationOfOrigin = filepath.Join(c.Dir, recipe.KubeconfigFile)
		if user.TokenFile != "" {
			return nil, fail("the kubeconfig reads a token from a file: write the token itself into it")
		}
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fail("a file that the kubeconfig refers to cannot be read: " + err.Error())
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fail("the kubeconfig cannot be encoded")
	}
	return out, nil
}
