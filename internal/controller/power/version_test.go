package power

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power"
)

// A cluster below 4.4.8 is upgraded by somebody: hibernation, which was refused, comes
// about by itself.
func TestAnUpgradeOutOfUnsupportedIsNoticed(t *testing.T) {
	old := "4.4.7"
	h := newHub(t, func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState = hivev1.PowerHibernating
		cd.Status.InstallVersion = &old
	})
	h.version = power.Version{OpenShift: true, Desired: old}
	h.pass()
	if got := h.reason(hivev1.ClusterHibernating); got != "False Unsupported" {
		t.Fatalf("Hibernating is %s", got)
	}
	if got := h.desired(); got != old {
		t.Fatalf("status.clusterVersionStatus has version %q", got)
	}

	h.version.Desired = "4.4.8"
	h.until(hivev1.StatusHibernating)
	want := map[string]string{
		hivev1.LabelVersion: "4.4.8", hivev1.LabelVersionMajor: "4", hivev1.LabelVersionMajorMinor: "4.4", hivev1.LabelVersionMajorMinorPatch: "4.4.8",
	}
	for key, value := range want {
		if got := h.get().Labels[key]; got != value {
			t.Errorf("label %s is %q, want %q", key, got, value)
		}
	}
}

func (h *hub) desired() string {
	h.Helper()
	var said struct {
		Desired struct{ Version string }
	}
	if raw := h.get().Status.ClusterVersionStatus; raw == nil || json.Unmarshal(raw.Raw, &said) != nil {
		h.Errorf("status.clusterVersionStatus is %v", raw)
	}
	return said.Desired.Version
}

func TestTheVersionIsStoredInTheFormOfOpenShift(t *testing.T) {
	started := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	v := power.Version{OpenShift: true, Desired: "4.19.1", Image: "quay.io/ocp@sha256:1", History: []power.Upgrade{
		{State: "Partial", Version: "4.19.1", Image: "quay.io/ocp@sha256:1", Started: started.Add(time.Hour)},
		{State: "Completed", Version: "4.18.2", Image: "quay.io/ocp@sha256:0", Started: started, Completed: started.Add(time.Minute)},
	}}
	var status hivev1.ClusterDeploymentStatus
	setVersionStatus(&status, v)
	want := `{"desired":{"version":"4.19.1","image":"quay.io/ocp@sha256:1"},"history":[` +
		`{"state":"Partial","startedTime":"2026-11-01T09:00:00Z","completionTime":null,"version":"4.19.1","image":"quay.io/ocp@sha256:1"},` +
		`{"state":"Completed","startedTime":"2026-11-01T08:00:00Z","completionTime":"2026-11-01T08:01:00Z","version":"4.18.2","image":"quay.io/ocp@sha256:0"}]}`
	if diff := cmp.Diff(want, string(status.ClusterVersionStatus.Raw)); diff != "" {
		t.Error(diff)
	}

	// As the API server gives it back.
	stored := `{"history":[{"completionTime":null,"image":"quay.io/ocp@sha256:1","startedTime":"2026-11-01T09:00:00Z","state":"Partial","version":"4.19.1"},` +
		`{"completionTime":"2026-11-01T08:01:00Z","image":"quay.io/ocp@sha256:0","startedTime":"2026-11-01T08:00:00Z","state":"Completed","version":"4.18.2"}],` +
		`"desired":{"image":"quay.io/ocp@sha256:1","version":"4.19.1"}}`
	status.ClusterVersionStatus = &runtime.RawExtension{Raw: []byte(stored)}
	for _, same := range []power.Version{v, {}} {
		if setVersionStatus(&status, same); string(status.ClusterVersionStatus.Raw) != stored {
			t.Errorf("what is not new is written: %s", status.ClusterVersionStatus.Raw)
		}
	}
	if got := reportedVersion(status); got != "4.19.1" {
		t.Errorf("reads %q", got)
	}
	status.ClusterVersionStatus.Raw = []byte(`{"desired":7}`)
	if got := reportedVersion(status); got != "" {
		t.Errorf("reads %q of another form", got)
	}
}
