package vsphere

import (
	"fmt"
	"net/http"
	"strings"

	soapsession "github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/types"
)

// grow gives a cluster n more workers.
func (v *vcenter) grow(infraID string, n int) {
	v.Helper()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-extra-%d", infraID, i))
	}
	v.mark(infraID, v.vms(infraID, names...)...)
}

// throttle refuses the next n requests, whatever they are for.
func (v *vcenter) throttle(n int) {
	v.doorman(func(w http.ResponseWriter, _ *http.Request) bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		if n--; n >= 0 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return n >= 0
	})
}

// change gives the account another password. Sessions go on.
func (v *vcenter) change(password string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.password = password
}

// lock ends all sessions of the account, and lets it begin no more.
func (v *vcenter) lock() {
	v.Helper()
	v.change("")
	if keys := v.sessionKeys(); len(keys) > 0 {
		v.must(soapsession.NewManager(v.admin.Client).TerminateSession(v.Context(), keys))
	}
}

// forbid takes the privileges on a machine away. A datacenter is then not told to
// power on anything: which machines it is asked for together does not matter here.
func (v *vcenter) forbid(ref types.ManagedObjectReference) {
	no := &types.NoPermission{PrivilegeId: "VirtualMachine.Interact.PowerOff"}
	v.fail(no, "PowerOnMultiVM_Task")
	for _, method := range []string{"PowerOnVM_Task", "PowerOffVM_Task", "ShutdownGuest"} {
		v.fail(no, method, ref)
	}
}

// odd puts a machine into a state of which this vCenter alone knows.
func (v *vcenter) odd(ref types.ManagedObjectReference) {
	v.set(ref, "summary.runtime.connectionState", types.VirtualMachineConnectionState("odd"))
}

// hang keeps requests of sessions until their callers leave, or the test ends. What it
// returns tells of each. Logging in is not cut short: see dial.
func (v *vcenter) hang() <-chan struct{} {
	arrived, free := make(chan struct{}, 100), make(chan struct{})
	v.doorman(func(_ http.ResponseWriter, req *http.Request) bool {
		if !strings.HasPrefix(req.URL.Path, "/rest/com/vmware/cis/tagging") {
			return false
		}
		arrived <- struct{}{}
		select {
		case <-free:
		case <-req.Context().Done():
		}
		return true
	})
	v.Cleanup(func() { close(free); v.doorman(nil) })
	return arrived
}
