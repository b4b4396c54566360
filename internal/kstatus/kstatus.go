// Package kstatus computes the conditions Reconciling and Stalled, by which tools that wait for
// objects (Flux, Helm, kpt, Argo CD) judge them: those that use the library
// sigs.k8s.io/cli-utils/pkg/kstatus. It derives them from the conditions and the other status
// that the object's controller has just computed, so they need no separate pass.
//
// Both conditions follow the convention "abnormal-true": an object has at most one of them, it is
// True, and a settled object has neither. An object that is being deleted has neither as well:
// its deletionTimestamp shows that.
package kstatus

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Progress is the one of the two conditions that an object has; the zero value means neither.
type Progress struct {
	// Type is hivev1.ConditionReconciling, hivev1.ConditionStalled or empty.
	Type            string
	Reason, Message string
}

// settled is the progress of an object that matches its spec.
var settled = Progress{}

// newReconciling returns the progress of an object that hotspare works on, or that waits for
// something that happens without a person's action.
func newReconciling(reason, message string) Progress {
	return Progress{Type: hivev1.ConditionReconciling, Reason: reason, Message: message}
}

// Stalled returns the progress of an object for which a person must act.
func Stalled(reason, message string) Progress { return newStalled(reason, message) }

func newStalled(reason, message string) Progress {
	return Progress{Type: hivev1.ConditionStalled, Reason: reason, Message: message}
}

// conditionTypes are the conditions that this package sets.
var conditionTypes = []string{hivev1.ConditionReconciling, hivev1.ConditionStalled}

// setConditions sets p in a list of Hive's conditions.
func (p Progress) setConditions(list *[]hivev1.Condition, now time.Time) {
	for _, typ := range conditionTypes {
		if typ != p.Type {
			condition.Remove(list, typ)
		}
	}
	if p.Type != "" {
		condition.Set(list, p.Type, corev1.ConditionTrue, p.Reason, p.Message, now)
	}
}

// maxMessage limits a message, as the schema of conditions does.
const maxMessage = 32768

// setMetaConditions sets p, observed at that generation of the object, in a list of conditions.
func (p Progress) setMetaConditions(list *[]metav1.Condition, generation int64, now time.Time) {
	for _, typ := range conditionTypes {
		if typ != p.Type && meta.FindStatusCondition(*list, typ) != nil {
			meta.RemoveStatusCondition(list, typ)
		}
	}
	if p.Type == "" {
		return
	}
	if len(p.Message) > maxMessage {
		p.Message = strings.ToValidUTF8(p.Message[:maxMessage], "")
	}
	meta.SetStatusCondition(list, metav1.Condition{
		Type: p.Type, Status: metav1.ConditionTrue, Reason: p.Reason, Message: p.Message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

// unlessDeleted returns p for an object that is not being deleted.
func (p Progress) unlessDeleted(deleted *metav1.Time) Progress {
	if deleted != nil {
		return settled
	}
	return p
}
