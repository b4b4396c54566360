// Command hotspare runs hotspare on one machine, is the program of local machines, and is the
// command line for users of any hub.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hotspare.io/hotspare/internal/cli"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/helmchart/renderprocess"
	"hotspare.io/hotspare/internal/install/job/pod"
	"hotspare.io/hotspare/internal/version"
)

func main() {
	// Kubernetes packages register their flags here, and cobra would add them to this program.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	cmd := cli.New(base.Options{
		Name:         cli.ProgramName(os.Args[0]),
		Version:      version.Get(),
		FindMachines: findMachines,
		Commands:     []*cobra.Command{upCommand(), downCommand(), machineCommand(), agentCommand(), pod.NewCommand(pod.CurrentHost()), renderprocess.NewCommand()},
	})
	os.Exit(cli.Execute(context.Background(), cmd))
}
