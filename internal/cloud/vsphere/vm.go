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
	// shutdownGrace is how long a guest has to shut down before its machine is powered off.
	shutdownGrace = 5 * time.Minute
	// shutdownRequestTTL is the age at which a request to shut down counts no more: it was of
	// another stop. It is long enough for a call to come between it and the grace.
	shutdownRequestTTL = 3 * shutdownGrace
	// startFailureTTL is how long a machine counts as failed after vCenter could not power it on.
	startFailureTTL = 5 * time.Minute
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

func newVMFromProperties(m mo.VirtualMachine, tasks map[types.ManagedObjectReference]types.TaskInfo) vm {
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
		if !ok || !isPowerTask(info) {
			continue
		}
		if !isTaskDone(info) {
			v.switching = &info
		}
		if last == nil || !info.QueueTime.Before(last.QueueTime) {
			last = &info
		}
	}
	// A later task of another kind says more than a power-on that failed before it.
	if last != nil && isPowerOnTask(*last) {
		v.lastOn = last
	}
	return v
}

// isPowerOnTask goes by the task's kind, which has another name with DRS.
func isPowerOnTask(info types.TaskInfo) bool {
	return strings.Contains(strings.ToLower(info.DescriptionId), "poweron")
}

func isPowerTask(info types.TaskInfo) bool {
	return isPowerOnTask(info) || strings.Contains(strings.ToLower(info.DescriptionId), "poweroff")
}

// dropOldFailure drops a failure to power on that is not news any more.
func (v *vm) dropOldFailure(now time.Time) {
	if t := v.lastOn; t != nil && t.CompleteTime != nil && now.Sub(*t.CompleteTime) > startFailureTTL {
		v.lastOn = nil
	}
}

// uniqueID names the machine among those of all vCenters.
func (v vm) uniqueID() string { return v.ref.Value + " in " + v.server }

// markControlPlane tells which machines are the control plane: the installer calls them
// <infraID>-master-<n>, and people who make them by hand master or control-plane.
func markControlPlane(infraID string, vms []vm) []vm {
	for i, v := range vms {
		role := strings.ToLower(strings.TrimPrefix(v.name, infraID+"-"))
		for _, word := range []string{"master", "control-plane", "controlplane"} {
			vms[i].controlPlane = vms[i].controlPlane || strings.HasPrefix(role, word)
		}
	}
	return vms
}

func (v vm) isConnected() bool {
	return v.connection == types.VirtualMachineConnectionStateConnected || v.connection == ""
}

func (v vm) isPoweredOn() bool { return v.power == types.VirtualMachinePowerStatePoweredOn }

func (v vm) isPoweredOff() bool {
	return v.power == types.VirtualMachinePowerStatePoweredOff || v.power == types.VirtualMachinePowerStateSuspended
}

// canStart is whether it can be told to start now.
func (v vm) canStart() bool { return v.isConnected() && v.isPoweredOff() && v.switching == nil }

// canStop is whether it can be told to stop now. A suspended machine is not: its
// memory would be lost.
func (v vm) canStop() bool { return v.isConnected() && v.isPoweredOn() && v.switching == nil }

// isStartPending is whether it will run, as far as anybody knows, but does not yet.
func (v vm) isStartPending() bool { return v.isConnected() && v.isPoweredOff() && !v.failedToPowerOn() }

func (v vm) failedToPowerOn() bool {
	return v.isPoweredOff() && v.lastOn != nil && v.lastOn.Error != nil
}

// machineState maps what vCenter tells.
func (v vm) machineState() (cloud.State, string) {
	switch v.connection {
	case "", types.VirtualMachineConnectionStateConnected:
	case types.VirtualMachineConnectionStateDisconnected, types.VirtualMachineConnectionStateInaccessible,
		types.VirtualMachineConnectionStateOrphaned, types.VirtualMachineConnectionStateInvalid:
		return cloud.Failed, fmt.Sprintf("vCenter says that it is %s: see to its host and its datastore", v.connection)
	default:
		return cloud.Unknown, fmt.Sprintf("connection state %q", v.connection)
	}
	switch {
	case v.isPoweredOn() && v.switching != nil && !isPowerOnTask(*v.switching):
		return cloud.Stopping, ""
	case v.isPoweredOn():
		return cloud.Running, ""
	case v.isPoweredOff() && v.switching != nil && isPowerOnTask(*v.switching):
		return cloud.Starting, ""
	case v.failedToPowerOn():
		return cloud.Failed, "vCenter could not power it on: " + faultMessage(v.lastOn.Error)
	case v.power == types.VirtualMachinePowerStateSuspended:
		return cloud.Failed, "it is suspended: resume it or power it off in vCenter; starting the cluster resumes it"
	case v.isPoweredOff():
		return cloud.Stopped, ""
	}
	return cloud.Unknown, fmt.Sprintf("power state %q", v.power)
}

// stopStep is what to do next to stop a machine.
type stopStep string

const (
	stepShutDownGuest stopStep = "shut down its guest"
	stepPowerOff      stopStep = "power it off"
	stepWaitForGuest  stopStep = "leave it to its guest"
)

// nextStopStep decides how to go on stopping a machine whose guest was last asked to shut
// down at asked. While it shuts down the tools end before the guest does, so whether
// they run says little then.
func (v vm) nextStopStep(asked, now time.Time) stopStep {
	age := now.Sub(asked)
	switch {
	case !asked.After(v.bootedAt), age > shutdownRequestTTL:
		if v.tools {
			return stepShutDownGuest
		}
		return stepPowerOff
	case age < shutdownGrace:
		return stepWaitForGuest
	}
	return stepPowerOff
}
