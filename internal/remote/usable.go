package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// CheckUsable returns why a hub would not serve a cluster whose kubeconfig it has to a claim: its API does not
// answer the requests that the hub sends, it has no node although expectNodes is set, or a node is not ready.
// Like a Connector, it refuses kubeconfigs that would run programs or read files. Errors are fixed phrases
// without the kubeconfig's content.
func CheckUsable(ctx context.Context, kubeconfig []byte, expectNodes bool) error {
	a, err := newSpokeClient(kubeconfig)
	if err != nil {
		return err
	}
	defer a.closeConnections()
	s, err := a.observeSpoke(ctx, ObserveOptions{})
	if err != nil {
		return errors.New(describeNoAnswer(err))
	}
	if len(s.Nodes) == 0 && expectNodes {
		return errors.New("it has no node: let observe print \"node\": false for a machine that is no node")
	}
	var unready []string
	for _, n := range s.Nodes {
		if !n.Ready {
			unready = append(unready, n.Name)
		}
	}
	if len(unready) > 0 {
		return fmt.Errorf("nodes are not ready: %s", strings.Join(unready, ", "))
	}
	return nil
}
