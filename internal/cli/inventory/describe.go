package inventory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/inventoryview"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/inventory"
)

func (a commands) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Show the details of a customization",
		Long: `Show the patches of a customization, the cluster that uses it, its status in each pool
that lists it, and what you can do.

Values that look like secrets are hidden; -o yaml prints the object unchanged.`,
		Example: `  hotspare inventory describe foo
  hotspare inventory describe foo -o yaml`,
		Args:              base.RequireOneName("customization"),
		ValidArgsFunction: a.completeCustomizations,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			s, err := readInventory(ctx, h, h.Namespace)
			if err != nil {
				return err
			}
			c := s.FindCustomization(h.Namespace, args[0])
			if c == nil {
				return a.customizationNotFound(s, h.Namespace, args[0])
			}
			return a.PrintObject(c, func(w io.Writer) error { return a.writeCustomization(w, c, s) })
		}),
	}
}

// customizationNotFound lists the existing customizations, or the pools whose inventory lists the
// missing one.
func (a commands) customizationNotFound(s *inventoryview.Objects, namespace, name string) error {
	err := fmt.Errorf("namespace %s has no customization %q", namespace, name)
	var pools []string
	for _, e := range s.EntriesNamed(name) {
		pools = append(pools, e.Pool)
	}
	if len(pools) > 0 {
		return base.WithRemedy(fmt.Errorf("%w, but the inventory of %s lists it", err, humanize.JoinWords(pools)),
			"create it with: "+a.FormatCommand("kubectl apply -f customization.yaml"))
	}
	var others []string
	for _, c := range s.Customizations {
		others = append(others, c.Name)
	}
	has := "it has " + humanize.JoinWords(others)
	if len(others) == 0 {
		has = "it has none"
	}
	return base.WithRemedy(err, has+"; list the customizations of all namespaces with: "+a.FormatCommand("inventory list -A"))
}

// writeCustomization writes the facts of a customization, then its status in pools, its patches
// and its conditions.
func (a commands) writeCustomization(w io.Writer, c *hivev1.ClusterDeploymentCustomization, s *inventoryview.Objects) error {
	tables := []*base.Table{a.buildCustomizationFacts(c, s)}
	for _, e := range s.EntriesNamed(c.Name) {
		tables = append(tables, a.buildEntryFacts(e))
	}
	tables = append(tables, a.buildPatchTable("PATCHES", listPatches(c.Spec)), a.buildLastAppliedTable(c), a.BuildConditionTable(toHiveConditions(c.Status.Conditions)))
	return a.WriteSections(w, tables...)
}

func (a commands) buildCustomizationFacts(c *hivev1.ClusterDeploymentCustomization, s *inventoryview.Objects) *base.Table {
	t := base.NewTable()
	t.AddRow("Customization", c.Namespace+"/"+c.Name)
	t.AddRow("Age", a.FormatAge(c.CreationTimestamp.Time))
	if c.DeletionTimestamp != nil {
		t.AddRow("Deleted", a.FormatAge(c.DeletionTimestamp.Time)+" ago; the deletion completes when no cluster uses it")
	}
	t.AddRow("Used by", s.DescribeHolder(c))
	if c.Status.ClusterDeploymentRef != nil {
		t.AddRow("Used for", a.timeInUse(c))
	}
	if len(s.EntriesNamed(c.Name)) == 0 {
		t.AddRow("Pools", "none: add it to the spec.inventory of a pool")
		t.AddRow("", a.FormatCommand("kubectl edit clusterpool POOL"))
	}
	if c.Unreadable != "" {
		t.AddRow("Unreadable", c.Unreadable)
	}
	return t
}

// timeInUse returns how long the customization has been unavailable.
func (a commands) timeInUse(c *hivev1.ClusterDeploymentCustomization) string {
	available := meta.FindStatusCondition(c.Status.Conditions, hivev1.CustomizationAvailable)
	if available == nil || available.Status != metav1.ConditionFalse {
		return base.None
	}
	return a.FormatAge(available.LastTransitionTime.Time)
}

// buildEntryFacts lists the status of a customization in a pool, its meaning and the actions for
// the user. It has only two columns, so that it is readable on a narrow terminal.
func (a commands) buildEntryFacts(e inventoryview.Entry) *base.Table {
	t := base.NewTable()
	t.Colours = base.InventoryColours
	sense := e.ExplainStatus(func(_, format string, args ...any) string { return a.FormatCommand(format, args...) }) // the pool is in the command's namespace
	t.AddRow("Pool", e.Pool)
	t.AddRow("Status", base.ValueOrNone(string(e.Status)))
	addMultilineFact(t, "Meaning", sense.Meaning)
	if e.Status != "" {
		addMultilineFact(t, "Message", e.Message)
	}
	if e.Attempts != nil {
		t.AddRow("Attempts", fmt.Sprintf("%d of %d left", *e.Attempts, inventory.MaxAttempts))
	}
	addMultilineFact(t, "To do", formatRemedies(sense.Remedy))
	return t
}

// formatRemedies formats remedies, each followed by its command.
func formatRemedies(all []remedy.Remedy) string {
	var lines []string
	for _, do := range all {
		lines = append(lines, do.Text)
		if do.Command != "" {
			lines = append(lines, "  "+do.Command)
		}
	}
	return strings.Join(lines, "\n")
}

// addMultilineFact adds a fact with one row for each line; no rows if it is empty.
func addMultilineFact(t *base.Table, name, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		t.AddRow(name, line)
		name = ""
	}
}

// buildLastAppliedTable lists the patches of the last cluster that used the customization, if they
// differ from the current ones.
func (a commands) buildLastAppliedTable(c *hivev1.ClusterDeploymentCustomization) *base.Table {
	const title = "LAST APPLIED"
	before, err := parseAppliedPatches(c.Status.LastAppliedConfiguration)
	switch {
	case errors.Is(err, errNeverApplied):
		return base.NewTable()
	case err != nil:
		t := base.NewTable(title)
		t.AddRow("status.lastAppliedConfiguration cannot be read: see it with -o yaml")
		return t
	case equalPatches(before, listPatches(c.Spec)):
		return base.NewTable()
	}
	return a.buildPatchTable(title, before)
}

// toHiveConditions converts conditions to the type that Hive's other kinds use.
func toHiveConditions(conditions []metav1.Condition) []hivev1.Condition {
	var out []hivev1.Condition
	for _, c := range conditions {
		out = append(out, hivev1.Condition{
			Type: c.Type, Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return out
}
