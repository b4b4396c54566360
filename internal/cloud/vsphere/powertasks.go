package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// powerTask is a machine and the task that changes its power state.
type powerTask struct {
	vm   vm
	task types.ManagedObjectReference
}

// powerOnMachines powers machines on. It sends one request per datacenter, so that DRS places all
// of its machines; it powers on the remaining machines one by one.
func (c *conn) powerOnMachines(ctx context.Context, vms []vm, r *results) {
	var tasks []powerTask
	for _, g := range c.groupByDatacenter(ctx, vms, r) {
		attempted, left, err := c.powerOnDatacenter(ctx, g)
		r.recordError(err)
		tasks = append(tasks, attempted...)
		for _, v := range left {
			task, err := object.NewVirtualMachine(c.vim, v.ref).PowerOn(ctx)
			r.recordMachineError("starting", v, err)
			if task != nil {
				tasks = append(tasks, powerTask{v, task.Reference()})
			}
		}
	}
	c.recordTaskErrors(ctx, "starting", tasks, r)
}

// powerOnDatacenter sends a request for all machines of g. It returns the machines for which the
// datacenter started a task, and those that must be powered on individually.
func (c *conn) powerOnDatacenter(ctx context.Context, g datacenterGroup) (attempted []powerTask, left []vm, err error) {
	refs := make([]types.ManagedObjectReference, len(g.vms))
	for i, v := range g.vms {
		refs[i] = v.ref
	}
	task, err := object.NewDatacenter(c.vim, g.datacenter).PowerOnVM(ctx, refs, &types.OptionValue{
		Key:   string(types.ClusterPowerOnVmOptionOverrideAutomationLevel),
		Value: string(types.DrsBehaviorFullyAutomated),
	})
	if err != nil {
		return nil, g.vms, nil //nolint:nilerr // the error of each machine is reported when that machine is started
	}
	done, err := c.waitForTasks(ctx, []types.ManagedObjectReference{task.Reference()})
	if err != nil {
		return nil, nil, fmt.Errorf("waiting for vCenter to start machines: %w", err)
	}
	info, over := done[task.Reference()]
	if !over {
		return nil, nil, nil // it continues, and the next observation reports the result
	}
	result, _ := info.Result.(types.ClusterPowerOnVmResult) // empty if the task failed
	for _, v := range g.vms {
		i := slices.IndexFunc(result.Attempted, func(a types.ClusterAttemptedVmInfo) bool { return a.Vm == v.ref && a.Task != nil })
		if i < 0 {
			left = append(left, v)
			continue
		}
		attempted = append(attempted, powerTask{v, *result.Attempted[i].Task})
	}
	return attempted, left, nil
}

// datacenterGroup contains machines of one datacenter.
type datacenterGroup struct {
	datacenter types.ManagedObjectReference
	vms        []vm
}

// groupByDatacenter groups machines by datacenter; machines in one folder are in one datacenter.
func (c *conn) groupByDatacenter(ctx context.Context, vms []vm, r *results) []datacenterGroup {
	var groups []datacenterGroup
	known := map[types.ManagedObjectReference]types.ManagedObjectReference{}
	for _, v := range vms {
		at := v.ref
		if v.parent != nil {
			at = *v.parent
		}
		datacenter, ok := known[at]
		if !ok {
			var err error
			if datacenter, err = c.findDatacenter(ctx, at); err != nil {
				r.recordMachineError("finding the datacenter of", v, err)
				continue
			}
			known[at] = datacenter
		}
		i := slices.IndexFunc(groups, func(g datacenterGroup) bool { return g.datacenter == datacenter })
		if i < 0 {
			groups, i = append(groups, datacenterGroup{datacenter: datacenter}), len(groups)
		}
		groups[i].vms = append(groups[i].vms, v)
	}
	return groups
}

func (c *conn) findDatacenter(ctx context.Context, ref types.ManagedObjectReference) (types.ManagedObjectReference, error) {
	above, err := mo.Ancestors(ctx, c.vim, c.vim.ServiceContent.PropertyCollector, ref)
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	for _, a := range above {
		if a.Self.Type == "Datacenter" {
			return a.Self, nil
		}
	}
	return types.ManagedObjectReference{}, errors.New("it is in no datacenter that the account can read")
}

// stopMachines executes the next step to stop each machine.
func (c *conn) stopMachines(ctx context.Context, vms []vm, r *results) {
	now, err := c.readServerTime(ctx)
	if err != nil {
		r.recordError(err)
		return
	}
	var tasks []powerTask
	for _, v := range vms {
		task, err := c.stopMachine(ctx, v, now)
		r.recordMachineError("stopping", v, err)
		if task != nil {
			tasks = append(tasks, powerTask{v, task.Reference()})
		}
	}
	c.recordTaskErrors(ctx, "stopping", tasks, r)
}

func (c *conn) stopMachine(ctx context.Context, v vm, now time.Time) (*object.Task, error) {
	asked, err := c.lastShutdownRequest(ctx, v, now)
	if err != nil {
		return nil, fmt.Errorf("reading its events: %w", err)
	}
	machine := object.NewVirtualMachine(c.vim, v.ref)
	switch v.nextStopStep(asked, now) {
	case stepWaitForGuest:
		return nil, nil
	case stepShutDownGuest:
		err := machine.ShutdownGuest(ctx)
		if !isFault(err, &types.ToolsUnavailable{}) {
			return nil, err
		}
	}
	return machine.PowerOff(ctx)
}

// lastShutdownRequest returns when the machine's guest was last asked to shut down, according to
// vCenter's events; zero if that is too long ago to matter. vCenter keeps the events, so a restart
// of hotspare does not lose it.
func (c *conn) lastShutdownRequest(ctx context.Context, v vm, now time.Time) (time.Time, error) {
	since := now.Add(-shutdownRequestTTL)
	res, err := methods.QueryEvents(ctx, c.vim, &types.QueryEvents{
		This: event.NewManager(c.vim).Reference(),
		Filter: types.EventFilterSpec{
			Entity:      &types.EventFilterSpecByEntity{Entity: v.ref, Recursion: types.EventFilterSpecRecursionOptionSelf},
			Time:        &types.EventFilterSpecByTime{BeginTime: &since},
			EventTypeId: []string{"VmGuestShutdownEvent"},
		},
	})
	if err != nil {
		return time.Time{}, err
	}
	var last time.Time
	for _, e := range res.Returnval {
		if at := e.GetEvent().CreatedTime; at.After(last) {
			last = at
		}
	}
	return last, nil
}

// recordTaskErrors waits up to taskTimeout for tasks, and records the errors of those that fail.
func (c *conn) recordTaskErrors(ctx context.Context, doing string, tasks []powerTask, r *results) {
	refs := make([]types.ManagedObjectReference, len(tasks))
	for i, t := range tasks {
		refs[i] = t.task
	}
	done, err := c.waitForTasks(ctx, refs)
	if err != nil {
		r.recordError(fmt.Errorf("waiting for vCenter: %w", err))
	}
	for _, t := range tasks {
		info := done[t.task]
		if info.Error == nil {
			continue
		}
		err := error(taskError{info.Error})
		if isSuspendTask(info) {
			err = t.vm.refuseSuspension(err)
		}
		r.recordMachineError(doing, t.vm, err)
	}
}
