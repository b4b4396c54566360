package base

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
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

// ProgramName is the program's own name.
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

// App is what all commands share.
type App struct {
	Options
	Flags Flags
	// Dial makes the hub's client; tests put another in its place.
	Dial func(*rest.Config) (*Hub, error)
}

// Flags are the persistent ones.
type Flags struct {
	Kubeconfig, Context, Namespace, DataDir string
	Output                                  outputFormat
}

// NewApp returns what all commands share, with a hub that is reached over the network.
func NewApp(o Options) *App {
	o.setDefaults()
	a := &App{Options: o}
	a.Dial = a.newHubClient
	return a
}
