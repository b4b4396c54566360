package aws

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hotspare.io/hotspare/internal/cloud"
)

// tagRole is the tag with which Cluster API marks the role of an instance.
const tagRole = "sigs.k8s.io/cluster-api-provider-aws/role"

// instance is one instance of a cluster.
type instance struct {
	id, name     string
	providerID   string // set for a selected instance
	state        ec2types.InstanceStateName
	reason       ec2types.StateReason
	controlPlane bool
	spot, ebs    bool
	// canHibernate is whether the instance was launched with support for hibernation.
	canHibernate bool
}

func (i instance) isControlPlane() bool { return i.controlPlane }
func (i instance) isSpot() bool         { return i.spot }

// String returns the machine's name, which is unique and readable.
func (i instance) String() string {
	if i.name == "" {
		return i.id
	}
	return i.name + " (" + i.id + ")"
}

// listInstances returns the cluster's instances, except terminated ones, which EC2 still lists for
// about an hour.
func (a *account) listInstances(ctx context.Context, infraID string) ([]instance, error) {
	var out []instance
	err := a.forEachInstance(ctx, ec2types.Filter{Name: sdk.String("tag:kubernetes.io/cluster/" + infraID), Values: []string{"owned"}},
		func(raw ec2types.Instance) {
			if i := parseInstance(raw, infraID); i.state != ec2types.InstanceStateNameTerminated {
				out = append(out, i)
			}
		})
	return out, err
}

// forEachInstance calls f for each instance that matches the filter.
func (a *account) forEachInstance(ctx context.Context, filter ec2types.Filter, f func(ec2types.Instance)) error {
	pages := ec2.NewDescribeInstancesPaginator(a.ec2, &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{filter}, MaxResults: sdk.Int32(1000),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return a.translateError(ctx, err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				f(i)
			}
		}
	}
	return nil
}

func parseInstance(raw ec2types.Instance, infraID string) instance {
	out := instance{
		id:   sdk.ToString(raw.InstanceId),
		spot: raw.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot,
		ebs:  raw.RootDeviceType == ec2types.DeviceTypeEbs,

		canHibernate: raw.HibernationOptions != nil && sdk.ToBool(raw.HibernationOptions.Configured),
	}
	if raw.State != nil {
		out.state = raw.State.Name
	}
	if raw.StateReason != nil {
		out.reason = *raw.StateReason
	}
	role := ""
	for _, t := range raw.Tags {
		switch sdk.ToString(t.Key) {
		case "Name":
			out.name = sdk.ToString(t.Value)
		case tagRole:
			role = sdk.ToString(t.Value)
		}
	}
	// The installer chooses the names; a ControlPlaneMachineSet may use another prefix, but its
	// machines keep the instance profile.
	out.controlPlane = role == "control-plane" || strings.HasPrefix(out.name, infraID+"-master-") ||
		raw.IamInstanceProfile != nil && strings.HasSuffix(sdk.ToString(raw.IamInstanceProfile.Arn), "/"+infraID+"-master-profile")
	return out
}

// toCloudMachine converts the instance to a cloud.Machine and maps EC2's state.
func (i instance) toCloudMachine(ref cloud.Ref) cloud.Machine {
	out := cloud.Machine{Name: i.String(), ControlPlane: i.controlPlane, ProviderID: i.providerID, DepthObstacle: i.depthObstacle(ref)}
	switch i.state {
	case ec2types.InstanceStateNamePending:
		out.State = cloud.Starting
	case ec2types.InstanceStateNameRunning:
		out.State = cloud.Running
	case ec2types.InstanceStateNameStopping, ec2types.InstanceStateNameShuttingDown:
		out.State = cloud.Stopping
	case ec2types.InstanceStateNameStopped:
		out.State = cloud.Stopped
		if slices.Contains(startFailureCodes, sdk.ToString(i.reason.Code)) {
			out.State, out.Reason = cloud.Failed, "it fell back to stopped: "+sdk.ToString(i.reason.Message)
		}
		if sdk.ToString(i.reason.Code) == hibernatedCode {
			out.Depth, out.CannotDeepen = cloud.DepthSuspend, true
		}
	default:
		out.State, out.Reason = cloud.Unknown, "EC2 reports state "+string(i.state)
		if i.state == "" {
			out.Reason = "EC2 reports no state"
		}
	}
	return out
}

// startFailureCodes are the reason codes with which EC2 stops an instance that failed to start.
// Other reasons mean an intended stop: by a user, by the guest's operating system, by spot, or for
// a scheduled retirement.
var startFailureCodes = []string{
	"Server.InternalError", "Server.InsufficientInstanceCapacity",
	"Client.InternalError", "Client.InvalidSnapshot.NotFound", "Client.VolumeLimitExceeded",
}

func isStopped(i instance) bool { return i.state == ec2types.InstanceStateNameStopped }
func isRunning(i instance) bool { return i.state == ec2types.InstanceStateNameRunning }

// filterInstances returns the instances in list for which so is true.
func filterInstances(list []instance, so func(instance) bool) []instance {
	yes, _ := splitInstances(list, so)
	return yes
}

// splitInstances returns the instances for which so is true, and the others.
func splitInstances(list []instance, so func(instance) bool) (yes, no []instance) {
	for _, i := range list {
		if so(i) {
			yes = append(yes, i)
			continue
		}
		no = append(no, i)
	}
	return yes, no
}
