package cli

import (
	"context"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/adopt"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/cli/claim"
	"hotspare.io/hotspare/internal/cli/cluster"
	"hotspare.io/hotspare/internal/cli/fleet"
	"hotspare.io/hotspare/internal/cli/image"
	"hotspare.io/hotspare/internal/cli/inventory"
	"hotspare.io/hotspare/internal/cli/kubectl"
	"hotspare.io/hotspare/internal/cli/local"
	"hotspare.io/hotspare/internal/cli/pool"
	"hotspare.io/hotspare/internal/cli/recipe"
	"hotspare.io/hotspare/internal/cli/simulate"
)

// New returns the root command of hotspare. Run it with Execute.
func New(o base.Options) *cobra.Command {
	return newRootCommand(base.NewApp(o))
}

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

const rootLong = `hotspare keeps pools of spare Kubernetes clusters that you can claim immediately.

hotspare reads the address of the hub from --kubeconfig, else from the file kubeconfig in
--data-dir, else from $KUBECONFIG, else from the file kubeconfig in the data folder: that is
$HOTSPARE_DATA_DIR, else ./.hotspare, else ~/.hotspare.

Exit codes:
  0    success
  1    failure
  2    usage error
  3    timeout while waiting
  4    the plan has steps (pool plan, fleet evaluate: --detailed-exitcode)
  130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)
"claim run" returns the exit code of its command, or 127 if the command does not exist.`

func newRootCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("hotspare", "Hot spare Kubernetes clusters",
		a.statusCommand(), a.explainCommand(), pool.NewCommand(app), claim.NewCommand(app), claim.NewSetCommand(app), cluster.NewCommand(app), adopt.NewCommand(app),
		inventory.NewCommand(app), a.scheduleCommand(), simulate.NewCommand(app),
		fleet.NewCommand(app), local.NewCommand(app), image.NewCommand(app), recipe.NewCommand(app), a.consoleCommand(), a.demoCommand(),
		a.doctorCommand(), a.kubectlCommand())
	cmd.AddCommand(a.Commands...)
	cmd.Long = rootLong
	cmd.Version = a.Version
	cmd.SetVersionTemplate("hotspare {{.Version}}\n")
	cmd.SetIn(a.Stdin)
	cmd.SetOut(a.Stdout)
	cmd.SetErr(a.Stderr)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return base.ExplainFlagError(err) })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.TraverseChildren = true // flags before "kubectl" belong to hotspare, flags after it to kubectl
	cmd.PersistentPreRun = func(cmd *cobra.Command, _ []string) { markCommandStarted(cmd.Context()) }

	f := cmd.PersistentFlags()
	f.StringVar(&a.Flags.Kubeconfig, "kubeconfig", "", "kubeconfig file of the hub")
	f.StringVar(&a.Flags.Context, "context", "", "kubeconfig context to use")
	f.StringVarP(&a.Flags.Namespace, "namespace", "n", "", "namespace of pools and claims (default: the context's namespace, else \"default\")")
	f.StringVar(&a.Flags.DataDir, "data-dir", "", "data folder of the hub on this machine")
	f.VarP(&a.Flags.Output, "output", "o", "output format: table, json, yaml or name")
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(base.Formats, cobra.ShellCompDirectiveNoFileComp)))
	if a.Name != base.ProgramName {
		renameInHelp(cmd, helpName(a.Name))
	}
	return cmd
}

func (a commands) kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl ...",
		Short:              "Run kubectl against the hub",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runKubectl(cmd.Context(), args)
		},
	}
}

func (a commands) runKubectl(ctx context.Context, args []string) error {
	path, err := a.KubeconfigPath()
	if err != nil && !kubectl.NeedsNoHub(args) {
		return err
	}
	if a.Flags.Namespace != "" {
		args = append([]string{"--namespace=" + a.Flags.Namespace}, args...)
	}
	if a.Flags.Context != "" {
		args = append([]string{"--context=" + a.Flags.Context}, args...)
	}
	return kubectl.Run(ctx, kubectl.Streams{In: a.Stdin, Out: a.Stdout, ErrOut: a.Stderr}, path, args)
}
