// Package aws starts and stops the EC2 instances of a cluster.
//
// The instances of a cluster are those with tag kubernetes.io/cluster/<infraID> =
// owned, as the installer and the machine controllers set it; those that are
// terminated are none. EC2 does a call for all instances that it names or for none:
// see sweep.
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

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
)

// requestTimeout is how long AWS may take for one request.
const requestTimeout = 10 * time.Second

// Power is the platform AWS.
type Power struct {
	secrets        cloud.Secrets
	provider       types.NamespacedName
	endpoint       *string
	requestTimeout time.Duration
	http           *http.Client
}

var (
	_ cloud.Power = (*Power)(nil)
	_ cloud.Spot  = (*Power)(nil)
)

// Option is a setting of the platform as a whole.
type Option func(*Power)

// WithServiceProvider names the Secret of the account that assumes the roles of
// spec.platform.aws.credentialsAssumeRole. Without it, such clusters are refused.
func WithServiceProvider(secret types.NamespacedName) Option {
	return func(p *Power) { p.provider = secret }
}

// WithEndpoint sends all requests to url, those for EC2 and for STS. Without it, they
// go where the region's partition has them, be that commercial, GovCloud or China.
func WithEndpoint(url string) Option { return func(p *Power) { p.endpoint = sdk.String(url) } }

// WithAuthorities has every request trust the certificates of authorities in addition to
// the system's: those of a proxy, or of private endpoints.
func WithAuthorities(authorities *cabundle.Source) Option {
	return func(p *Power) { p.http = newHTTPClient(authorities) }
}

// New makes the platform. It reads credentials from Secrets only: nothing of the
// environment, and no files. A proxy is taken from the environment, as Go programs do.
func New(secrets cloud.Secrets, options ...Option) *Power {
	p := &Power{secrets: secrets, requestTimeout: requestTimeout, http: newHTTPClient(nil)}
	for _, o := range options {
		o(p)
	}
	return p
}

// Observe returns the instances that are not terminated. Their names are as the tag
// Name says, with the ID.
func (p *Power) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	_, found, err := p.openAndListInstances(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("observing instances of %s: %w", ref.InfraID, err)
	}
	ms := make(cloud.Machines, 0, len(found))
	for _, i := range found {
		ms = append(ms, i.toCloudMachine())
	}
	ms.SortByName()
	return ms, nil
}

// Start starts what is stopped, the control plane first. An instance on its way to
// stopped can be started when it is there: by a later call.
func (p *Power) Start(ctx context.Context, ref cloud.Ref) error {
	a, found, err := p.openAndListInstances(ctx, ref)
	if err != nil {
		return fmt.Errorf("starting instances of %s: %w", ref.InfraID, err)
	}
	s := batchCall{account: a, verb: "starting", do: a.startInstances}
	masters, workers := splitInstances(filterInstances(found, isStopped), instance.isControlPlane)
	s.callInBatches(ctx, masters)
	s.callInBatches(ctx, workers)
	return errors.Join(s.errs...)
}

// Stop stops what runs, the workers first, in one call; the control plane is left
// for a later one if AWS would not listen. A pending instance can be stopped when it
// runs: by a later call. One-time spot instances cannot be stopped and are
// terminated; see Lost.
func (p *Power) Stop(ctx context.Context, ref cloud.Ref) error {
	a, found, err := p.openAndListInstances(ctx, ref)
	if err != nil {
		return fmt.Errorf("stopping instances of %s: %w", ref.InfraID, err)
	}
	masters, workers := splitInstances(filterInstances(found, isRunning), instance.isControlPlane)
	spot, lasting := splitInstances(workers, instance.isSpot)
	s := batchCall{account: a, verb: "stopping", do: a.stopInstances}
	s.callInBatches(ctx, lasting)
	s.stopSpotInstances(ctx, spot)
	s.callInBatches(ctx, masters)
	return errors.Join(s.errs...)
}

// account is AWS in the name of one cluster, for one call of Power.
type account struct {
	identity
	ec2 *ec2.Client
}

// openAndListInstances lists the instances of a cluster.
func (p *Power) openAndListInstances(ctx context.Context, ref cloud.Ref) (*account, []instance, error) {
	a, err := p.openAccount(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	found, err := a.listInstances(ctx, ref.InfraID)
	return a, found, err
}

// openAccount makes a client with the cluster's credentials. It sends nothing.
func (p *Power) openAccount(ctx context.Context, ref cloud.Ref) (*account, error) {
	who, err := p.readClusterIdentity(ctx, ref)
	if err != nil {
		return nil, err
	}
	cfg := sdk.Config{
		Region:       who.region,
		BaseEndpoint: p.endpoint,
		HTTPClient:   p.http,
		Credentials:  who.staticCredentials(),
		// Nobody waits in here: the controller calls again, and knows when.
		Retryer:    func() sdk.Retryer { return sdk.NopRetryer{} },
		APIOptions: []func(*middleware.Stack) error{p.addRequestDeadline},
	}
	if who.role.arn != "" {
		cfg.Credentials = sdk.NewCredentialsCache(who.assumedCredentials(cfg.Copy()))
	}
	return &account{identity: who, ec2: ec2.NewFromConfig(cfg)}, nil
}

// addRequestDeadline gives each request its own.
func (p *Power) addRequestDeadline(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Deadline",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, p.requestTimeout, fmt.Errorf("no answer within %s", p.requestTimeout))
			defer cancel()
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}
