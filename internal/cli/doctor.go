package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/explain/remedy"
)

const doctorLong = `Check whether this machine has what hotspare needs: what the hub and its local clusters
need, and what real pods on local clusters need. The result of each check is OK, a Note
that stops nothing, or a Problem. The command lists what you can do about notes and
problems, with commands to copy. It changes nothing, and needs no hub.

The exit code is 1 if there is a problem for the hub. With --containers, it is also 1 if
there is a problem for real pods.`

func (a commands) doctorCommand() *cobra.Command {
	var containers bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this machine has what hotspare needs",
		Long:  doctorLong,
		Example: `  hotspare doctor
  hotspare doctor --containers -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Flags.Output == base.AsName {
				return base.UsageErrorFor(errors.New("-o name is not supported: use table, json or yaml"), cmd)
			}
			return a.runDoctor(cmd.Context(), containers)
		},
	}
	cmd.Flags().BoolVar(&containers, "containers", false, "exit with code 1 also if this machine lacks what real pods need")
	return cmd
}

// doctorReport is the output of doctor for programs.
type doctorReport struct {
	// Hub and Containers are set if the machine has what they need.
	Hub        bool `json:"hub"`
	Containers bool `json:"containers"`
	// ContainersObstacle says why real pods cannot run; "" if they can.
	ContainersObstacle string           `json:"containersObstacle"`
	Findings           []doctor.Finding `json:"findings"`
}

func (a commands) runDoctor(ctx context.Context, containers bool) error {
	facts := a.ReadFacts(ctx, base.ResolveDataDir(a.Flags.DataDir))
	if ctx.Err() != nil {
		return ctx.Err() // facts may be missing
	}
	all := doctor.Findings(facts)
	r := doctorReport{
		Hub: !doctor.HasProblem(all, doctor.Hub), Containers: !doctor.HasProblem(all, doctor.Containers),
		ContainersObstacle: doctor.ContainersObstacle(facts), Findings: all,
	}
	var err error
	switch {
	case !r.Hub:
		err = errors.New("this machine lacks something that the hub needs")
	case containers && !r.Containers:
		err = errors.New("this machine lacks something that real pods need")
	}
	return errors.Join(a.printDoctorReport(r, err != nil), err)
}

// printDoctorReport prints the report in the format of --output. If the command fails, its error
// takes the place of the summary.
func (a commands) printDoctorReport(r doctorReport, failed bool) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(r)
	}
	return a.writeDoctorReport(a.Stdout, r, failed)
}

// resultColours are the colours of results: green meets a need, red does not.
var resultColours = base.Palette{
	string(doctor.OK):      "\x1b[32m",
	string(doctor.Note):    "\x1b[33m",
	string(doctor.Problem): "\x1b[31m",
}

// neededFor are the parts of hotspare in the words of the table.
var neededFor = map[doctor.Need]string{doctor.Hub: "hub", doctor.Containers: "real pods"}

func (a commands) writeDoctorReport(w io.Writer, r doctorReport, failed bool) error {
	t := base.NewTable("CHECK", "FOR", "RESULT", "MESSAGE")
	t.Colours = resultColours
	var list remedy.TaskList
	for _, f := range r.Findings {
		t.AddRow(f.Check, neededFor[f.Needed], string(f.Level), f.Message)
		list.AddRemedy(f.Check, f.Remedy)
	}
	t.WrapLastColumn(a.Width(w), "FOR")
	if err := a.WriteSections(w, t); err != nil {
		return err
	}
	if !failed {
		if _, err := fmt.Fprintf(w, "\n%s\n", r.summarize()); err != nil {
			return err
		}
	}
	if len(list.Act) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return a.WriteSections(w, base.BuildTaskTable(list.Act, list.Wait))
}

// summarize returns a sentence about a machine that has what the hub needs.
func (r doctorReport) summarize() string {
	if r.Containers {
		return "This machine has what the hub and real pods need."
	}
	return "This machine has what the hub needs. It lacks something that real pods need."
}
