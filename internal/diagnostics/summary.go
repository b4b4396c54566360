package diagnostics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// summarize returns the text of the summary: what the bundle is about, what was found, what is missing, and which
// files there are.
func (b *Bundle) summarize(files []File) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Diagnostics of cluster %s/%s\n", b.Subject.Namespace, b.Subject.Name)
	fmt.Fprintf(&out, "Cause:     %s\n", b.scrubber.Text(b.Subject.Cause))
	fmt.Fprintf(&out, "Collected: %s\n", b.Subject.At.UTC().Format(time.RFC3339))
	if len(b.notes) > 0 {
		out.WriteString("\nFindings\n")
		for _, n := range b.notes {
			fmt.Fprintf(&out, "  %s\n", n)
		}
	}
	out.WriteString("\nNot collected\n")
	if len(b.gaps) == 0 {
		out.WriteString("  nothing: every part could be read\n")
	}
	for _, g := range b.gaps {
		fmt.Fprintf(&out, "  %s: %s\n", g.Part, g.Reason)
	}
	out.WriteString("\nFiles\n")
	for _, f := range files {
		fmt.Fprintf(&out, "  %8d  %s\n", len(f.Content), f.Name)
	}
	out.WriteString("\nValues that are secret or look like it were replaced by REDACTED.\n")
	return out.String()
}

// Failures returns a line for each condition that says that something has failed, the latest first.
func Failures(conditions []hivev1.Condition) []string {
	failed := slices.DeleteFunc(slices.Clone(conditions), func(c hivev1.Condition) bool { return !isFailure(c) })
	slices.SortStableFunc(failed, func(a, b hivev1.Condition) int {
		return cmp.Or(b.LastTransitionTime.Compare(a.LastTransitionTime.Time), cmp.Compare(a.Type, b.Type))
	})
	var out []string
	for _, c := range failed {
		out = append(out, fmt.Sprintf("%s is %s since %s: %s: %s", c.Type, c.Status, formatTime(c.LastTransitionTime.Time), c.Reason, c.Message))
	}
	return out
}

// positive are the types of conditions that are True when all is well.
var positive = []string{
	hivev1.ClusterProvisioned, hivev1.ClusterReady, hivev1.ClusterGatesPassed, hivev1.ClusterBootstrapped, hivev1.ClusterRequirementsMet,
}

// negative are the types of conditions that are True when something has failed.
var negative = []string{
	hivev1.ClusterProvisionFailed, hivev1.ClusterProvisionStopped, hivev1.ClusterInstallLaunchError, hivev1.ClusterAuthenticationFailure,
	hivev1.ClusterUnreachable, hivev1.ClusterDeprovisionLaunchError, hivev1.ClusterInstallFailed, hivev1.ClusterInstallStopped, hivev1.ConditionStalled,
}

func isFailure(c hivev1.Condition) bool {
	return c.Status == corev1.ConditionFalse && slices.Contains(positive, c.Type) || c.Status == corev1.ConditionTrue && slices.Contains(negative, c.Type)
}

// FormatConditions returns a line for each condition, in order of time.
func FormatConditions(conditions []hivev1.Condition) string {
	sorted := slices.Clone(conditions)
	slices.SortStableFunc(sorted, func(a, b hivev1.Condition) int {
		return cmp.Or(a.LastTransitionTime.Compare(b.LastTransitionTime.Time), cmp.Compare(a.Type, b.Type))
	})
	var out strings.Builder
	for _, c := range sorted {
		fmt.Fprintf(&out, "%s  %-28s %-8s %s: %s\n", formatTime(c.LastTransitionTime.Time), c.Type, c.Status, c.Reason, c.Message)
	}
	return out.String()
}

// FormatEvents returns a line for each of the last events, in order of time.
func FormatEvents(events []corev1.Event, limit int) string {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b corev1.Event) int {
		return cmp.Or(eventTime(&a).Compare(eventTime(&b)), cmp.Compare(a.Name, b.Name))
	})
	sorted = sorted[max(0, len(sorted)-limit):]
	var out strings.Builder
	for i := range sorted {
		e := &sorted[i]
		about := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
		fmt.Fprintf(&out, "%s  %-7s %-24s %s: %s", formatTime(eventTime(e)), e.Type, e.Reason, about, joinLines(e.Message))
		if n := eventCount(e); n > 1 {
			fmt.Fprintf(&out, " (%d times)", n)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// eventTime returns when an event was last seen, whichever of its fields its writer has set.
func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}

func eventCount(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return e.Count
}

// formatTime formats a time; a time that was not set is shown as a dash.
func formatTime(at time.Time) string {
	if at.IsZero() {
		return "-                   "
	}
	return at.UTC().Format(time.RFC3339)
}
