package aws

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hotspare.io/hotspare/internal/cloud"
)

// maxFilterValues is how many values EC2 takes for one filter.
const maxFilterValues = 200

// Lost returns those of the provider IDs, "aws:///us-east-1a/i-0123", whose instance
// is shutting down, is terminated, or is not there any more. An ID of another form
// is not lost. Instances are looked for by ID and not by tag: one that has lost its
// tag has not lost its disk.
func (p *Power) Lost(ctx context.Context, ref cloud.Ref, providerIDs []string) ([]string, error) {
	var asked []string
	for _, id := range providerIDs {
		if i, ok := instanceID(id); ok {
			asked = append(asked, i)
		}
	}
	a, err := p.openAccount(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("looking for lost instances of %s: %w", ref.InfraID, err)
	}
	there := map[string]bool{}
	for some := range slices.Chunk(asked, maxFilterValues) {
		// As a filter: named directly, one that is gone would fail the call for all.
		err := a.forEachInstance(ctx, ec2types.Filter{Name: sdk.String("instance-id"), Values: some}, func(i ec2types.Instance) {
			if i.State == nil || i.State.Name != ec2types.InstanceStateNameShuttingDown && i.State.Name != ec2types.InstanceStateNameTerminated {
				there[sdk.ToString(i.InstanceId)] = true
			}
		})
		if err != nil {
			return nil, fmt.Errorf("looking for lost instances of %s: %w", ref.InfraID, err)
		}
	}
	return slices.DeleteFunc(slices.Clone(providerIDs), func(id string) bool {
		i, ok := instanceID(id)
		return !ok || there[i]
	}), nil
}

// instanceID is the last part of a provider ID of AWS.
func instanceID(providerID string) (string, bool) {
	id := path.Base(providerID)
	return id, strings.HasPrefix(providerID, "aws://") && strings.HasPrefix(id, "i-")
}
