package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
)

func (a commands) scheduleCommand() *cobra.Command {
	cmd := a.NewCommandGroup("schedule", "Schedules that hibernate and resume clusters", a.scheduleListCommand())
	cmd.Aliases = []string{"schedules"}
	return cmd
}

func (a commands) scheduleListCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List schedules with their last and next power changes",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			var list v1alpha1.PowerScheduleList
			if err := h.List(ctx, &list, client.InNamespace(base.ListNamespace(h, everywhere))); err != nil {
				return err
			}
			return a.PrintObject(&list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.ReportEmptyList("schedules", h, everywhere, "kubectl apply -f powerschedule.yaml")
				}
				return a.buildScheduleTable(list.Items, everywhere).WriteTo(w, a.PaletteFor(w))
			})
		}),
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func (a commands) buildScheduleTable(schedules []v1alpha1.PowerSchedule, namespaces bool) *base.Table {
	t := base.NewTable("SCHEDULE", "CLUSTERS", "LAST", "NEXT", "AGE", "TROUBLE")
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for i := range schedules {
		ps, now := &schedules[i], a.Clock.Now()
		row := []string{
			ps.Name, base.FormatNumber(ps.Status.Clusters), formatLastSlot(ps, now), formatNextSlot(ps, now), a.FormatAge(ps.CreationTimestamp.Time), scheduleProblem(ps),
		}
		if namespaces {
			row = append([]string{ps.Namespace}, row...)
		}
		t.AddRow(row...)
	}
	return t
}

// slotVerbs maps the power state of a slot to the command that sets it.
var slotVerbs = map[hivev1.PowerState]string{hivev1.PowerRunning: "resume", hivev1.PowerHibernating: "hibernate"}

// formatLastSlot returns the last power change, such as "hibernate 17h ago", with its outcome
// unless it was taken.
func formatLastSlot(ps *v1alpha1.PowerSchedule, now time.Time) string {
	last := ps.Status.LastSlot
	if last == nil {
		return base.None
	}
	text := slotVerbs[last.PowerState] + " " + duration.HumanDuration(now.Sub(last.Time.Time)) + " ago"
	if last.Outcome != v1alpha1.OutcomeTaken {
		text += ", " + strings.ToLower(string(last.Outcome))
	}
	return text
}

// formatNextSlot returns the next power change, such as "resume in 3h", and whether it will be
// skipped.
func formatNextSlot(ps *v1alpha1.PowerSchedule, now time.Time) string {
	next := ps.Status.NextSlot
	if next == nil {
		return base.None
	}
	text := slotVerbs[next.PowerState] + " in " + duration.HumanDuration(next.Time.Sub(now))
	if until := ps.Spec.SkipUntil; until != nil && next.Time.Before(until) {
		text += ", will be skipped"
	}
	return text
}

// scheduleProblem returns the problem of a schedule that needs attention; "" if there is none.
func scheduleProblem(ps *v1alpha1.PowerSchedule) string {
	if c := meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ScheduleValid); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	if last := ps.Status.LastSlot; last != nil {
		return last.Message
	}
	return ""
}
