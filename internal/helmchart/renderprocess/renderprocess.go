// Package renderprocess renders Helm charts in a process of their own: whoever may write a ClusterBootstrap writes
// the templates, and a template may use any amount of memory and time.
package renderprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/helmchart"
)

const (
	// commandName is the hidden command of the program that renders.
	commandName = "render-chart"
	// timeout is how long a chart may take.
	timeout = 30 * time.Second
	// maxMemory is how much address space the process may use, in bytes, where that can be limited. The Go
	// runtime reserves a part of it.
	maxMemory = 3 << 30
	// maxOutput is the largest output, in bytes.
	maxOutput = 16 << 20
)

// answer is the output of the process.
type answer struct {
	Phases []helmchart.Phase `json:"phases,omitempty"`
	Error  string            `json:"error,omitempty"`
}

// NewCommand returns the hidden command that Render starts.
func NewCommand() *cobra.Command {
	return &cobra.Command{
		Use: commandName, Short: "Render a Helm chart", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return render(cmd.InOrStdin(), cmd.OutOrStdout()) },
	}
}

// render reads a request and writes an answer.
func render(in io.Reader, out io.Writer) error {
	if err := limitResources(maxMemory, uint64(timeout/time.Second)); err != nil {
		return err
	}
	var r helmchart.Request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	var a answer
	var err error
	if a.Phases, err = helmchart.Render(r); err != nil {
		a.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(a)
}

// Render renders a chart in a process of this program, with bounds on its time, memory and output. A process that
// does not keep them ends in an error. An error may quote values and templates.
func Render(ctx context.Context, r helmchart.Request) ([]helmchart.Phase, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, which renders charts: %w", err)
	}
	return renderWith(ctx, timeout, r, self, commandName)
}

func renderWith(ctx context.Context, limit time.Duration, r helmchart.Request, program string, args ...string) ([]helmchart.Phase, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the values of the chart: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	out := limitedBuffer{max: maxOutput}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(request), &out
	cmd.Env = []string{"GOMAXPROCS=1", "PATH=" + os.Getenv("PATH")}
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("the chart was not rendered in %s", limit)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(out.err, errTooLarge):
		return nil, fmt.Errorf("the chart renders more than %d MiB", maxOutput>>20)
	case err != nil: // its last words may quote values
		return nil, fmt.Errorf("the process that renders the chart has failed: %w: it can use %d MiB of memory and %s of processor time", err, maxMemory>>20, timeout)
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("the process that renders charts has answered something else: %w", err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Phases, nil
}

var errTooLarge = errors.New("too large")

// limitedBuffer keeps max bytes. A write beyond them fails.
type limitedBuffer struct {
	bytes.Buffer
	max int
	err error
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		b.err = errTooLarge
		return 0, b.err
	}
	return b.Buffer.Write(p)
}
