package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// runWithClaimSet claims several clusters at once, runs the command with them and releases all of them. It handles
// signals as runWithClaim does.
func (a commands) runWithClaimSet(ctx context.Context, h *base.Hub, poolName string, command []string, o *claimOptions) error {
	set, err := a.prepareClaimSet(ctx, h, []string{poolName}, o)
	if err != nil {
		return err
	}
	declareHeartbeat(ctx, h, claimedSet(set), o.heartbeatTimeout)
	a.cleanUpKilledRuns(ctx, h)
	heard := make(chan os.Signal, 8)
	signal.Notify(heard, base.StopSignals...)
	defer signal.Stop(heard)

	defer a.releaseClaimed(ctx, h, claimedSet(set)) // deferred before the creation: an interrupted request may still create the set
	if err := h.Create(ctx, set); err != nil {
		return fmt.Errorf("creating ClaimSet %s: %w", set.Name, err)
	}
	defer a.startHeartbeat(ctx, h, claimedSet(set), o.heartbeatTimeout)()
	set, took, err := a.waitForClaimSet(ctx, h, set.Name, o.timeout)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "ClaimSet %s has %s of pool %s after %s\n",
		set.Name, humanize.FormatCount(int(set.Status.Assigned), "cluster"), set.Status.ClusterPoolName, took)
	if o.diagnoseOnFailure {
		if err := a.patchDiagnoses(ctx, h, set, true); err != nil {
			return err
		}
	}
	if err := a.runWithKubeconfigs(ctx, h, set, command, heard); err != nil {
		return err
	}
	if o.diagnoseOnFailure {
		a.withdrawDiagnoses(ctx, h, set)
	}
	return nil
}

// withdrawDiagnoses withdraws the requests for bundles of a set whose command has succeeded.
func (a commands) withdrawDiagnoses(ctx context.Context, h *base.Hub, set *v1alpha1.ClaimSet) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := a.patchDiagnoses(ctx, h, set, false); err != nil {
		fmt.Fprintf(a.Stderr, "warning: the hub writes bundles of diagnostics of ClaimSet %s although the command has succeeded: %v\n", set.Name, h.ExplainAPIError(err))
	}
}

// runWithKubeconfigs runs the command with a kubeconfig of all clusters of a set, in a private folder.
func (a commands) runWithKubeconfigs(ctx context.Context, h *base.Hub, set *v1alpha1.ClaimSet, command []string, heard <-chan os.Signal) error {
	var names []string
	kubeconfig := clientcmdapi.NewConfig()
	for i := range int(set.Spec.Size) {
		name := claimset.ClaimName(set.Name, i)
		cd, err := a.FindClaimedCluster(ctx, h, name)
		if err != nil {
			return err
		}
		raw, err := h.ReadKubeconfig(ctx, cd)
		if err != nil {
			return err
		}
		if err := addContext(kubeconfig, name, raw); err != nil {
			return fmt.Errorf("reading the kubeconfig of cluster %s: %w", cd.Name, err)
		}
		names = append(names, name)
	}
	kubeconfig.CurrentContext = names[0]
	raw, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	held, stop := a.contextWhileSetAssigned(ctx, h, set)
	defer stop()
	record := runRecord{Hub: h.URL, Kind: kindClaimSet, Namespace: set.Namespace, Name: set.Name, UID: set.UID}
	return a.runInPrivateFolder(held, record, raw, command, heard, "HOTSPARE_CLAIMS="+strings.Join(names, " "))
}

// addContext adds the current context of a kubeconfig to another one, with its cluster and its user. All three get that name.
func addContext(to *clientcmdapi.Config, name string, raw []byte) error {
	from, err := clientcmd.Load(raw)
	if err != nil {
		return err
	}
	current := from.Contexts[from.CurrentContext]
	if current == nil || from.Clusters[current.Cluster] == nil || from.AuthInfos[current.AuthInfo] == nil {
		return errors.New("it has no current context with a cluster and a user")
	}
	to.Clusters[name], to.AuthInfos[name] = from.Clusters[current.Cluster], from.AuthInfos[current.AuthInfo]
	to.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: current.Namespace}
	return nil
}

// contextWhileSetAssigned returns a context that is canceled with ctx or when the set loses its clusters, as contextWhileAssigned
// does for a claim.
func (a commands) contextWhileSetAssigned(ctx context.Context, h *base.Hub, set *v1alpha1.ClaimSet) (held context.Context, stop func()) {
	l := base.ObjectWaiter[*v1alpha1.ClaimSet]{
		Hub: h, View: a.newSilentView(), Object: &v1alpha1.ClaimSet{ObjectMeta: h.ObjectMeta(set.Name)}, List: &v1alpha1.ClaimSetList{},
		CheckDone: func(set *v1alpha1.ClaimSet, exists bool) (bool, error) {
			return false, setLossError(set, exists)
		},
		HasAnswered: true, // the set was read before, so retry every error
	}
	return a.contextUntilLoss(ctx, "ClaimSet "+set.Name, l.WaitUntilDone)
}

// setLossError explains why a set has lost its clusters; nil while it has them. The command may release single claims of
// the set itself.
func setLossError(set *v1alpha1.ClaimSet, exists bool) error {
	running := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetClustersRunning)
	switch {
	case exists && set.DeletionTimestamp != nil && meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ClaimSetHeartbeatMissing):
		return fmt.Errorf("was released because the hub received no heartbeat for %s, and its clusters are being destroyed", set.Annotations[hivev1.AnnotationHeartbeatTimeout])
	case !exists || set.DeletionTimestamp != nil:
		return errors.New("was released by another user or process and its clusters are being destroyed")
	case running == nil || running.Status != metav1.ConditionFalse:
		return nil
	case running.Reason == v1alpha1.ReasonClaimsReleased:
		return errors.New("has no claims any more: they have expired or were released, and their clusters are being destroyed")
	case running.Reason == hivev1.ReasonClusterDeleted:
		return fmt.Errorf("has lost clusters: %s", running.Message)
	default:
		return nil
	}
}

// patchDiagnoses requests a bundle of diagnostics of each cluster of a set at its release, or withdraws the requests. It stops at
// the first error.
func (a commands) patchDiagnoses(ctx context.Context, h *base.Hub, set *v1alpha1.ClaimSet, request bool) error {
	for _, c := range set.Status.Claims {
		if c.Cluster == "" {
			continue
		}
		claim := &hivev1.ClusterClaim{ObjectMeta: h.ObjectMeta(c.Name)}
		if err := h.Patch(ctx, claim, diagnosePatch("", request)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("requesting a bundle of diagnostics with annotation %s of claim %s: %w", hivev1.AnnotationDiagnoseAtRelease, c.Name, err)
		}
	}
	return nil
}
