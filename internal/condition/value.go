package condition

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Value is a condition without its type and times, as a decider returns it. The zero value means
// that the decider makes no statement.
type Value struct {
	Status          corev1.ConditionStatus
	Reason, Message string
}

// True returns the value of a condition whose status is True.
func True(reason, message string) Value { return Value{corev1.ConditionTrue, reason, message} }

// False returns the value of a condition whose status is False.
func False(reason, message string) Value { return Value{corev1.ConditionFalse, reason, message} }

// Unknown returns the value of a condition whose status is Unknown.
func Unknown(reason, message string) Value { return Value{corev1.ConditionUnknown, reason, message} }

// IsTrue reports whether the status is True.
func (v Value) IsTrue() bool { return v.Status == corev1.ConditionTrue }

// Apply sets the condition of type typ to v by the rules of Set. The zero Value leaves the
// list as it is. Apply reports whether anything changed.
func Apply(list *[]hivev1.Condition, typ string, v Value, now time.Time) bool {
	if v == (Value{}) {
		return false
	}
	return Set(list, typ, v.Status, v.Reason, v.Message, now)
}
