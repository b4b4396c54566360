//go:build sims

package redfishtest

import (
	"fmt"
	"strings"
	"testing"

	"hotspare.io/hotspare/test/sims"
)

// redfishtool, from the authors of Redfish, shares no code with the Go library, so what both accept
// as a BMC is not only our own idea of one.
func TestRedfishtoolTakesItForABMC(t *testing.T) {
	s := New(t)
	s.AddAccount("admin", "secret")
	for i := range 2*PageSize + 1 {
		s.AddSystem(System{ID: fmt.Sprintf("blade-%d", i)})
	}
	s.AddSystem(System{ID: "terse", Terse: true, State: On})

	run := func(t *testing.T, args ...string) (string, bool) {
		t.Helper()
		args = append([]string{"-n", "-S", "Always", "-N", "-s", "-r", s.HostPort()}, args...)
		return sims.RunClient(t, nil, "redfishtool", args...)
	}
	last := fmt.Sprintf("blade-%d", 2*PageSize)
	good := []string{"-u", "admin", "-p", "secret"}
	for _, c := range []struct {
		name string
		args []string
		want string
		ok   bool
	}{
		{"the first page is for everybody", []string{"-A", "None", "root"}, "#ServiceRoot", true},
		{"a password in the request", append(good, "-A", "Basic", "Systems", "-I", "blade-0"), `"PowerState": "Off"`, true},
		{"a session", append(good, "-A", "Session", "Systems", "-I", "blade-0"), `"PowerState": "Off"`, true},
		{"a wrong password", []string{"-u", "admin", "-p", "wrong", "-A", "Basic", "Systems", "-I", "blade-0"}, "401", false},
		{"a wrong password for a session", []string{"-u", "admin", "-p", "wrong", "-A", "Session", "Systems", "-I", "blade-0"}, "401", false},
		{"a system that is not there", append(good, "raw", "GET", "/redfish/v1/Systems/none"), "404", false},
		{"a list has pages", append(good, "Systems"), `"Members@odata.nextLink": "/redfish/v1/Systems?$skip=20"`, true},
		{"the last page", append(good, "raw", "GET", "/redfish/v1/Systems?$skip=40"), last, true},
		{"a reset is accepted", append(good, "Systems", "-I", "blade-0", "reset", "On"), "204", true},
		{"the state is the old one", append(good, "Systems", "-I", "blade-0"), `"PowerState": "Off"`, true},
		{"step", nil, "", true},
		{"the state is between two", append(good, "Systems", "-I", "blade-0"), `"PowerState": "PoweringOn"`, true},
		{"a shutdown comes too early", append(good, "raw", "POST", "/redfish/v1/Systems/blade-0/Actions/ComputerSystem.Reset", "-d", `{"ResetType": "GracefulShutdown"}`), "409", false},
		{"step", nil, "", true},
		{"step", nil, "", true},
		{"the state is the new one", append(good, "Systems", "-I", "blade-0"), `"PowerState": "On"`, true},
		{"what is not offered is refused", append(good, "raw", "POST", "/redfish/v1/Systems/blade-0/Actions/ComputerSystem.Reset", "-d", `{"ResetType": "PowerCycle"}`), "400", false},
		{"a reset needs a type", append(good, "raw", "POST", "/redfish/v1/Systems/blade-0/Actions/ComputerSystem.Reset", "-d", `{}`), "400", false},
		{"a reset is no page", append(good, "raw", "GET", "/redfish/v1/Systems/blade-0/Actions/ComputerSystem.Reset"), "405", false},
		{"a guest shuts down", append(good, "Systems", "-I", "terse", "reset", "GracefulShutdown"), "204", true},
	} {
		if c.name == "step" {
			s.AdvanceStates()
			continue
		}
		if got, ok := run(t, c.args...); ok != c.ok || !strings.Contains(got, c.want) {
			t.Errorf("%s: got success %t, want %t and %q in\n%s", c.name, ok, c.ok, c.want, got)
		}
	}
	if n := s.CountOpenSessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}
