package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/cli/kubectl"
)

// Options are what the commands work with. The zero value is this process's own.
type Options struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Version is what --version prints; "dev" when empty.
	Version string
	// Name is how people call the program; "hotspare" when empty. As a plugin of kubectl
	// it is "kubectl hotspare".
	Name  string
	Clock clock.WithTicker
	// IsTerminal reports whether a person looks at, or types into, a stream.
	IsTerminal func(stream any) bool
	// Width is how many characters a line of a stream has; 0 if it is no terminal.
	Width func(stream any) int
	// Commands are added to the root command. They may read its flags (see DataDir)
	// and must leave PersistentPreRun alone: by the root's, errors before a command
	// has begun are told from those after.
	Commands []*cobra.Command
}

func (o *Options) setDefaults() {
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Name == "" {
		o.Name = programName
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.IsTerminal == nil {
		o.IsTerminal = isTerminal
	}
	if o.Width == nil {
		o.Width = terminalWidth
	}
}

// programName is the program's own name.
const programName = "hotspare"

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func terminalWidth(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0 // no terminal
	}
	return columns
}

// app is what all commands share.
type app struct {
	Options
	flags flags
	// dial makes the hub's client; tests put another in its place.
	dial func(*rest.Config) (*hub, error)
}

// flags are the persistent ones.
type flags struct {
	kubeconfig, context, namespace, dataDir string
	output                                  outputFormat
}

// New returns the root command of hotspare. Run it with Execute.
func New(o Options) *cobra.Command {
	o.setDefaults()
	a := &app{Options: o}
	a.dial = a.newHubClient
	return a.newRootCommand()
}

const rootLong = `hotspare keeps hot spare Kubernetes clusters: pools of them, ready to be claimed.

The hub is found by --kubeconfig, else by $KUBECONFIG, else by the file
kubeconfig in the data folder, which is --data-dir, else $HOTSPARE_DATA_DIR,
else ./.hotspare, else ~/.hotspare.

Exit codes:
  0    done
  1    failed
  2    wrong usage
  3    timed out waiting
  4    there are steps to take (pool plan, fleet evaluate: --detailed-exitcode)
  130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)
"claim run" exits as its command does, or 127 when there is no such command.`

func (a *app) newRootCommand() *cobra.Command {
	cmd := a.newCommandGroup("hotspare", "Hot spare Kubernetes clusters",
		a.statusCommand(), a.explainCommand(), a.poolCommand(), a.claimCommand(), a.clusterCommand(), a.inventoryCommand(), a.scheduleCommand(),
		a.fleetCommand(), a.localCommand(), a.consoleCommand(), a.demoCommand(), a.kubectlCommand())
	cmd.AddCommand(a.Commands...)
	cmd.Long = rootLong
	cmd.Version = a.Version
	cmd.SetVersionTemplate("hotspare {{.Version}}\n")
	cmd.SetIn(a.Stdin)
	cmd.SetOut(a.Stdout)
	cmd.SetErr(a.Stderr)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return explainFlagError(err) })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.TraverseChildren = true // so that flags before kubectl are ours, and those after it are its own
	cmd.PersistentPreRun = func(cmd *cobra.Command, _ []string) { markCommandStarted(cmd.Context()) }

	f := cmd.PersistentFlags()
	f.StringVar(&a.flags.kubeconfig, "kubeconfig", "", "file that tells how to reach the hub")
	f.StringVar(&a.flags.context, "context", "", "context of the kubeconfig to use")
	f.StringVarP(&a.flags.namespace, "namespace", "n", "", "namespace of pools and claims (default: the context's, else \"default\")")
	f.StringVar(&a.flags.dataDir, "data-dir", "", "folder of the hub that runs on this machine")
	f.VarP(&a.flags.output, "output", "o", "format: table, json, yaml or name")
	mustSucceed(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	if a.Name != programName {
		renameInHelp(cmd, helpName(a.Name))
	}
	return cmd
}

// mustSucceed is for what can only fail by a mistake in this package: a flag that does not exist.
func mustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}

// newCommandGroup returns a command that only holds others.
func (a *app) newCommandGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  rejectUnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

func (a *app) kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl ...",
		Short:              "kubectl for the hub; flags go to it as they are",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runKubectl(cmd.Context(), args)
		},
	}
}

func (a *app) runKubectl(ctx context.Context, args []string) error {
	path, err := a.kubeconfigPath()
	if err != nil && !kubectl.NeedsNoHub(args) {
		return err
	}
	if a.flags.namespace != "" {
		args = append([]string{"--namespace=" + a.flags.namespace}, args...)
	}
	if a.flags.context != "" {
		args = append([]string{"--context=" + a.flags.context}, args...)
	}
	return kubectl.Run(ctx, kubectl.Streams{In: a.Stdin, Out: a.Stdout, ErrOut: a.Stderr}, path, args)
}
