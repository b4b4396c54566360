// Package aws starts and stops the EC2 instances of a cluster.
//
// The instances of a cluster are those with tag kubernetes.io/cluster/<infraID> = owned, which the
// installer and the machine controllers set; terminated instances are ignored. EC2 executes a call
// for all instances that it names or for none: see batchCall.
package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
)

// requestTimeout is the timeout of one request to AWS.
const requestTimeout = 10 * time.Second

// Actuator implements cloud.Actuator for AWS.
type Actuator struct {
	secrets        cloud.Secrets
	provider       types.NamespacedName
	endpoint       *string
	requestTimeout time.Duration
	http           *http.Client
	// selected has the instances to control, by instance ID; nil selects them by the infraID.
	selected map[string]cloud.Instance
	clock    clock.PassiveClock
}

var (
	_ cloud.Actuator           = (*Actuator)(nil)
	_ cloud.LostInstanceLister = (*Actuator)(nil)
	_ cloud.InstanceSelector   = (*Actuator)(nil)
)

// Option configures Power for all clusters.
type Option func(*Actuator)

// WithServiceProvider names the Secret of the account that assumes the roles in
// spec.platform.aws.credentialsAssumeRole. Without it, clusters that set this field are rejected.
func WithServiceProvider(secret types.NamespacedName) Option {
	return func(p *Actuator) { p.provider = secret }
}

// WithEndpoint sends all requests for EC2 and STS to url. Without it, they go to the endpoints of
// the region's partition: commercial, GovCloud or China.
func WithEndpoint(url string) Option { return func(p *Actuator) { p.endpoint = sdk.String(url) } }

// WithAuthorities makes every request trust the certificates of authorities in addition to the
// system's, such as those of a proxy or of private endpoints.
func WithAuthorities(authorities *cabundle.Source) Option {
	return func(p *Actuator) { p.http = newHTTPClient(authorities) }
}

// New returns an Actuator. It reads credentials only from Secrets, not from the environment or files.
// It uses the proxy in the environment, as Go programs do.
func New(secrets cloud.Secrets, options ...Option) *Actuator {
	p := &Actuator{secrets: secrets, requestTimeout: requestTimeout, http: newHTTPClient(nil), clock: clock.RealClock{}}
	for _, o := range options {
		o(p)
	}
	return p
}

// Observe returns the instances that are not terminated. Their names are the value of tag Name,
// followed by the ID.
func (actuator *Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	_, found, err := actuator.openAndListInstances(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("observing instances of %s: %w", ref.InfraID, err)
	}
	ms := make(cloud.Machines, 0, len(found))
	for _, i := range found {
		ms = append(ms, i.toCloudMachine(ref))
	}
	ms.SortByName()
	return ms, nil
}

// Start starts stopped instances, the control plane first. An instance that is stopping is started
// by a later call, after it has stopped.
func (actuator *Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	a, found, err := actuator.openAndListInstances(ctx, ref)
	if err != nil {
		return fmt.Errorf("starting instances of %s: %w", ref.InfraID, err)
	}
	s := batchCall{account: a, verb: "starting", do: a.startInstances}
	masters, workers := splitInstances(filterInstances(found, isStopped), instance.isControlPlane)
	s.callInBatches(ctx, masters)
	s.callInBatches(ctx, workers)
	return errors.Join(s.errs...)
}

// Stop stops or hibernates running instances, the workers first and then, in the same call, the control
// plane; if AWS rejects calls for reasons that affect all instances, or the hibernation of a worker, the
// rest is left for a later call. A pending instance is stopped by a later call, once it is running.
// One-time spot instances cannot be stopped and are terminated; see Lost. A hibernated instance is left
// alone: it costs as much as a stopped one, and EC2 stops it only after a start.
func (actuator *Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	a, found, err := actuator.openAndListInstances(ctx, ref)
	if err != nil {
		return fmt.Errorf("stopping instances of %s: %w", ref.InfraID, err)
	}
	masters, workers := splitInstances(filterInstances(found, isRunning), instance.isControlPlane)
	// Spot instances whose hibernation was refused are stopped or terminated.
	spot, lasting := splitInstances(workers, func(i instance) bool { return i.isSpot() && i.selectDepth(ref) == cloud.DepthStop })
	s := batchCall{account: a, verb: "stopping", do: a.stopInstances}
	sleeping := actuator.hibernateAndStop(ctx, a, ref, lasting, &s)
	if actuator.selected == nil {
		s.stopSpotInstances(ctx, spot)
	} else {
		s.callInBatches(ctx, spot) // another controller has created them, and would have to replace those that are terminated
	}
	if sleeping {
		actuator.hibernateAndStop(ctx, a, ref, masters, &s)
	}
	return errors.Join(s.errs...)
}

// account is an EC2 client with one cluster's credentials, for one call of Power.
type account struct {
	identity
	ec2 *ec2.Client
}

// openAndListInstances opens the cluster's account and lists its instances.
func (actuator *Actuator) openAndListInstances(ctx context.Context, ref cloud.Ref) (*account, []instance, error) {
	a, err := actuator.openAccount(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	if actuator.selected != nil {
		found, err := a.listSelectedInstances(ctx, actuator.selected)
		return a, found, err
	}
	found, err := a.listInstances(ctx, ref.InfraID)
	return a, found, err
}

// openAccount creates a client with the cluster's credentials. It sends no requests.
func (actuator *Actuator) openAccount(ctx context.Context, ref cloud.Ref) (*account, error) {
	who, err := actuator.readClusterIdentity(ctx, ref)
	if err != nil {
		return nil, err
	}
	cfg := sdk.Config{
		Region:       who.region,
		BaseEndpoint: actuator.endpoint,
		HTTPClient:   actuator.http,
		Credentials:  who.staticCredentials(),
		// No retries here: the controller calls again, and decides when.
		Retryer:    func() sdk.Retryer { return sdk.NopRetryer{} },
		APIOptions: []func(*middleware.Stack) error{actuator.addRequestDeadline},
	}
	if who.role.arn != "" {
		cfg.Credentials = sdk.NewCredentialsCache(who.assumedCredentials(cfg.Copy()))
	}
	return &account{identity: who, ec2: ec2.NewFromConfig(cfg)}, nil
}

// addRequestDeadline gives each request its own deadline.
func (actuator *Actuator) addRequestDeadline(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Deadline",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, actuator.requestTimeout, fmt.Errorf("no answer within %s", actuator.requestTimeout))
			defer cancel()
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}
