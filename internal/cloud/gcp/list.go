package gcp

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
)

// clusterLabel is the prefix of the label that marks an instance as a cluster's.
const clusterLabel = "kubernetes-io-cluster-"

// fieldMask selects the few fields of instances that this package needs: for hundreds of instances,
// complete ones would be megabytes.
const fieldMask googleapi.Field = "nextPageToken,unreachables,warning(code,message),items/*/warning(code,message)," +
	"items/*/instances(id,name,zone,status,statusMessage,labels,machineType,disks/type,guestAccelerators,confidentialInstanceConfig)"

// observation is the result of listing a cluster's instances once.
type observation struct {
	infraID string
	// selected are the instances to observe; nil selects them by the infraID.
	selected selection
	// instances maps the names that users see to instances.
	instances map[string]*compute.Instance
	// hidden is the error for the cluster's zones that could not be listed; nil if there are none.
	hidden error
}

// listInstances lists the instances of a cluster, in all zones and on all pages.
func (p *project) listInstances(ctx context.Context, infraID string) (*observation, error) {
	seen := &observation{infraID: infraID, instances: map[string]*compute.Instance{}}
	// The filter is a regular expression that must match the whole name. It cannot be combined with
	// one for labels; ownsInstance checks those.
	return seen, p.addInstances(ctx, seen, regexp.QuoteMeta(infraID)+"-.*")
}

// addInstances adds the instances whose names match a regular expression to an observation, from
// all zones and all pages.
func (p *project) addInstances(ctx context.Context, seen *observation, names string) error {
	var hidden []string
	call := p.api.Instances.AggregatedList(p.ID).Filter(fmt.Sprintf(`name eq "%s"`, names)).ReturnPartialSuccess(true).Fields(fieldMask)
	for page := ""; ; {
		got, err := p.listInstancePage(ctx, call.PageToken(page))
		if err != nil {
			return err
		}
		seen.addPage(got)
		hidden = append(hidden, p.unlistedZones(got)...)
		if got.NextPageToken == "" {
			break
		}
		page = got.NextPageToken
	}
	if len(hidden) > 0 {
		slices.Sort(hidden)
		seen.hidden = fault.NewWait(busyDelay, "listing instances of %s: Google cannot list %s now", seen.infraID, strings.Join(slices.Compact(hidden), ", "))
	}
	return nil
}

func (p *project) listInstancePage(ctx context.Context, call *compute.InstancesAggregatedListCall) (*compute.InstanceAggregatedList, error) {
	ctx, cancel := context.WithTimeout(ctx, powerorder.RequestTimeout)
	defer cancel()
	got, err := call.Context(ctx).Do()
	if err != nil {
		return nil, p.translateError("listing instances of project "+p.ID, err)
	}
	return got, nil
}

func (o *observation) addPage(page *compute.InstanceAggregatedList) {
	for _, zone := range page.Items {
		for _, i := range zone.Instances {
			if o.selected != nil {
				o.addSelected(i)
				continue
			}
			if !o.ownsInstance(i) {
				continue
			}
			name := i.Name
			if other := o.instances[name]; other != nil && zoneName(other) != zoneName(i) {
				name += " in " + zoneName(i) // names are unique only within a zone
			}
			o.instances[name] = i
		}
	}
}

// ownsInstance reports whether the instance belongs to this cluster: the cluster "a" with infraID
// a-b1c2d must not get the machines of the cluster "a-b1c2d", whose infraID has the same prefix.
func (o *observation) ownsInstance(i *compute.Instance) bool {
	if !strings.HasPrefix(i.Name, o.infraID+"-") {
		return false
	}
	if i.Labels[clusterLabel+o.infraID] == "owned" {
		return true
	}
	for label, value := range i.Labels {
		if strings.HasPrefix(label, clusterLabel) && value == "owned" {
			return false
		}
	}
	return true
}

// unlistedZones returns the zones that may have machines of the cluster and that this page does not
// include. An outage in another region does not matter.
func (p *project) unlistedZones(page *compute.InstanceAggregatedList) []string {
	var zones []string
	for scope, list := range page.Items {
		if list.Warning != nil && list.Warning.Code != "NO_RESULTS_ON_PAGE" && p.isRelevantScope(scope) {
			zones = append(zones, path.Base(scope)+" ("+list.Warning.Code+")")
		}
	}
	for _, scope := range page.Unreachables {
		if p.isRelevantScope(scope) {
			zones = append(zones, path.Base(scope)+" (UNREACHABLE)")
		}
	}
	return zones
}

// isRelevantScope reports whether a scope ("zones/us-east1-b", or a URL that ends with it) can have
// machines of the cluster.
func (p *project) isRelevantScope(scope string) bool {
	return p.Region == "" || strings.HasPrefix(path.Base(scope), p.Region+"-")
}

func zoneName(i *compute.Instance) string { return path.Base(i.Zone) }

// instanceStates has every instance state that Google documents.
var instanceStates = map[string]cloud.State{
	"PENDING":        cloud.Starting, // waiting for capacity: Flex Start
	"PROVISIONING":   cloud.Starting,
	"STAGING":        cloud.Starting,
	"RUNNING":        cloud.Running,
	"PENDING_STOP":   cloud.Stopping, // a graceful shutdown
	"STOPPING":       cloud.Stopping,
	"DEPROVISIONING": cloud.Stopping,
	"SUSPENDING":     cloud.Stopping,
	"STOPPED":        cloud.Stopped,
	"TERMINATED":     cloud.Stopped,
	"SUSPENDED":      cloud.Stopped,
	"REPAIRING":      cloud.Failed,
}

// stateReasons has the reason and the remedy for each state that is neither running nor stopped.
var stateReasons = map[string]string{
	"REPAIRING": "REPAIRING: Google is repairing the instance, or moving it to another host",
}

func (o *observation) toCloudMachines(ref cloud.Ref) cloud.Machines {
	ms := make(cloud.Machines, 0, len(o.instances))
	for name, i := range o.instances {
		m := cloud.Machine{Name: name, State: instanceStates[i.Status], Reason: stateReasons[i.Status], DepthObstacle: depthObstacle(ref, i)}
		if i.Status == "SUSPENDED" {
			m.Depth = cloud.DepthSuspend
		}
		m.ControlPlane = strings.HasPrefix(i.Name, o.infraID+"-master-")
		if one, ok := o.selected[instanceKey(i)]; ok {
			m.ControlPlane, m.ProviderID = one.ControlPlane, one.ProviderID
		}
		if m.State == "" {
			m.State, m.Reason = cloud.Unknown, fmt.Sprintf("Google reports the state %q, which hotspare does not know", i.Status)
		}
		ms = append(ms, m)
	}
	ms.SortByName()
	return ms
}
