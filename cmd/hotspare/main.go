// Command hotspare is hotspare on one machine: the system itself, the program
// that runs in local machines, and the command line for users of any hub.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hotspare.io/hotspare/internal/cli"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/install/job/pod"
	"hotspare.io/hotspare/internal/version"
)

func main() {
	// Packages of Kubernetes put flags of their own here, and cobra would make them ours.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	cmd := cli.New(base.Options{
		Name:     cli.ProgramName(os.Args[0]),
		Version:  version.Get(),
		Commands: []*cobra.Command{upCommand(), downCommand(), machineCommand(), agentCommand(), pod.NewCommand(pod.CurrentHost())},
	})
	os.Exit(cli.Execute(context.Background(), cmd))
}
