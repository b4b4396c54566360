package vsphere

import (
	"fmt"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/cloud"
)

const (
	// grace is how long a guest has to shut down before its machine is powered off.
	grace = 5 * time.Minute
	// forgotten is the age at which a request to shut down counts no more: it was of
	// another stop. It is long enough for a call to come between it and the grace.
	forgotten = 3 * grace
	// remembered is how long a machine counts as failed after vCenter could not power it on.
	remembered = 5 * time.Minute
)

// vm is a machine as read from vCenter.
type vm struct {
	ref          types.ManagedObjectReference
	parent       *types.ManagedObjectReference
	server       string
	name         string
	controlPlane bool
	power        types.VirtualMachinePowerState
	connection   types.VirtualMachineConnectionState
	tools        bool
	bootedAt     time.Time
	// lastOn is the last task to power it on, and switching one to switch it that goes on; or nil.
	lastOn, switching *types.TaskInfo
}

func vmOf(m mo.VirtualMachine, tasks map[types.ManagedObjectReference]types.TaskInfo) vm {
	v := vm{
		ref: m.Self, parent: m.Parent, name: m.Name,
		power: m.Summary.Runtime.PowerState, connection: m.Summary.Runtime.ConnectionState,
		tools: m.Guest != nil && m.Guest.ToolsRunningStatus == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning),
	}
	if boot := m.Summary.Runtime.BootTime; boot != nil {
		v.bootedAt = *boot
	}
	var last *types.TaskInfo
	for _, ref := range m.RecentTask {
		info, ok := tasks[ref]
		if !ok || !switches(info) {
			continue
		}
		if !ended(info) {
			v.switching = &info
		}
		if last == nil || !info.QueueTime.Before(last.QueueTime) {
			last = &info
		}
	}
	// A later task of another kind says more than a power-on that failed before it.
	if last != nil && turnsOn(*last) {
		v.lastOn = last
	}
	return v
}

// turnsOn goes by the task's kind, which has another name with DRS.
func turnsOn(info types.TaskInfo) bool {
	return strings.Contains(strings.ToLower(info.DescriptionId), "poweron")
}

func switches(info types.TaskInfo) bool {
	return turnsOn(info) || strings.Contains(strings.ToLower(info.DescriptionId), "poweroff")
}

// forget drops a failure to power on that is not news any more.
func (v *vm) forget(now time.Time) {
	if t := v.lastOn; t != nil && t.CompleteTime != nil && now.Sub(*t.CompleteTime) > remembered {
		v.lastOn = nil
	}
}

// id names the machine among those of all vCenters.
func (v vm) id() string { return v.ref.Value + " in " + v.server }

// roled tells which machines are the control plane: the installer calls them
// <infraID>-master-<n>, and people who make them by hand master or control-plane.
func roled(infraID string, vms []vm) []vm {
	for i, v := range vms {
		role := strings.ToLower(strings.TrimPrefix(v.name, infraID+"-"))
		for _, word := range []string{"master", "control-plane", "controlplane"} {
			vms[i].controlPlane = vms[i].controlPlane || strings.HasPrefix(role, word)
		}
	}
	return vms
}

func (v vm) connected() bool {
	return v.connection == types.VirtualMachineConnectionStateConnected || v.connection == ""
}

func (v vm) on() bool { return v.power == types.VirtualMachinePowerStatePoweredOn }

func (v vm) off() bool {
	return v.power == types.VirtualMachinePowerStatePoweredOff || v.power == types.VirtualMachinePowerStateSuspended
}

// startable is whether it can be told to start now.
func (v vm) startable() bool { return v.connected() && v.off() && v.switching == nil }

// stoppable is whether it can be told to stop now. A suspended machine is not: its
// memory would be lost.
func (v vm) stoppable() bool { return v.connected() && v.on() && v.switching == nil }

// pending is whether it will run, as far as anybody knows, but does not yet.
func (v vm) pending() bool { return v.connected() && v.off() && !v.refusedOn() }

func (v vm) refusedOn() bool { return v.off() && v.lastOn != nil && v.lastOn.Error != nil }

// state maps what vCenter tells.
func (v vm) state() (cloud.State, string) {
	switch v.connection {
	case "", types.VirtualMachineConnectionStateConnected:
	case types.VirtualMachineConnectionStateDisconnected, types.VirtualMachineConnectionStateInaccessible,
		types.VirtualMachineConnectionStateOrphaned, types.VirtualMachineConnectionStateInvalid:
		return cloud.Failed, fmt.Sprintf("vCenter says that it is %s: see to its host and its datastore", v.connection)
	default:
		return cloud.Unknown, fmt.Sprintf("connection state %q", v.connection)
	}
	switch {
	case v.on() && v.switching != nil && !turnsOn(*v.switching):
		return cloud.Stopping, ""
	case v.on():
		return cloud.Running, ""
	case v.off() && v.switching != nil && turnsOn(*v.switching):
		return cloud.Starting, ""
	case v.refusedOn():
		return cloud.Failed, "vCenter could not power it on: " + wordsOf(v.lastOn.Error)
	case v.power == types.VirtualMachinePowerStateSuspended:
		return cloud.Failed, "it is suspended: resume it or power it off in vCenter; starting the cluster resumes it"
	case v.off():
		return cloud.Stopped, ""
	}
	return cloud.Unknown, fmt.Sprintf("power state %q", v.power)
}

// step is what to do next to stop a machine.
type step string

const (
	shutDown step = "shut down its guest"
	powerOff step = "power it off"
	leave    step = "leave it to its guest"
)

// next decides how to go on stopping a machine whose guest was last asked to shut
// down at asked. While it shuts down the tools end before the guest does, so whether
// they run says little then.
func (v vm) next(asked, now time.Time) step {
	age := now.Sub(asked)
	switch {
	case !asked.After(v.bootedAt), age > forgotten:
		if v.tools {
			return shutDown
		}
		return powerOff
	case age < grace:
		return leave
	}
	return powerOff
}
