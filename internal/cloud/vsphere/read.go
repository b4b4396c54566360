package vsphere

import (
	"context"
	"fmt"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// properties are what is read of a machine. The summary tells of a machine whose
// host or datastore is away, too; its config does not. taskProperties are what is read
// of tasks. Whole structures would be ten times as much.
var (
	properties = []string{
		"name", "summary.config.template", "summary.runtime.powerState", "summary.runtime.connectionState", "summary.runtime.bootTime",
		"guest.toolsRunningStatus", "recentTask", "parent",
	}
	taskProperties = []string{"info.descriptionId", "info.state", "info.error", "info.queueTime", "info.completeTime"}
)

// read reads machines. Templates, and what has gone since it was listed, are left out.
func (c *conn) read(ctx context.Context, refs []types.ManagedObjectReference) ([]vm, error) {
	var found []mo.VirtualMachine
	if err := c.retrieve(ctx, refs, properties, &found); err != nil {
		return nil, fmt.Errorf("reading machines: %w", err)
	}
	var tasks []types.ManagedObjectReference
	for _, one := range found {
		tasks = append(tasks, one.RecentTask...)
	}
	infos, err := c.tasks(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("reading tasks of machines: %w", err)
	}
	var vms []vm
	for _, one := range found {
		if !one.Summary.Config.Template {
			vms = append(vms, vmOf(one, infos))
		}
	}
	if !anyOf([]fleet{{vms: vms}}, func(v vm) bool { return v.lastOn != nil && v.lastOn.Error != nil }) {
		return vms, nil
	}
	now, err := c.clock(ctx)
	for i := range vms {
		vms[i].forget(now)
	}
	return vms, err
}

// tasks reads tasks, by their reference.
func (c *conn) tasks(ctx context.Context, refs []types.ManagedObjectReference) (map[types.ManagedObjectReference]types.TaskInfo, error) {
	var found []mo.Task
	if err := c.retrieve(ctx, refs, taskProperties, &found); err != nil {
		return nil, err
	}
	out := map[types.ManagedObjectReference]types.TaskInfo{}
	for _, t := range found {
		out[t.Self] = t.Info
	}
	return out, nil
}

// retrieve reads properties of objects of one kind, whatever the number of pages.
// What has gone is left out: the SDK's own way to ask fails as a whole for it.
func (c *conn) retrieve(ctx context.Context, refs []types.ManagedObjectReference, paths []string, dst any) error {
	if len(refs) == 0 {
		return nil
	}
	content, err := mo.RetrievePropertiesEx(ctx, c.vim, types.RetrievePropertiesEx{
		This:    c.vim.ServiceContent.PropertyCollector,
		SpecSet: []types.PropertyFilterSpec{specOf(refs, paths)},
	})
	if err != nil {
		return explain(err)
	}
	var there []types.ObjectContent
	for _, o := range content {
		if !gone(o) {
			there = append(there, o)
		}
	}
	return explain(mo.LoadObjectContent(there, dst))
}

func gone(o types.ObjectContent) bool {
	for _, p := range o.MissingSet {
		if _, yes := p.Fault.Fault.(*types.ManagedObjectNotFound); yes {
			return true
		}
	}
	return false
}

func specOf(refs []types.ManagedObjectReference, paths []string) types.PropertyFilterSpec {
	spec := types.PropertyFilterSpec{
		PropSet:                       []types.PropertySpec{{Type: refs[0].Type, PathSet: paths}},
		ReportMissingObjectsInResults: types.NewBool(true),
	}
	for _, ref := range refs {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
	}
	return spec
}

// outcome is how long tasks are waited for, so that their errors are told by the
// call that asked: vCenter says so little while it takes a request.
const outcome = 5 * time.Second

// wait waits a little for tasks to end, and returns those that have.
func (c *conn) wait(ctx context.Context, refs []types.ManagedObjectReference) (map[types.ManagedObjectReference]types.TaskInfo, error) {
	done := map[types.ManagedObjectReference]types.TaskInfo{}
	if len(refs) == 0 {
		return done, nil
	}
	within, cancel := context.WithTimeout(ctx, outcome)
	defer cancel()
	filter := &property.WaitFilter{CreateFilter: types.CreateFilter{Spec: specOf(refs, []string{"info"})}}
	filter.Options = &types.WaitOptions{MaxWaitSeconds: types.NewInt32(int32(outcome / time.Second))}
	err := property.WaitForUpdates(within, property.DefaultCollector(c.vim), filter, func(updates []types.ObjectUpdate) bool {
		for _, u := range updates {
			for _, change := range u.ChangeSet {
				if info, ok := change.Val.(types.TaskInfo); ok && ended(info) {
					done[u.Obj] = info
				}
			}
		}
		return len(done) == len(refs)
	})
	if ctx.Err() == nil && within.Err() != nil {
		return done, nil // they go on, and the next observation tells of them
	}
	return done, explain(err)
}

func ended(info types.TaskInfo) bool {
	return info.State == types.TaskInfoStateSuccess || info.State == types.TaskInfoStateError
}
