package aws

import (
	"context"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// hibernatedCode is the reason code of an instance for which hibernation was requested, in state stopped:
// EC2 has no state for it. EC2 shuts an instance down that cannot write its memory, and keeps the code.
const hibernatedCode = "Client.UserInitiatedHibernate"

// agentTimeout is how long after the start of a hibernation an instance may report that it is not ready to
// hibernate. Agents need some minutes after a launch.
const agentTimeout = 10 * time.Minute

var _ cloud.DepthReporter = (*Actuator)(nil)

// ReportDepths implements cloud.DepthReporter: instances can hibernate if they were launched with support
// for it.
func (*Actuator) ReportDepths(hivev1.Platform) []cloud.DepthSupport {
	return []cloud.DepthSupport{{
		Depth: cloud.DepthSuspend,
		Limits: "EC2 hibernates only instances that were launched with hibernation enabled, an encrypted root volume with room for their memory, and at most 150 GiB of memory. " +
			"Start a hibernated instance within 60 days.",
	}}
}

// depthObstacle returns why the instance sleeps deeper than ref asks for; "" if it does not.
func (i instance) depthObstacle(ref cloud.Ref) string {
	if i.canHibernate || !cloud.DepthStop.IsDeeperThan(ref.Depth) {
		return ""
	}
	return "it was launched without hibernation enabled, which cannot be changed later"
}

// selectDepth returns the depth at which to put the instance to sleep.
func (i instance) selectDepth(ref cloud.Ref) cloud.Depth {
	return ref.SelectDepth(func(d cloud.Depth) bool { return d == cloud.DepthSuspend && i.canHibernate })
}

func (a *account) hibernateInstances(ctx context.Context, ids []string) error {
	_, err := a.ec2.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: ids, Hibernate: sdk.Bool(true)})
	return err
}

// newHibernation returns a call that hibernates instances.
func (actuator *Actuator) newHibernation(a *account, ref cloud.Ref) batchCall {
	expired := !ref.Since.IsZero() && actuator.clock.Since(ref.Since) > agentTimeout
	return batchCall{account: a, verb: "hibernating", do: a.hibernateInstances, instanceError: func(i instance, e awsError) error {
		switch {
		case e.class == unsupportedOperation && isAgentMissing(e) && !expired:
			return fault.NewWait(throttleDelay, "%w", e)
		case e.class == unsupportedOperation, e.class == cannotHibernate:
			return cloud.RefuseDepth(cloud.DepthSuspend, i.String(), e.Error())
		}
		return e.toFault()
	}}
}

// hibernateAndStop hibernates the instances that can hibernate, and stops the others. It reports whether the
// control plane may stop now: it waits for workers that are not ready to hibernate yet, or whose
// hibernation is refused, but not for those that may not be stopped at all.
func (actuator *Actuator) hibernateAndStop(ctx context.Context, a *account, ref cloud.Ref, list []instance, stop *batchCall) bool {
	deep, shallow := splitInstances(list, func(i instance) bool { return i.selectDepth(ref) == cloud.DepthStop })
	h := actuator.newHibernation(a, ref)
	h.aborted = stop.aborted
	h.callInBatches(ctx, shallow)
	stop.errs, stop.aborted = append(stop.errs, h.errs...), h.aborted
	stop.callInBatches(ctx, deep)
	return !slices.ContainsFunc(h.errs, func(err error) bool {
		refused, others := cloud.SplitRefusedDepths(err)
		return len(refused) > 0 || fault.KindOf(others) != fault.Denied
	})
}
