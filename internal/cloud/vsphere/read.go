package vsphere

import (
	"context"
	"fmt"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// vmProperties are the properties of a machine to read. The summary also covers a machine whose
// host or datastore is unavailable; its config does not. taskProperties are the properties of a
// task to read. Complete objects would be ten times as large.
var (
	vmProperties = []string{
		"name", "summary.config.template", "summary.runtime.powerState", "summary.runtime.connectionState", "summary.runtime.bootTime",
		"guest.toolsRunningStatus", "recentTask", "parent",
	}
	taskProperties = []string{"info.descriptionId", "info.state", "info.error", "info.queueTime", "info.completeTime"}
)

// readMachines reads machines. It leaves out templates, and machines deleted since they were
// listed.
func (c *conn) readMachines(ctx context.Context, refs []types.ManagedObjectReference) ([]vm, error) {
	var found []mo.VirtualMachine
	if err := c.retrieveProperties(ctx, refs, vmProperties, &found); err != nil {
		return nil, fmt.Errorf("reading machines: %w", err)
	}
	var tasks []types.ManagedObjectReference
	for _, one := range found {
		tasks = append(tasks, one.RecentTask...)
	}
	infos, err := c.readTasks(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("reading tasks of machines: %w", err)
	}
	var vms []vm
	for _, one := range found {
		if !one.Summary.Config.Template {
			vms = append(vms, newVMFromProperties(one, infos))
		}
	}
	if !anyMachineMatches([]centerVMs{{vms: vms}}, func(v vm) bool { return v.lastOn != nil && v.lastOn.Error != nil }) {
		return vms, nil
	}
	now, err := c.readServerTime(ctx)
	for i := range vms {
		vms[i].dropOldFailure(now)
	}
	return vms, err
}

// readTasks reads tasks, by reference.
func (c *conn) readTasks(ctx context.Context, refs []types.ManagedObjectReference) (map[types.ManagedObjectReference]types.TaskInfo, error) {
	var found []mo.Task
	if err := c.retrieveProperties(ctx, refs, taskProperties, &found); err != nil {
		return nil, err
	}
	out := map[types.ManagedObjectReference]types.TaskInfo{}
	for _, t := range found {
		out[t.Self] = t.Info
	}
	return out, nil
}

// retrieveProperties reads properties of objects of one kind, from all pages. It leaves out deleted
// objects; the SDK's own function fails as a whole if one is missing.
func (c *conn) retrieveProperties(ctx context.Context, refs []types.ManagedObjectReference, paths []string, dst any) error {
	if len(refs) == 0 {
		return nil
	}
	content, err := mo.RetrievePropertiesEx(ctx, c.vim, types.RetrievePropertiesEx{
		This:    c.vim.ServiceContent.PropertyCollector,
		SpecSet: []types.PropertyFilterSpec{newFilterSpec(refs, paths)},
	})
	if err != nil {
		return translateError(err)
	}
	var there []types.ObjectContent
	for _, o := range content {
		if !isObjectGone(o) {
			there = append(there, o)
		}
	}
	return translateError(mo.LoadObjectContent(there, dst))
}

func isObjectGone(o types.ObjectContent) bool {
	for _, p := range o.MissingSet {
		if _, yes := p.Fault.Fault.(*types.ManagedObjectNotFound); yes {
			return true
		}
	}
	return false
}

func newFilterSpec(refs []types.ManagedObjectReference, paths []string) types.PropertyFilterSpec {
	spec := types.PropertyFilterSpec{
		PropSet:                       []types.PropertySpec{{Type: refs[0].Type, PathSet: paths}},
		ReportMissingObjectsInResults: types.NewBool(true),
	}
	for _, ref := range refs {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
	}
	return spec
}

// taskTimeout is how long to wait for tasks, so that the call that started them can return their
// errors: vCenter reports few errors when it accepts a request.
const taskTimeout = 5 * time.Second

// waitForTasks waits up to taskTimeout for tasks to end, and returns those that have ended.
func (c *conn) waitForTasks(ctx context.Context, refs []types.ManagedObjectReference) (map[types.ManagedObjectReference]types.TaskInfo, error) {
	done := map[types.ManagedObjectReference]types.TaskInfo{}
	if len(refs) == 0 {
		return done, nil
	}
	within, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	filter := &property.WaitFilter{CreateFilter: types.CreateFilter{Spec: newFilterSpec(refs, []string{"info"})}}
	filter.Options = &types.WaitOptions{MaxWaitSeconds: types.NewInt32(int32(taskTimeout / time.Second))}
	err := property.WaitForUpdates(within, property.DefaultCollector(c.vim), filter, func(updates []types.ObjectUpdate) bool {
		for _, u := range updates {
			for _, change := range u.ChangeSet {
				if info, ok := change.Val.(types.TaskInfo); ok && isTaskDone(info) {
					done[u.Obj] = info
				}
			}
		}
		return len(done) == len(refs)
	})
	if ctx.Err() == nil && within.Err() != nil {
		return done, nil // the others continue, and the next observation reports them
	}
	return done, translateError(err)
}

func isTaskDone(info types.TaskInfo) bool {
	return info.State == types.TaskInfoStateSuccess || info.State == types.TaskInfoStateError
}
