package powerschedule_test

import (
	"testing"
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// TestHowToolsThatWaitJudgeASchedule has the controller report.
func TestHowToolsThatWaitJudgeASchedule(t *testing.T) {
	t.Run("one that is understood", func(t *testing.T) {
		h := newHub(t, nights(), cluster("team", "a"))
		h.pass()
		kstatustest.ExpectStatus(t, h.schedule(), "InProgress Underway")
		h.run(evening.Add(time.Hour))
		kstatustest.ExpectStatus(t, h.schedule(), "Current")
	})
	t.Run("one that is not", func(t *testing.T) {
		h := newHub(t, nights(func(ps *v1alpha1.PowerSchedule) { ps.Spec.Windows[0].TimeZone = "Nowhere/Town" }))
		h.pass()
		kstatustest.ExpectStatus(t, h.schedule(), "Failed InvalidTimeZone")
		h.edit(func(ps *v1alpha1.PowerSchedule) { ps.Spec.Windows[0].TimeZone = "" })
		h.run(evening.Add(time.Hour))
		kstatustest.ExpectStatus(t, h.schedule(), "Current")
	})
}
