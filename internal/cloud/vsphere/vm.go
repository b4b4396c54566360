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
	// shutdownGrace is how long a guest may take to shut down before its machine is powered off.
	shutdownGrace = 5 * time.Minute
	// shutdownRequestTTL is the age from which a shutdown request is ignored, because it belongs to
	// an earlier stop. It leaves enough time for a call after shutdownGrace.
	shutdownRequestTTL = 3 * shutdownGrace
	// startFailureTTL is how long a machine is reported as failed after vCenter could not power it
	// on.
	startFailureTTL = 5 * time.Minute
)

// vm is a machine as read from vCenter.
type vm struct {
	ref    types.ManagedObjectReference
	parent *types.ManagedObjectReference
	server string
	name   string
	// label is the name in observations, for a machine that is changed.
	label        string
	controlPlane bool
	// providerID is set for selected machines.
	providerID string
	power      types.VirtualMachinePowerState
	connection types.VirtualMachineConnectionState
	tools      bool
	bootedAt   time.Time
	// lastOn and lastSuspend are the last power task, if that powered it on or suspended it, and
	// switching is a power task that is in progress; or nil.
	lastOn, lastSuspend, switching *types.TaskInfo
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
	// A later task of another kind supersedes an earlier failed power-on.
	if last != nil && isPowerOnTask(*last) {
		v.lastOn = last
	}
	if last != nil && isSuspendTask(*last) {
		v.lastSuspend = last
	}
	return v
}

// isPowerOnTask checks the task's kind, which has a different name with DRS.
func isPowerOnTask(info types.TaskInfo) bool {
	return strings.Contains(strings.ToLower(info.DescriptionId), "poweron")
}

func isSuspendTask(info types.TaskInfo) bool {
	return strings.Contains(strings.ToLower(info.DescriptionId), "suspend")
}

func isPowerTask(info types.TaskInfo) bool {
	return isPowerOnTask(info) || isSuspendTask(info) || strings.Contains(strings.ToLower(info.DescriptionId), "poweroff")
}

// dropOldFailure clears a power-on failure that is older than startFailureTTL.
func (v *vm) dropOldFailure(now time.Time) {
	if t := v.lastOn; t != nil && t.CompleteTime != nil && now.Sub(*t.CompleteTime) > startFailureTTL {
		v.lastOn = nil
	}
}

// uniqueID identifies the machine among those of all vCenters.
func (v vm) uniqueID() string { return v.ref.Value + " in " + v.server }

// markControlPlane marks the control plane's machines: the installer names them
// <infraID>-master-<n>, and people who create them manually use master or control-plane.
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

func (v vm) isSuspended() bool { return v.power == types.VirtualMachinePowerStateSuspended }

// isPoweredOff reports whether the machine is off or suspended.
func (v vm) isPoweredOff() bool {
	return v.power == types.VirtualMachinePowerStatePoweredOff || v.isSuspended()
}

// canStart reports whether the machine can be started now.
func (v vm) canStart() bool { return v.isConnected() && v.isPoweredOff() && v.switching == nil }

// isAsleepAbove reports whether the machine is suspended, should sleep more deeply, and can be changed now.
func (v vm) isAsleepAbove(depth cloud.Depth) bool {
	return v.isSuspended() && v.canStart() && depth.IsDeeperThan(cloud.DepthSuspend)
}

// splitSuspended returns the suspended machines, and the others.
func splitSuspended(vms []vm) (suspended, others []vm) {
	for _, v := range vms {
		if v.isSuspended() {
			suspended = append(suspended, v)
			continue
		}
		others = append(others, v)
	}
	return suspended, others
}

// canStop reports whether the machine can be stopped or suspended now.
func (v vm) canStop() bool { return v.isConnected() && v.isPoweredOn() && v.switching == nil }

// isStartPending reports whether the machine is expected to run, but does not run yet.
func (v vm) isStartPending() bool { return v.isConnected() && v.isPoweredOff() && !v.failedToPowerOn() }

func (v vm) failedToPowerOn() bool {
	return v.isPoweredOff() && v.lastOn != nil && v.lastOn.Error != nil
}

// machineState returns the state of the machine, and the reason.
func (v vm) machineState() (cloud.State, string) {
	switch v.connection {
	case "", types.VirtualMachineConnectionStateConnected:
	case types.VirtualMachineConnectionStateDisconnected, types.VirtualMachineConnectionStateInaccessible,
		types.VirtualMachineConnectionStateOrphaned, types.VirtualMachineConnectionStateInvalid:
		return cloud.Failed, fmt.Sprintf("vCenter reports it as %s: check its host and its datastore", v.connection)
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
	case v.isPoweredOff():
		return cloud.Stopped, ""
	}
	return cloud.Unknown, fmt.Sprintf("power state %q", v.power)
}

// stopStep is the next step to stop a machine.
type stopStep string

const (
	stepShutDownGuest stopStep = "shut down its guest"
	stepPowerOff      stopStep = "power it off"
	stepWaitForGuest  stopStep = "wait for its guest"
)

// nextStopStep returns the next step to stop a machine whose guest was last asked to shut down at
// asked. During a shutdown the tools end before the guest does, so their state says little then.
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
