package node

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
)

// A Membership is a node's identity in the API, for a program that is the node otherwise. It renews
// the node's certificate until Close.
type Membership struct {
	identity  *identity
	bootstrap *rest.Config
}

// Join requests the node's certificate as Run does, and waits without a limit for the API and for
// its approval. It uses Name, Dir and Bootstrap of the options.
func Join(ctx context.Context, o Options) (*Membership, error) {
	i, err := newIdentity(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("preparing node %s: %w", o.Name, err)
	}
	if err := i.waitForCertificate(ctx); err != nil {
		i.stop()
		return nil, err
	}
	return &Membership{identity: i, bootstrap: o.Bootstrap}, nil
}

// ClientConfig returns the config of a client that authenticates as the node, with its current
// certificate.
func (m *Membership) ClientConfig() *rest.Config { return m.identity.clientConfig(m.bootstrap) }

// CloseStaleConnections closes the connections that were made with an old certificate, until ctx
// ends.
func (m *Membership) CloseStaleConnections(ctx context.Context) error {
	return m.identity.closeStaleConnections(ctx)
}

// Close ends the renewal and closes all connections.
func (m *Membership) Close() { m.identity.stop() }
