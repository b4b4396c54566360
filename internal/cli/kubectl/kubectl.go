// Package kubectl runs kubectl in this process. It is a package of its own
// because it brings most of Kubernetes' command line with it.
package kubectl

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"

	_ "hotspare.io/hotspare/internal/cli/kubectl/english" // it works by being imported
)

// Streams are kubectl's input and outputs.
type Streams = genericiooptions.IOStreams

// Run runs kubectl with these arguments; kubeconfig, if not empty, is its default.
// As in kubectl itself, an error is printed and ends the process; signals have
// their usual effect.
func Run(ctx context.Context, streams Streams, kubeconfig string, args []string) error {
	if kubeconfig != "" {
		if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
			return errors.Join(errors.New("setting KUBECONFIG"), err)
		}
	}
	signal.Reset() // kubectl logs --follow ends by the signal's own effect
	command := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     append([]string{"kubectl"}, args...),
		IOStreams:     streams,
	})
	command.SetArgs(args)
	command.SetContext(ctx)
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err)
	}
	return nil
}

// NeedsNoHub reports whether kubectl, given these arguments, either says itself
// where to find an API or needs none.
func NeedsNoHub(args []string) bool {
	if len(args) == 0 {
		return true
	}
	switch args[0] {
	case "help", "completion", "options", "kustomize", "plugin":
		return true
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		switch name {
		case "--":
			return false
		case "--kubeconfig", "--server", "-s", "--client", "--help", "-h":
			return true
		}
	}
	return false
}
