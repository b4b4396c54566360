package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// batchSize is how many instances one call names. EC2 takes more, but advises against it.
const batchSize = 100

// batchCall asks the same of many instances. EC2 refuses a call as a whole when it
// cannot do it for one of the instances that the call names, be it that this one has
// just vanished or is between two states. So it is asked again, without those.
//
// Package turns is of no use here: it asks for each machine by itself, and EC2 counts
// calls. The order is kept by asking in it.
type batchCall struct {
	*account
	verb string
	do   func(context.Context, []string) error
	errs []error
	// aborted is set when AWS has refused to listen at all: it would say the same again.
	aborted bool
}

// callInBatches asks for all of list.
func (s *batchCall) callInBatches(ctx context.Context, list []instance) {
	for some := range slices.Chunk(list, batchSize) {
		s.callOneBatch(ctx, some)
	}
}

func (s *batchCall) callOneBatch(ctx context.Context, some []instance) {
	if s.aborted || len(some) == 0 {
		return
	}
	err := s.do(ctx, instanceIDs(some))
	if err == nil {
		return
	}
	p := s.classifyError(ctx, err)
	switch {
	case p.class.affectsAllInstances():
		s.aborted = true
		s.errs = append(s.errs, fmt.Errorf("%s instances: %w", s.verb, p.toFault()))
	case len(some) > 1:
		bad, good := splitSuspects(some, p.text)
		s.callOneBatch(ctx, good)
		s.callOneBatch(ctx, bad)
	case p.class == instanceGone, p.class == wrongState:
		// What has vanished needs nothing more. What has changed its state since the
		// list was made is looked at again by the next call.
	default:
		s.errs = append(s.errs, fmt.Errorf("%s %s: %w", s.verb, some[0], p.toFault()))
	}
}

// splitSuspects parts instances of which at least one is bad. EC2's message may name it, or
// one of several; that is a hint and no more: if there is none, they are halved.
func splitSuspects(some []instance, message string) (bad, good []instance) {
	bad, good = splitInstances(some, func(i instance) bool { return strings.Contains(message, i.id) })
	if len(bad) == 0 || len(good) == 0 {
		return some[len(some)/2:], some[:len(some)/2]
	}
	return bad, good
}

// stopSpotInstances stops what can be stopped, which is what a persistent request made, and
// terminates the others. Only workers: a terminated machine loses its disk.
func (s *batchCall) stopSpotInstances(ctx context.Context, list []instance) {
	var once []instance
	stop := s.do
	s.do = func(ctx context.Context, ids []string) error {
		err := stop(ctx, ids)
		if err == nil || len(ids) > 1 || s.classifyError(ctx, err).class != unsupportedOperation {
			return err
		}
		i := list[slices.IndexFunc(list, func(i instance) bool { return i.id == ids[0] })]
		if !i.ebs {
			return err // a persistent one, too, cannot be stopped without an EBS root
		}
		once = append(once, i)
		return nil
	}
	s.callInBatches(ctx, list)
	s.verb, s.do = "terminating spot instance", s.terminateInstances
	s.callInBatches(ctx, once)
	s.verb, s.do = "stopping", stop
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

// translateError is err in words for users, with its kind.
func (a *account) translateError(ctx context.Context, err error) error {
	return a.classifyError(ctx, err).toFault()
}
