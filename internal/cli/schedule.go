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
)

func (a *app) scheduleCommand() *cobra.Command {
	cmd := a.newCommandGroup("schedule", "Clusters that sleep by the clock", a.scheduleListCommand())
	cmd.Aliases = []string{"schedules"}
	return cmd
}

func (a *app) scheduleListCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List schedules, and what they do next",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withHub(func(ctx context.Context, h *hub, _ []string) error {
			var list v1alpha1.PowerScheduleList
			if err := h.List(ctx, &list, client.InNamespace(listNamespace(h, everywhere))); err != nil {
				return err
			}
			return a.printObject(&list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.reportEmptyList("schedules", h, everywhere, "kubectl apply -f powerschedule.yaml")
				}
				return a.buildScheduleTable(list.Items, everywhere).writeTo(w, a.paletteFor(w))
			})
		}),
	}
	addAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func (a *app) buildScheduleTable(schedules []v1alpha1.PowerSchedule, namespaces bool) *table {
	t := newTable("SCHEDULE", "CLUSTERS", "LAST", "NEXT", "AGE", "TROUBLE")
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for i := range schedules {
		ps, now := &schedules[i], a.Clock.Now()
		row := []string{
			ps.Name, formatNumber(ps.Status.Clusters), formatLastSlot(ps, now), formatNextSlot(ps, now), a.formatAge(ps.CreationTimestamp.Time), scheduleProblem(ps),
		}
		if namespaces {
			row = append([]string{ps.Namespace}, row...)
		}
		t.addRow(row...)
	}
	return t
}

// slotVerbs are what a slot does, as commands call it.
var slotVerbs = map[hivev1.PowerState]string{hivev1.PowerRunning: "resume", hivev1.PowerHibernating: "hibernate"}

// formatLastSlot is "hibernate 17h ago", with the outcome if it is not the usual one.
func formatLastSlot(ps *v1alpha1.PowerSchedule, now time.Time) string {
	last := ps.Status.LastSlot
	if last == nil {
		return none
	}
	text := slotVerbs[last.PowerState] + " " + duration.HumanDuration(now.Sub(last.Time.Time)) + " ago"
	if last.Outcome != v1alpha1.OutcomeTaken {
		text += ", " + strings.ToLower(string(last.Outcome))
	}
	return text
}

// formatNextSlot is "resume in 3h", and whether that will be skipped.
func formatNextSlot(ps *v1alpha1.PowerSchedule, now time.Time) string {
	next := ps.Status.NextSlot
	if next == nil {
		return none
	}
	text := slotVerbs[next.PowerState] + " in " + duration.HumanDuration(next.Time.Sub(now))
	if until := ps.Spec.SkipUntil; until != nil && next.Time.Before(until) {
		text += ", to be skipped"
	}
	return text
}

// scheduleProblem is what somebody has to see to.
func scheduleProblem(ps *v1alpha1.PowerSchedule) string {
	if c := meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ScheduleValid); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	if last := ps.Status.LastSlot; last != nil {
		return last.Message
	}
	return ""
}
