package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

var _ cloud.DepthReporter = (*Actuator)(nil)

// ReportDepths implements cloud.DepthReporter: machines can be suspended.
func (*Actuator) ReportDepths(hivev1.Platform) []cloud.DepthSupport {
	return []cloud.DepthSupport{{
		Depth: cloud.DepthSuspend,
		Limits: "A suspended machine needs space on its datastore for its memory. vCenter refuses to suspend machines with devices that pass through to the host. " +
			"A machine resumes only on a host with a compatible processor.",
	}}
}

// refusedSuspendFaults mean that vCenter would refuse to suspend the machine again. A user who may not suspend may power off all the
// same.
var refusedSuspendFaults = []types.BaseMethodFault{
	&types.NotSupported{}, &types.VmConfigFault{}, &types.GenericVmConfigFault{}, &types.DeviceNotSupported{}, &types.RawDiskNotSupported{},
	&types.NoDiskSpace{}, &types.InsufficientStorageSpace{}, &types.NoPermission{},
}

// suspendMachines suspends machines that are on. A machine whose last suspension has failed since the
// hibernation began is refused: another suspension would take as long, and fail too.
func (c *conn) suspendMachines(ctx context.Context, since time.Time, vms []vm, r *results) {
	var tasks []powerTask
	for _, v := range vms {
		if reason := v.suspendFailure(since); reason != "" {
			r.recordMachineError("suspending", v, cloud.RefuseDepth(cloud.DepthSuspend, v.label, "vCenter could not suspend it: "+reason))
			continue
		}
		task, err := object.NewVirtualMachine(c.vim, v.ref).Suspend(ctx)
		r.recordMachineError("suspending", v, v.refuseSuspension(err))
		if task != nil {
			tasks = append(tasks, powerTask{v, task.Reference()})
		}
	}
	c.recordTaskErrors(ctx, "suspending", tasks, r)
}

// suspendFailure returns why the machine's last suspension, since the given time, has failed.
func (v vm) suspendFailure(since time.Time) string {
	t := v.lastSuspend
	if t == nil || t.Error == nil || !cloud.IsSince(t.QueueTime, since) {
		return ""
	}
	return faultMessage(t.Error)
}

// refuseSuspension returns err, and a refused depth for a fault with which vCenter would answer again.
func (v vm) refuseSuspension(err error) error {
	if !isFault(err, refusedSuspendFaults...) {
		return err
	}
	return cloud.RefuseDepth(cloud.DepthSuspend, v.label, "vCenter refuses to suspend it: "+err.Error())
}
