package aws

import (
	"context"
	"maps"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// ForInstances returns an actuator for the instances with these provider IDs, in the region of the
// platform's settings. It does not terminate spot instances.
func (actuator *Actuator) ForInstances(instances []cloud.Instance) (cloud.Actuator, error) {
	out := *actuator
	out.selected = map[string]cloud.Instance{}
	for _, i := range instances {
		id, ok := instanceID(i.ProviderID)
		if !ok {
			return nil, fault.NewDenied("machine %s has the provider ID %q, which is not that of an EC2 instance, such as aws:///us-east-1a/i-0123", i.Name, i.ProviderID)
		}
		out.selected[id] = i
	}
	return &out, nil
}

// listSelectedInstances returns the selected instances that exist, with the names and the roles of
// the selection.
func (a *account) listSelectedInstances(ctx context.Context, selected map[string]cloud.Instance) ([]instance, error) {
	var out []instance
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(selected)), maxFilterValues) {
		// A filter, because naming one missing instance directly would fail the whole call.
		err := a.forEachInstance(ctx, ec2types.Filter{Name: sdk.String("instance-id"), Values: ids}, func(raw ec2types.Instance) {
			i := parseInstance(raw, "")
			if i.state == ec2types.InstanceStateNameTerminated {
				return
			}
			s := selected[i.id]
			i.name, i.controlPlane, i.providerID = s.Name, s.ControlPlane, s.ProviderID
			out = append(out, i)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
