package remote

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/power"
)

func TestVersion(t *testing.T) {
	upgrade := func(state, version string, completed any) map[string]any {
		return map[string]any{"state": state, "version": version, "image": "i", "startedTime": slept, "completionTime": completed}
	}
	openShift := func(version string, history ...any) map[string]any {
		return map[string]any{"status": map[string]any{"desired": map[string]any{"version": version, "image": "i"}, "history": history}}
	}
	kubernetes := map[string]any{"gitVersion": "v1.36.3"}
	for name, tc := range map[string]struct {
		answers map[string]any
		want    power.Version
	}{
		"an OpenShift cluster has a ClusterVersion": {
			map[string]any{clusterVersionPath: openShift("4.19.1", upgrade("Partial", "4.19.1", nil), upgrade("Completed", "4.18.2", woke)), apiVersionPath: kubernetes},
			power.Version{OpenShift: true, Desired: "4.19.1", Image: "i", History: []power.Upgrade{
				{State: "Partial", Version: "4.19.1", Image: "i", Started: slept}, {State: "Completed", Version: "4.18.2", Image: "i", Started: slept, Completed: woke},
			}},
		},
		"others have that of their API":          {map[string]any{apiVersionPath: kubernetes}, power.Version{Desired: "v1.36.3"}},
		"one that is not served is not known":    {map[string]any{}, power.Version{}},
		"one that may not be read is not known":  {map[string]any{clusterVersionPath: http.StatusForbidden, apiVersionPath: kubernetes}, power.Version{}},
		"nor is one that cannot be read":         {map[string]any{clusterVersionPath: []int{7}, apiVersionPath: kubernetes}, power.Version{}},
		"nor one that is empty":                  {map[string]any{clusterVersionPath: openShift("")}, power.Version{}},
		"of a long history there is the end":     {map[string]any{clusterVersionPath: openShift("4", upgrade("a", "1", nil), upgrade("b", "2", nil), upgrade("c", "3", nil), upgrade("d", "4", nil))}, power.Version{OpenShift: true, Desired: "4", Image: "i", History: []power.Upgrade{{State: "a", Version: "1", Image: "i", Started: slept}, {State: "b", Version: "2", Image: "i", Started: slept}, {State: "c", Version: "3", Image: "i", Started: slept}}}},
		"a flood does not reach the hub":         {map[string]any{clusterVersionPath: openShift(strings.Repeat("4", 1000))}, power.Version{}},
		"nor does one in the version of the API": {map[string]any{apiVersionPath: map[string]any{"gitVersion": strings.Repeat("v", 1000)}}, power.Version{}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			for path, answer := range tc.answers {
				a.answers[path] = answer
			}
			c, _ := connector(t, kubeconfig(a.Server, token(secret)))
			s, err := c.ObserveSpoke(t.Context(), key, ObserveOptions{Version: true})
			if err != nil || !s.Reachable {
				t.Fatalf("%+v, %v", s, err)
			}
			if diff := cmp.Diff(tc.want, s.Version, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Error(diff)
			}
			if s, _ := c.ObserveSpoke(t.Context(), key, ObserveOptions{}); s.Version.Desired != "" {
				t.Error("told without being asked")
			}
		})
	}
}
