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

// maxFilterValues is the maximum number of values that EC2 accepts for one filter.
const maxFilterValues = 200

// ListLostInstances returns the provider IDs ("aws:///us-east-1a/i-0123") whose instance is shutting down, is
// terminated or does not exist. IDs in another format are not lost. It looks up instances by ID and
// not by tag: an instance without the tag still has its disk.
func (actuator *Actuator) ListLostInstances(ctx context.Context, ref cloud.Ref, providerIDs []string) ([]string, error) {
	var asked []string
	for _, id := range providerIDs {
		if i, ok := instanceID(id); ok {
			asked = append(asked, i)
		}
	}
	a, err := actuator.openAccount(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("finding lost instances of %s: %w", ref.InfraID, err)
	}
	there := map[string]bool{}
	for some := range slices.Chunk(asked, maxFilterValues) {
		// A filter, because naming one missing instance directly would fail the whole call.
		err := a.forEachInstance(ctx, ec2types.Filter{Name: sdk.String("instance-id"), Values: some}, func(i ec2types.Instance) {
			if i.State == nil || i.State.Name != ec2types.InstanceStateNameShuttingDown && i.State.Name != ec2types.InstanceStateNameTerminated {
				there[sdk.ToString(i.InstanceId)] = true
			}
		})
		if err != nil {
			return nil, fmt.Errorf("finding lost instances of %s: %w", ref.InfraID, err)
		}
	}
	return slices.DeleteFunc(slices.Clone(providerIDs), func(id string) bool {
		i, ok := instanceID(id)
		return !ok || there[i]
	}), nil
}

// instanceID returns the last part of an AWS provider ID.
func instanceID(providerID string) (string, bool) {
	id := path.Base(providerID)
	return id, strings.HasPrefix(providerID, "aws://") && strings.HasPrefix(id, "i-")
}
