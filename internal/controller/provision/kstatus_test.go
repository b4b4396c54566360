package provision

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// attempt returns the attempt with that number.
func (w *world) attempt(number int) *hivev1.ClusterProvision {
	cp := w.attempts()[number]
	return &cp
}

// TestHowToolsThatWaitJudgeAnAttempt has the controller report.
func TestHowToolsThatWaitJudgeAnAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*world)
		want    string
	}{
		"one under way":                         {func(w *world) { w.lab.polls = 100 }, "InProgress Provisioning"},
		"one that the platform has no room for": {func(w *world) { w.lab.installErr = fault.NewCapacity(time.Minute, "no room") }, "InProgress Provisioning"},
		"one that the platform refuses": {func(w *world) {
			w.lab.installErr = &install.UnauthorizedError{Err: fault.NewWait(time.Minute, "no rights")}
		}, "Failed PlatformAuthError"},
		"one that failed":    {func(w *world) { w.lab.failures = 1 }, "Failed QuotaExceeded"},
		"one that succeeded": {func(*world) {}, "Current"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, request()...)
			tc.prepare(w)
			w.mustPass()
			w.mustPass()
			kstatustest.ExpectStatus(t, w.attempt(0), tc.want)
			if !strings.Contains(tc.want, "Current") { // an empty status means the same
				wantEqual(t, int64(1), w.attempt(0).Status.ObservedGeneration)
			}
			writes := len(w.writes)
			w.mustPass()
			kstatustest.ExpectStatus(t, w.attempt(0), tc.want)
			for _, write := range w.writes[writes:] {
				if write == "report Provision "+w.attempt(0).Name {
					t.Error("it is written again though nothing has changed")
				}
			}
		})
	}
}

// TestHowToolsThatWaitJudgeADestruction has the controller report.
func TestHowToolsThatWaitJudgeADestruction(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*world)
		want    string
	}{
		"one under way":  {func(w *world) { w.lab.polls = 100 }, "InProgress Deprovisioning"},
		"one that fails": {func(w *world) { w.lab.undead = 100 }, "InProgress DestroyFailed"},
		"one without an installer to do it": {func(w *world) {
			w.edit(func(cd *hivev1.ClusterDeployment) {
				cd.Spec.Platform = hivev1.Platform{GCP: &runtime.RawExtension{Raw: []byte("{}")}}
			})
		}, "Failed UnsupportedPlatform"},
		"one that is done": {func(*world) {}, "Current"},
	} {
		t.Run(name, func(t *testing.T) {
			w := made(t)
			tc.prepare(w)
			w.mustPass()
			if !w.gone() {
				w.mustPass()
			}
			record := w.deprovision()
			kstatustest.ExpectStatus(t, &record, tc.want)
			wantEqual(t, int64(1), record.Status.ObservedGeneration)
		})
	}
}
