package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/power"
)

// ObserveOptions says what to read from a cluster in addition to its nodes.
type ObserveOptions struct {
	// Operators reads the cluster operators, if it is an OpenShift cluster.
	Operators bool
	// RetryOnce retries once, after a short delay, when the connection fails at once: in a cluster
	// that has been running, a single failure does not count.
	RetryOnce bool
	// ResumeProbe reads whether the controller manager has reacted to the resume probe.
	ResumeProbe bool
	// Version reads the cluster's version.
	Version bool
	// SpotMachines reads the Machines of spot machines, if the cluster has Machines.
	SpotMachines bool
	// Activity reads whether anybody uses the cluster, if its API server reports that. The service accounts of
	// IgnoredNamespaces do not.
	Activity          bool
	IgnoredNamespaces []string
}

// Connector accesses clusters with their admin kubeconfigs. It keeps one client for each Secret
// until the Secret changes or ForgetClient is called. It is safe for concurrent use.
type Connector struct {
	// RenderChart renders the charts of bootstraps. It must be set before a step installs one.
	RenderChart RenderFunc

	secrets     client.Reader
	authorities *cabundle.Source
	hub         HubIdentity
	// retryDelay is the delay between two attempts.
	retryDelay time.Duration

	mu     sync.Mutex
	spokes map[types.NamespacedName]spoke
}

// spoke is a cluster's client, built from one version of one Secret and of the additional
// certificate authorities.
type spoke struct {
	version     string
	authorities cabundle.Bundle
	*spokeClient
}

// HubIdentity returns the client certificate and key, both in PEM, with which the hub authenticates to a cluster instead
// of with the administrator's, so that the cluster can distinguish their requests; none if it has none for this cluster, and
// an error if that cannot be known now: the next connection asks again. It may return one only if config proves that its
// owner has at least the rights of the returned one.
type HubIdentity func(config *rest.Config) (certificate, key []byte, err error)

// UseHubIdentity makes all clients that are created from now on authenticate as identify says.
func (c *Connector) UseHubIdentity(identify HubIdentity) { c.hub = identify }

// New returns a Connector that reads kubeconfigs with secrets. Every connection trusts the
// certificates of authorities in addition to those of the kubeconfig.
func New(secrets client.Reader, authorities *cabundle.Source) *Connector {
	return &Connector{secrets: secrets, authorities: authorities, retryDelay: 500 * time.Millisecond, spokes: map[types.NamespacedName]spoke{}}
}

// ObserveSpoke asks the cluster whose admin kubeconfig is in the Secret. A cluster that does not
// answer, for whatever reason, yields a Spoke that says so; an error is the hub's own.
func (c *Connector) ObserveSpoke(ctx context.Context, secret types.NamespacedName, ask ObserveOptions) (power.Spoke, error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil {
		return power.Spoke{}, err
	}
	if trouble != "" {
		return power.Spoke{Queried: true, UnreachableReason: trouble}, nil
	}
	s, err := a.observeSpoke(ctx, ask)
	if err != nil && ask.RetryOnce && !isTimeout(err) && sleepContext(ctx, c.retryDelay) {
		s, err = a.observeSpoke(ctx, ask)
	}
	if err != nil {
		return power.Spoke{Queried: true, UnreachableReason: describeNoAnswer(err)}, nil
	}
	return s, nil
}

// sleepContext waits for span, and reports whether ctx is still active.
func sleepContext(ctx context.Context, span time.Duration) bool {
	t := time.NewTimer(span)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// ForgetClient drops the client of a Secret whose cluster was deleted.
func (c *Connector) ForgetClient(secret types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.spokes[secret]; ok {
		s.closeConnections()
		delete(c.spokes, secret)
	}
}

// connectSpoke returns the client for the current version of the Secret, or why there is none.
func (c *Connector) connectSpoke(ctx context.Context, name types.NamespacedName) (*spokeClient, string, error) {
	var secret corev1.Secret
	err := c.secrets.Get(ctx, name, &secret)
	switch {
	case apierrors.IsNotFound(err):
		c.ForgetClient(name)
		return nil, fmt.Sprintf("Secret %s with its admin kubeconfig does not exist", name.Name), nil
	case err != nil:
		return nil, "", fmt.Errorf("reading secret %s: %w", name, err)
	}
	a, err := c.cachedClient(name, &secret, c.authorities.LatestBundle(ctx))
	if errors.Is(err, errNoIdentity) {
		return nil, "", err
	}
	if err != nil {
		return nil, err.Error(), nil //nolint:nilerr // reported in the snapshot: the user must correct the kubeconfig
	}
	return a, "", nil
}

func (c *Connector) cachedClient(name types.NamespacedName, secret *corev1.Secret, authorities cabundle.Bundle) (*spokeClient, error) {
	version := string(secret.UID) + "/" + secret.ResourceVersion
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.spokes[name]
	if ok && old.version == version && old.authorities.Equal(authorities) {
		return old.spokeClient, nil
	}
	a, err := newSpokeClientAs(c.hub, hivev1.KubeconfigOf(secret.Data), authorities)
	if err != nil {
		return nil, err
	}
	if ok {
		old.closeConnections()
	}
	c.spokes[name] = spoke{version: version, authorities: authorities, spokeClient: a}
	return a, nil
}
