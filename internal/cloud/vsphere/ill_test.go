package vsphere

import (
	"fmt"
	"net/http"
	"strings"

	soapsession "github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/types"
)

// grow adds n workers to a cluster.
func (v *vcenter) grow(infraID string, n int) {
	v.Helper()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-extra-%d", infraID, i))
	}
	v.mark(infraID, v.vms(infraID, names...)...)
}

// throttle rejects the next n requests of any kind.
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

// change sets another password for the account. Sessions remain valid.
func (v *vcenter) change(password string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.password = password
}

// lock ends all sessions of the account, and rejects new ones.
func (v *vcenter) lock() {
	v.Helper()
	v.change("")
	if keys := v.sessionKeys(); len(keys) > 0 {
		v.must(soapsession.NewManager(v.admin.Client).TerminateSession(v.Context(), keys))
	}
}

// forbid removes the privileges on a machine. The datacenter then also rejects every request for
// several machines: how machines are grouped does not matter here.
func (v *vcenter) forbid(ref types.ManagedObjectReference) {
	no := &types.NoPermission{PrivilegeId: "VirtualMachine.Interact.PowerOff"}
	v.fail(no, "PowerOnMultiVM_Task")
	for _, method := range []string{"PowerOnVM_Task", "PowerOffVM_Task", "ShutdownGuest"} {
		v.fail(no, method, ref)
	}
}

// odd puts a machine into a state that only this vCenter knows.
func (v *vcenter) odd(ref types.ManagedObjectReference) {
	v.set(ref, "summary.runtime.connectionState", types.VirtualMachineConnectionState("odd"))
}

// hang makes requests of sessions hang until their callers give up or the test ends. The returned
// channel receives a value for each. Logins are not interrupted: see connectToCenter.
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
