package openstack

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// selection has the servers to control, by their IDs.
type selection map[string]selected

type selected struct {
	cloud.Instance
	// region is empty if the provider ID does not name it.
	region string
}

// providerIDPattern matches openstack:///id and openstack://region/id. The cloud controller manager
// writes the region if OS_CCM_REGIONAL is set.
var providerIDPattern = regexp.MustCompile(`^openstack://([^/]*)/([0-9A-Fa-f-]{32,36})$`)

// ForInstances returns an actuator for the servers with these provider IDs, in the cloud and project
// of the platform's settings.
func (a Actuator) ForInstances(instances []cloud.Instance) (cloud.Actuator, error) {
	a.selected = selection{}
	for _, i := range instances {
		parts := providerIDPattern.FindStringSubmatch(i.ProviderID)
		if parts == nil {
			return nil, fault.NewDenied("machine %s has the provider ID %q, which is not that of a server of OpenStack, "+
				"such as openstack:///6f1d5b1c-2d3e-4f50-8a61-7b8c9d0e1f23", i.Name, i.ProviderID)
		}
		a.selected[strings.ToLower(parts[2])] = selected{Instance: i, region: parts[1]}
	}
	return a, nil
}

// confirmRegion returns fault.Denied if a provider ID names another region than the settings. Without
// a region in the settings, the cloud has one.
func (s selection) confirmRegion(region string) error {
	for _, id := range slices.Sorted(maps.Keys(s)) {
		if one := s[id]; one.region != "" && region != "" && one.region != region {
			return fault.NewDenied("machine %s is in region %s, and the clouds.yaml of the cluster has region_name %s: correct region_name", one.Name, one.region, region)
		}
	}
	return nil
}

// newSelectedObservation returns the selected servers that exist, under the names of the selection.
func newSelectedObservation(infraID string, want selection, all map[string]*server) *observation {
	seen := &observation{infraID: infraID, selected: want, servers: map[string]*server{}}
	for id, srv := range all {
		one, ok := want[strings.ToLower(id)]
		switch {
		case !ok || deletedStatuses[srv.Status]:
		case srv.Status == "UNKNOWN" && srv.Name == "":
			seen.hidden = fault.NewWait(busyDelay, "listing servers of %s: a part of the cloud is down and contains server %s of machine %s", infraID, id, one.Name)
		default:
			seen.servers[one.Name] = srv
		}
	}
	return seen
}
