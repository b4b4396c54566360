package vsphere

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// providerIDPattern matches vsphere:// and the BIOS UUID of a machine, as the cloud controller manager
// and Cluster API's provider write it.
var providerIDPattern = regexp.MustCompile(`(?i)^vsphere://([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// ForInstances returns an actuator for the machines with these provider IDs, in the vCenters of the
// platform's settings. It shares the sessions of p.
func (a *Actuator) ForInstances(instances []cloud.Instance) (cloud.Actuator, error) {
	out := &Actuator{secrets: a.secrets, authorities: a.authorities, sessions: a.sessions, selected: map[string]cloud.Instance{}}
	for _, i := range instances {
		parts := providerIDPattern.FindStringSubmatch(i.ProviderID)
		if parts == nil {
			return nil, fault.NewDenied("machine %s has the provider ID %q, which is not that of a machine of vSphere, such as vsphere://422ec956-07a2-4b30-9c0d-65b7a0b0d5a1",
				i.Name, i.ProviderID)
		}
		out.selected[strings.ToLower(parts[1])] = i
	}
	return out, nil
}

// findSelectedMachines returns the machines of this vCenter that have a selected BIOS UUID, with the
// names and the roles of the selection.
func (c *conn) findSelectedMachines(ctx context.Context, selected map[string]cloud.Instance) ([]vm, error) {
	byRef := map[types.ManagedObjectReference]cloud.Instance{}
	var refs []types.ManagedObjectReference
	for _, uuid := range slices.Sorted(maps.Keys(selected)) {
		found, err := methods.FindAllByUuid(ctx, c.vim, &types.FindAllByUuid{
			This: *c.vim.ServiceContent.SearchIndex, Uuid: uuid, VmSearch: true, InstanceUuid: types.NewBool(false),
		})
		if err != nil {
			return nil, fmt.Errorf("finding the machine with BIOS UUID %s: %w", uuid, translateError(err))
		}
		for _, ref := range found.Returnval {
			byRef[ref] = selected[uuid]
			refs = append(refs, ref)
		}
	}
	vms, err := c.readMachines(ctx, refs)
	for i := range vms {
		one := byRef[vms[i].ref]
		vms[i].name, vms[i].controlPlane, vms[i].providerID = one.Name, one.ControlPlane, one.ProviderID
	}
	return vms, err
}

// confirmUnique returns fault.Denied if two machines have one provider ID: a copy of a machine may
// have its BIOS UUID, and either may be meant.
func confirmUnique(fleets []centerVMs) error {
	known := map[string]vm{}
	for _, f := range fleets {
		for _, v := range f.vms {
			if twin, ok := known[v.providerID]; ok {
				return fault.NewDenied("machine %s has the provider ID %s, and two virtual machines have that BIOS UUID, %s and %s: give the copy another (uuid.bios)",
					v.name, v.providerID, twin.uniqueID(), v.uniqueID())
			}
			known[v.providerID] = v
		}
	}
	return nil
}
