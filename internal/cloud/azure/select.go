package azure

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// selection has the virtual machines to control, by the names of their instances.
type selection map[string]selected

type selected struct {
	cloud.Instance
	subscription string
	location
}

// location identifies a virtual machine in its subscription.
type location struct{ group, name string }

// providerIDPattern matches the provider ID that the cloud controller manager of Azure writes for a
// virtual machine. Azure ignores the case of each part, and writes some parts in either.
var providerIDPattern = regexp.MustCompile(`(?i)^azure:///subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.Compute/virtualMachines/([^/]+)$`)

// scaleSetPattern matches the provider ID of an instance of a scale set.
var scaleSetPattern = regexp.MustCompile(`(?i)^azure:///subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/virtualMachineScaleSets/`)

// ForInstances returns an actuator for the virtual machines with these provider IDs. All must be in
// the subscription of the cluster's service principal. Instances of scale sets are not supported:
// Azure has another API for them.
func (actuator Actuator) ForInstances(instances []cloud.Instance) (cloud.Actuator, error) {
	actuator.selected = selection{}
	for _, i := range instances {
		if scaleSetPattern.MatchString(i.ProviderID) {
			return nil, fault.NewDenied("machine %s is an instance of a scale set (%s), which hotspare does not support: use a MachineDeployment instead of a MachinePool",
				i.Name, i.ProviderID)
		}
		parts := providerIDPattern.FindStringSubmatch(i.ProviderID)
		if parts == nil {
			return nil, fault.NewDenied("machine %s has the provider ID %q, which is not that of a virtual machine of Azure, "+
				"such as azure:///subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/virtualMachines/name", i.Name, i.ProviderID)
		}
		actuator.selected[i.Name] = selected{Instance: i, subscription: parts[1], location: location{group: parts[2], name: parts[3]}}
	}
	return actuator, nil
}

// resourceGroups returns the resource groups of the selection as text. It returns fault.Denied if a
// virtual machine is not in the subscription.
func (s selection) resourceGroups(subscription string) (string, error) {
	var groups []string
	for _, one := range s {
		if !strings.EqualFold(one.subscription, subscription) {
			return "", fault.NewDenied("machine %s is in subscription %s, and the service principal is for subscription %s: "+
				"use a service principal for the machine's subscription", one.Name, one.subscription, subscription)
		}
		groups = append(groups, strings.ToLower(one.group))
	}
	slices.Sort(groups)
	return strings.Join(slices.Compact(groups), ", "), nil
}

// readSelectedMachines requests the state of each selected virtual machine. Whether it can hibernate is not
// part of that: Azure refuses to hibernate one that cannot.
func (g *group) readSelectedMachines(ctx context.Context) {
	var ms []machine
	for name, one := range g.selected {
		ms = append(ms, machine{Machine: cloud.Machine{Name: name, ControlPlane: one.ControlPlane, ProviderID: one.ProviderID}})
	}
	g.readStates(ctx, ms)
}

// locate returns where the virtual machine of a machine is.
func (g *group) locate(machine string) location {
	if one, ok := g.selected[machine]; ok {
		return one.location
	}
	return location{group: g.name, name: machine}
}
