package gcp

import (
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// selection has the instances to control, by zone and name: see instanceKey.
type selection map[string]selected

type selected struct {
	cloud.Instance
	project, name string
}

// maxNamesPerFilter limits the length of the filter of one request.
const maxNamesPerFilter = 50

// instanceKey returns the key of an instance in a selection: its name is unique in its zone only.
func instanceKey(i *compute.Instance) string { return zoneName(i) + "/" + i.Name }

// providerIDPattern matches gce://project/zone/name, as the cloud controller manager writes it.
var providerIDPattern = regexp.MustCompile(`^gce://([^/]+)/([^/]+)/([a-z](?:[-a-z0-9]*[a-z0-9])?)$`)

// ForInstances returns an actuator for the instances with these provider IDs. All must be in the
// project of the cluster's service account.
func (a Actuator) ForInstances(instances []cloud.Instance) (cloud.Actuator, error) {
	a.selected = selection{}
	for _, i := range instances {
		parts := providerIDPattern.FindStringSubmatch(i.ProviderID)
		if parts == nil {
			return nil, fault.NewDenied("machine %s has the provider ID %q, which is not that of a Compute Engine instance, such as gce://project/us-east1-b/name", i.Name, i.ProviderID)
		}
		a.selected[path.Join(parts[2], parts[3])] = selected{Instance: i, project: parts[1], name: parts[3]}
	}
	return a, nil
}

// listSelectedInstances lists the selected instances that exist, in all zones.
func (p *project) listSelectedInstances(ctx context.Context, infraID string, want selection) (*observation, error) {
	seen := &observation{infraID: infraID, selected: want, instances: map[string]*compute.Instance{}}
	var names []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		one := want[key]
		if one.project != p.ID {
			return nil, fault.NewDenied("machine %s is in project %s, and the service account is that of project %s: use a service account of the machine's project",
				one.Name, one.project, p.ID)
		}
		names = append(names, one.name)
	}
	for some := range slices.Chunk(names, maxNamesPerFilter) {
		if err := p.addInstances(ctx, seen, "("+strings.Join(some, "|")+")"); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// addSelected adds an instance if it is selected, under the name of the selection.
func (o *observation) addSelected(i *compute.Instance) {
	if one, ok := o.selected[instanceKey(i)]; ok {
		o.instances[one.Name] = i
	}
}
