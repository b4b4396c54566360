// Package condition edits lists of hivev1.Condition. It is deterministic, and changes nothing if
// the condition is the same.
package condition

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// maxMessage limits a message: conditions are read by people, and stored with the object.
const maxMessage = 4096

// Set puts a condition into the list. It sets the transition time when the status changes, and
// the probe time when anything does; otherwise the list remains unchanged. The list is kept
// sorted by type. Set reports whether anything changed.
func Set(list *[]hivev1.Condition, typ string, status corev1.ConditionStatus, reason, message string, now time.Time) bool {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	i := slices.IndexFunc(*list, func(c hivev1.Condition) bool { return c.Type == typ })
	if i < 0 {
		*list = append(*list, hivev1.Condition{
			Type: typ, Status: status, Reason: reason, Message: message,
			LastProbeTime: at, LastTransitionTime: at,
		})
		slices.SortStableFunc(*list, func(a, b hivev1.Condition) int { return strings.Compare(a.Type, b.Type) })
		return true
	}
	c := &(*list)[i]
	if c.Status == status && c.Reason == reason && c.Message == message {
		return false
	}
	if c.Status != status {
		c.LastTransitionTime = at
	}
	c.Status, c.Reason, c.Message, c.LastProbeTime = status, reason, message, at
	return true
}

// Find returns the condition of that type, or nil.
func Find(list []hivev1.Condition, typ string) *hivev1.Condition {
	for i := range list {
		if list[i].Type == typ {
			return &list[i]
		}
	}
	return nil
}

// Remove removes the condition of that type from the list. It reports whether there was one.
func Remove(list *[]hivev1.Condition, typ string) bool {
	if Find(*list, typ) == nil {
		return false
	}
	*list = slices.DeleteFunc(slices.Clone(*list), func(c hivev1.Condition) bool { return c.Type == typ })
	return true
}

// IsTrue reports whether the condition exists and is True.
func IsTrue(list []hivev1.Condition, typ string) bool {
	c := Find(list, typ)
	return c != nil && c.Status == corev1.ConditionTrue
}

// StatusOf returns the status for a fact.
func StatusOf(fact bool) corev1.ConditionStatus {
	if fact {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
