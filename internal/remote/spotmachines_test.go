package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/power"
)

// machine is a Machine of a spot machine, owned by a MachineSet but for what is changed.
func newMachine(name string, change func(metadata, status map[string]any)) map[string]any {
	metadata := map[string]any{
		"name": name, "uid": name, "creationTimestamp": "2026-11-21T12:00:00Z",
		"ownerReferences": []any{map[string]any{"kind": "MachineSet", "name": "set", "controller": true}},
	}
	status := map[string]any{}
	if change != nil {
		change(metadata, status)
	}
	return map[string]any{"metadata": metadata, "spec": map[string]any{"providerID": "aws:///a/" + name}, "status": status}
}

func TestSpotsAreThoseThatAreMadeAnew(t *testing.T) {
	a := newAPI(t)
	a.answers[machinesPath] = map[string]any{"items": []any{
		newMachine("plain", nil),
		newMachine("joined", func(_, status map[string]any) { status["nodeRef"] = map[string]any{"name": "n"} }),
		newMachine("failed", func(_, status map[string]any) { status["phase"] = "Failed" }),
		newMachine("bare", func(metadata, _ map[string]any) { delete(metadata, "ownerReferences") }),
		newMachine("another's", func(metadata, _ map[string]any) {
			metadata["ownerReferences"] = []any{map[string]any{"kind": "ControlPlaneMachineSet", "name": "set", "controller": true}}
		}),
		newMachine("going", func(metadata, _ map[string]any) { metadata["deletionTimestamp"] = "2026-11-21T12:30:00Z" }),
	}}
	c, _ := connector(t, kubeconfig(a.Server, token(secret)))
	s, err := c.ObserveSpoke(t.Context(), key, ObserveOptions{SpotMachines: true})
	if err != nil || !s.Reachable {
		t.Fatal(s.UnreachableReason, err)
	}
	made := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	want := []power.SpotMachine{
		{Name: "plain", UID: "plain", ProviderID: "aws:///a/plain", Created: made},
		{Name: "joined", UID: "joined", ProviderID: "aws:///a/joined", Created: made, Joined: true},
		{Name: "failed", UID: "failed", ProviderID: "aws:///a/failed", Created: made, Failed: true},
	}
	for i := range s.SpotMachines {
		s.SpotMachines[i].Created = s.SpotMachines[i].Created.UTC()
	}
	if diff := cmp.Diff(want, s.SpotMachines); diff != "" {
		t.Error(diff)
	}
	delete(a.answers, machinesPath)
	if s, err = c.ObserveSpoke(t.Context(), key, ObserveOptions{SpotMachines: true}); err != nil || !s.Reachable || len(s.SpotMachines) != 0 {
		t.Errorf("an API without Machines: %+v, %v", s, err)
	}
}

func TestReplaceDeletesTheMachineThatWasSeen(t *testing.T) {
	var asked []string
	status := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, machinesPath)+" "+strings.TrimSpace(string(raw)))
		w.Header().Set("Content-Type", "application/json")
		if code := status[r.Method]; code != 0 {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": secret, "code": code, "reason": http.StatusText(code)})
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	t.Cleanup(srv.Close)
	c, _ := connector(t, kubeconfig(srv, token(secret)))
	spot := power.SpotMachine{Name: "m", UID: "u"}
	deleted, trouble, err := c.DeleteSpotMachine(t.Context(), key, spot)
	if !deleted || trouble != "" || err != nil {
		t.Error(deleted, trouble, err)
	}
	want := []string{
		`PATCH /m {"metadata":{"annotations":{"machine.openshift.io/exclude-node-draining":"true"},"uid":"u"}}`,
		`DELETE /m {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"}}`,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	for name, tt := range map[string]struct {
		method  string
		code    int
		trouble string
	}{
		"one that is gone is no trouble":     {http.MethodPatch, http.StatusNotFound, ""},
		"nor is another of its name":         {http.MethodDelete, http.StatusConflict, ""},
		"one that may not be deleted is":     {http.MethodDelete, http.StatusForbidden, "the admin kubeconfig may not delete Machines"},
		"what a cluster says is not told on": {http.MethodPatch, http.StatusInternalServerError, "it is not ready to serve"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(status)
			status[tt.method] = tt.code
			deleted, trouble, err := c.DeleteSpotMachine(t.Context(), key, spot)
			if deleted || err != nil || trouble != tt.trouble {
				t.Errorf("%v, %q, %v; want trouble %q", deleted, trouble, err, tt.trouble)
			}
		})
	}
}
