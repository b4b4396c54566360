package base

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// ownHubTimeout is how long a command that has failed asks the hub in the data folder about its clusters.
const ownHubTimeout = 5 * time.Second

// findOwnHub returns the hub in the data folder if a command has failed because $KUBECONFIG selects one of
// the clusters of that hub, and nil otherwise. It prints a note, and all further connections of the
// command are to that hub.
func (a *App) findOwnHub(ctx context.Context, h *Hub, err error) *Hub {
	if !h.IsFromEnvironment || !isFromWrongAPI(err) {
		return nil
	}
	other := *a
	other.isOwnHub = true
	own, err := other.ConnectToHub()
	if err != nil {
		return nil // there is no hub in the data folder: the command reports its own error
	}
	ctx, cancel := context.WithTimeout(ctx, ownHubTimeout)
	defer cancel()
	var clusters hivev1.ClusterDeploymentList
	if err := own.List(ctx, &clusters); err != nil {
		return nil // as above
	}
	for i := range clusters.Items {
		if cd := &clusters.Items[i]; isSameServer(cd.Status.APIURL, h.URL) {
			fmt.Fprintf(a.Stderr, "note: $KUBECONFIG selects %s; this command uses its hub at %s\n", describeCluster(cd), own.URL)
			a.isOwnHub = true
			return own
		}
	}
	return nil
}

// isFromWrongAPI reports whether an error may come from an API server that is not a hub.
func isFromWrongAPI(err error) bool {
	var unreachable *url.Error
	return err != nil && (IsAPIMissing(err) || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || errors.As(err, &unreachable))
}

// isSameServer reports whether two URLs are those of the same API server.
func isSameServer(a, b string) bool {
	return a != "" && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// describeCluster names a cluster, and the claim that has it.
func describeCluster(cd *hivev1.ClusterDeployment) string {
	if ref := clusterstate.PoolReference(cd); ref.ClaimName != "" {
		return fmt.Sprintf("cluster %s of claim %s", cd.Name, ref.ClaimName)
	}
	return "cluster " + cd.Name
}
