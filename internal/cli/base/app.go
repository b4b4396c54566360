package base

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/doctor/hostfacts"
	"hotspare.io/hotspare/internal/remote"
)

// Options configure the environment of the commands. Unset fields default to the standard
// streams, terminal and clock of this process.
type Options struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Version is what --version prints; "dev" when empty.
	Version string
	// Name is the command that users type to run the program; "hotspare" when empty. For a
	// kubectl plugin it is "kubectl hotspare".
	Name  string
	Clock clock.WithTicker
	// IsTerminal reports whether a stream is an interactive terminal.
	IsTerminal func(stream any) bool
	// Width returns the number of columns of a terminal; 0 if the stream is not a terminal.
	Width func(stream any) int
	// FindMachines returns the names of the machines of a cluster that hotspare would start and stop. It
	// reads the credentials from the hub that config reaches. If it is nil, no command finds machines.
	FindMachines func(ctx context.Context, config *rest.Config, cd *hivev1.ClusterDeployment) ([]string, error)
	// Commands are added to the root command. They may read its flags (see DataDir), but must
	// not set PersistentPreRun: Execute uses the root's to distinguish usage errors from
	// errors of a command that has started.
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
		o.Name = ProgramName
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

// ProgramName is the name of the program when it does not run as a kubectl plugin.
const ProgramName = "hotspare"

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

// App is the state that all commands share: the options, the persistent flags and the
// connection to the hub.
type App struct {
	Options
	Flags Flags
	// Dial creates the client for the hub. Tests replace it.
	Dial func(*rest.Config) (*Hub, error)
	// ReadIdentity asks the cluster that a kubeconfig reaches. Tests replace it.
	ReadIdentity func(ctx context.Context, kubeconfig []byte) (remote.Identity, error)
	// ReadFacts reads the facts about this machine. Tests replace it.
	ReadFacts func(ctx context.Context, dataFolder string) doctor.Facts

	// isOwnHub is set when $KUBECONFIG turned out to select a cluster of the hub in the data folder: the
	// command uses that hub.
	isOwnHub bool
}

// Flags are the values of the persistent flags.
type Flags struct {
	Kubeconfig, Context, Namespace, DataDir string
	Output                                  outputFormat
}

// NewApp returns an App that connects to the hub over the network.
func NewApp(o Options) *App {
	o.setDefaults()
	a := &App{Options: o, ReadIdentity: remote.ReadIdentity, ReadFacts: hostfacts.Read}
	a.Dial = a.newHubClient
	return a
}
