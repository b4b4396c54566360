package remote

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/power"
)

// Ask is what to ask a cluster for, beside its nodes.
type Ask struct {
	// Operators asks for the cluster operators, if it is an OpenShift cluster.
	Operators bool
	// Again asks a second time, a moment later, when the connection fails at once: in a
	// cluster that has been running, one failure is no news yet.
	Again bool
	// Errand asks whether the controller manager has reacted to what Send has sent.
	Errand bool
	// Version asks for the cluster's version.
	Version bool
	// Spots asks for the Machines of interruptible machines, if it has Machines.
	Spots bool
}

// Connector asks clusters by their admin kubeconfigs. It keeps one client for
// each Secret until the Secret changes or is forgotten. Safe for concurrent use.
type Connector struct {
	secrets     client.Reader
	authorities *cabundle.Source
	// breath is the moment between two tries.
	breath time.Duration

	mu     sync.Mutex
	spokes map[types.NamespacedName]spoke
}

// spoke is a cluster's client, made from one version of one Secret and of the additional
// certificate authorities.
type spoke struct {
	version     string
	authorities cabundle.Bundle
	*asker
}

// New returns a Connector that reads kubeconfigs with secrets. Every connection trusts the
// certificates of authorities in addition to those of the kubeconfig.
func New(secrets client.Reader, authorities *cabundle.Source) *Connector {
	return &Connector{secrets: secrets, authorities: authorities, breath: 500 * time.Millisecond, spokes: map[types.NamespacedName]spoke{}}
}

// Look asks the cluster whose admin kubeconfig is in the Secret. A cluster that
// does not answer, whatever the cause, is a Spoke that says so; an error is the
// hub's own.
func (c *Connector) Look(ctx context.Context, secret types.NamespacedName, ask Ask) (power.Spoke, error) {
	a, trouble, err := c.connect(ctx, secret)
	if err != nil {
		return power.Spoke{}, err
	}
	if trouble != "" {
		return power.Spoke{Asked: true, Trouble: trouble}, nil
	}
	s, err := a.ask(ctx, ask)
	if err != nil && ask.Again && !slow(err) && pause(ctx, c.breath) {
		s, err = a.ask(ctx, ask)
	}
	if err != nil {
		return power.Spoke{Asked: true, Trouble: phrase(err)}, nil
	}
	return s, nil
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, span time.Duration) bool {
	t := time.NewTimer(span)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Forget drops the client of a Secret whose cluster is gone.
func (c *Connector) Forget(secret types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.spokes[secret]; ok {
		s.close()
		delete(c.spokes, secret)
	}
}

// connect returns the client for the Secret as it is now, or why there can't be one.
func (c *Connector) connect(ctx context.Context, name types.NamespacedName) (*asker, string, error) {
	var secret corev1.Secret
	err := c.secrets.Get(ctx, name, &secret)
	switch {
	case apierrors.IsNotFound(err):
		c.Forget(name)
		return nil, fmt.Sprintf("Secret %s with its admin kubeconfig does not exist", name.Name), nil
	case err != nil:
		return nil, "", fmt.Errorf("reading secret %s: %w", name, err)
	}
	a, err := c.client(name, &secret, c.authorities.Latest(ctx))
	if err != nil {
		return nil, err.Error(), nil //nolint:nilerr // told as a fact: the user has to mend the kubeconfig
	}
	return a, "", nil
}

func (c *Connector) client(name types.NamespacedName, secret *corev1.Secret, authorities cabundle.Bundle) (*asker, error) {
	version := string(secret.UID) + "/" + secret.ResourceVersion
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.spokes[name]
	if ok && old.version == version && old.authorities.Equal(authorities) {
		return old.asker, nil
	}
	a, err := newAsker(secret.Data[hivev1.SecretKeyKubeconfig], authorities)
	if err != nil {
		return nil, err
	}
	if ok {
		old.close()
	}
	c.spokes[name] = spoke{version: version, authorities: authorities, asker: a}
	return a, nil
}
