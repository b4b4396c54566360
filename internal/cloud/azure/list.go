package azure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
)

// clusterTag is the prefix of the tag that marks a virtual machine as a cluster's. Tag names cannot
// contain the slash of kubernetes.io/cluster/….
const clusterTag = "kubernetes.io_cluster."

// readGroupMachines finds the machines and requests the state of each one: Azure includes states
// only in lists of whole subscriptions, which a cluster's principal may not be allowed to read.
func (g *group) readGroupMachines(ctx context.Context, infraID string) error {
	vms, err := g.listMachineModels(ctx, infraID)
	if err != nil {
		return err
	}
	ms := make([]machine, len(vms))
	for i, vm := range vms {
		ms[i] = machine{
			Machine:           cloud.Machine{Name: *vm.Name, ControlPlane: hasPrefixFold(*vm.Name, infraID+"-master-")},
			hibernateObstacle: hibernateObstacle(vm),
		}
	}
	g.readStates(ctx, ms)
	return nil
}

// machine is a virtual machine of a cluster.
type machine struct {
	cloud.Machine
	// hibernateObstacle is why it cannot hibernate; "" if it can, as far as Azure's list says.
	hibernateObstacle string
	// failure is the reason why its last operation has failed, such as a hibernation, and failedAt when; "" if it has not, and zero if
	// that is not known.
	failure  string
	failedAt time.Time
}

// readStates requests the state of each machine, and records the machines that exist.
func (g *group) readStates(ctx context.Context, ms []machine) {
	byName := make(map[string]machine, len(ms))
	for _, m := range ms {
		byName[m.Name] = m
	}
	views := make(chan machine, len(ms))
	g.hidden = powerorder.ForEachMachine(ctx, slices.Sorted(maps.Keys(byName)), func(ctx context.Context, name string) error {
		m, at := byName[name], g.locate(name)
		view, err := g.api.InstanceView(ctx, at.group, at.name, nil)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			m.State, m.Reason = cloud.Unknown, "its state could not be read"
			views <- m
			return g.translateError("reading the state of virtual machine "+name, err)
		}
		m.State, m.Reason = machineState(view.Statuses)
		m.addHibernation(view.Statuses)
		views <- m
		return nil
	})
	close(views)
	for m := range views {
		g.machines = append(g.machines, m)
	}
}

// listMachineModels returns the cluster's machines without their states, from all pages.
func (g *group) listMachineModels(ctx context.Context, infraID string) ([]*armcompute.VirtualMachine, error) {
	var vms []*armcompute.VirtualMachine
	seen := map[string]bool{}
	for pages := g.api.NewListPager(g.name, nil); pages.More(); {
		page, err := g.listMachinePage(ctx, pages)
		if err != nil {
			return nil, err
		}
		for _, vm := range page.Value {
			if vm == nil || vm.Name == nil || !belongsToCluster(vm, infraID) || seen[strings.ToLower(*vm.Name)] {
				continue
			}
			seen[strings.ToLower(*vm.Name)] = true
			vms = append(vms, vm)
		}
	}
	return vms, nil
}

func (g *group) listMachinePage(ctx context.Context, pages *runtime.Pager[armcompute.VirtualMachinesClientListResponse]) (armcompute.VirtualMachinesClientListResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, powerorder.RequestTimeout)
	defer cancel()
	page, err := pages.NextPage(ctx)
	if err != nil {
		return page, g.translateError("listing virtual machines of resource group "+g.name, err)
	}
	return page, nil
}

// belongsToCluster reports whether a virtual machine belongs to this cluster. A resource group may
// be shared, and one infraID may be a prefix of another: the cluster "a" with infraID a-b1c2d must
// not get the machines of a cluster "a-b1c2d".
func belongsToCluster(vm *armcompute.VirtualMachine, infraID string) bool {
	foreign := false
	for tag, value := range vm.Tags {
		if value == nil || *value != "owned" || !hasPrefixFold(tag, clusterTag) {
			continue
		}
		if strings.EqualFold(tag[len(clusterTag):], infraID) {
			return true
		}
		foreign = true
	}
	return !foreign && hasPrefixFold(*vm.Name, infraID+"-")
}

// hasPrefixFold ignores case, as Azure does for all names.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// powerStates has every power state that Azure documents except unknown.
var powerStates = map[string]cloud.State{
	"starting":     cloud.Starting,
	"running":      cloud.Running,
	"stopping":     cloud.Stopping,
	"deallocating": cloud.Stopping,
	"deallocated":  cloud.Stopped,
	"stopped":      cloud.Failed, // powered off but still billed: both Start and Stop correct this
}

const stillAllocated = "it is powered off but not deallocated, so Azure still charges for it"

// machineState returns the state of an instance view, and the reason.
func machineState(statuses []*armcompute.InstanceViewStatus) (cloud.State, string) {
	power, doing, why := parseStatusCodes(statuses)
	state, known := powerStates[power]
	switch {
	case doing == "deleting":
		return cloud.Stopping, ""
	case doing == "failed" && (state == cloud.Stopped || state == cloud.Failed):
		return cloud.Failed, strings.TrimSuffix("the last operation on it failed: "+why, ": ")
	case power == "stopped":
		return cloud.Failed, stillAllocated
	case known:
		return state, ""
	case power == "" && doing == "creating":
		return cloud.Starting, ""
	case power == "":
		return cloud.Unknown, "Azure does not report its power state"
	default:
		return cloud.Unknown, fmt.Sprintf("Azure reports PowerState/%s, which hotspare does not know", power)
	}
}

// parseStatusCodes parses codes such as PowerState/running and
// ProvisioningState/failed/AllocationFailed into the power state, the operation and the reason for
// its failure.
func parseStatusCodes(statuses []*armcompute.InstanceViewStatus) (power, doing, why string) {
	for _, s := range statuses {
		if s == nil || s.Code == nil {
			continue
		}
		kind, value, _ := strings.Cut(*s.Code, "/")
		switch strings.ToLower(kind) {
		case "powerstate":
			power = strings.ToLower(value)
		case "provisioningstate":
			doing, why, _ = strings.Cut(value, "/")
			doing = strings.ToLower(doing)
		}
	}
	return power, doing, why
}
