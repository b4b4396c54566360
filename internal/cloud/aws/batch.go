package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// batchSize is the number of instances per call. EC2 accepts more, but advises against it.
const batchSize = 100

// batchCall applies one action to many instances. EC2 rejects a whole call if it cannot execute it
// for one of the named instances, for example because that instance has just been deleted or is
// between two states. batchCall then repeats the call without such instances.
//
// Package turns does not fit here: it sends one request per machine, and EC2 limits the number of
// calls. The order is kept by making the calls in that order.
type batchCall struct {
	*account
	verb string
	do   func(context.Context, []string) error
	errs []error
	// instanceError returns the error of one instance; nil is awsError.toFault.
	instanceError func(instance, awsError) error
	// aborted is set when AWS rejects calls for reasons that affect all instances: the next call
	// would fail too.
	aborted bool
}

// callInBatches applies the action to all instances in list.
func (c *batchCall) callInBatches(ctx context.Context, list []instance) {
	for some := range slices.Chunk(list, batchSize) {
		c.callOneBatch(ctx, some)
	}
}

func (c *batchCall) callOneBatch(ctx context.Context, some []instance) {
	if c.aborted || len(some) == 0 {
		return
	}
	err := c.do(ctx, instanceIDs(some))
	if err == nil {
		return
	}
	p := c.classifyError(ctx, err)
	switch {
	case p.class.affectsAllInstances():
		c.aborted = true
		c.errs = append(c.errs, fmt.Errorf("%s instances: %w", c.verb, p.toFault()))
	case len(some) > 1:
		bad, good := splitSuspects(some, p.text)
		c.callOneBatch(ctx, good)
		c.callOneBatch(ctx, bad)
	case p.class == instanceGone, p.class == wrongState:
		// A deleted instance needs no action. An instance whose state has changed since it was
		// listed is handled by the next call.
	case c.instanceError != nil:
		c.errs = append(c.errs, fmt.Errorf("%s %s: %w", c.verb, some[0], c.instanceError(some[0], p)))
	default:
		c.errs = append(c.errs, fmt.Errorf("%s %s: %w", c.verb, some[0], p.toFault()))
	}
}

// splitSuspects splits instances of which at least one caused the error. EC2's message may name
// that instance, or one of several; if it names none, the instances are halved.
func splitSuspects(some []instance, message string) (bad, good []instance) {
	bad, good = splitInstances(some, func(i instance) bool { return strings.Contains(message, i.id) })
	if len(bad) == 0 || len(good) == 0 {
		return some[len(some)/2:], some[:len(some)/2]
	}
	return bad, good
}

// stopSpotInstances stops the instances that can be stopped (those of persistent spot requests) and
// terminates the others. It must be called only for workers: a terminated machine loses its disk.
func (c *batchCall) stopSpotInstances(ctx context.Context, list []instance) {
	var once []instance
	stop := c.do
	c.do = func(ctx context.Context, ids []string) error {
		err := stop(ctx, ids)
		if err == nil || len(ids) > 1 || c.classifyError(ctx, err).class != unsupportedOperation {
			return err
		}
		i := list[slices.IndexFunc(list, func(i instance) bool { return i.id == ids[0] })]
		if !i.ebs {
			return err // without an EBS root device, a persistent one cannot be stopped either
		}
		once = append(once, i)
		return nil
	}
	c.callInBatches(ctx, list)
	c.verb, c.do = "terminating spot instance", c.terminateInstances
	c.callInBatches(ctx, once)
	c.verb, c.do = "stopping", stop
}

func instanceIDs(list []instance) []string {
	out := make([]string, len(list))
	for n, i := range list {
		out[n] = i.id
	}
	return out
}

func (a *account) startInstances(ctx context.Context, ids []string) error {
	_, err := a.ec2.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: ids})
	return err
}

func (a *account) stopInstances(ctx context.Context, ids []string) error {
	_, err := a.ec2.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: ids})
	return err
}

func (a *account) terminateInstances(ctx context.Context, ids []string) error {
	_, err := a.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	return err
}

// translateError returns err as a text for users, with its fault.Kind.
func (a *account) translateError(ctx context.Context, err error) error {
	return a.classifyError(ctx, err).toFault()
}
