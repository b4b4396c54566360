package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// objectExplanation explains one claim or one cluster. It is the output of explain -o json and a
// public interface: docs/cli.md describes it. Fields may be added, but never changed or removed.
type objectExplanation struct {
	Now       time.Time          `json:"now"`
	Namespace string             `json:"namespace"`
	Pool      string             `json:"pool,omitempty"`
	Claim     *poolplan.Claim    `json:"claim,omitempty"`
	Cluster   *poolplan.Cluster  `json:"cluster,omitempty"`
	Amiss     []hivev1.Condition `json:"conditions"`
	ToDo      []poolplan.Action  `json:"toDo"`
	// NextAttempt is when the next attempt of a cluster's install starts, after one that has failed.
	NextAttempt *time.Time `json:"nextAttempt,omitempty"`
	// Use is when a claimed cluster was used, if its pool hibernates clusters that nobody uses.
	Use *clusterstate.Use `json:"use,omitempty"`

	expires string // time until the claim's lifetime ends
}

func (a commands) explainClaimCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "claim CLAIM",
		Short:             "Explain what a claim waits for, and what you can do",
		Long:              "Explain what a claim waits for and until when, or the next step of its cluster, and what you can do.",
		Example:           "  hotspare explain claim mine",
		Args:              base.RequireOneName("claim"),
		ValidArgsFunction: a.CompleteOneClaim,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			c, err := a.getClaim(ctx, h, args[0])
			if err != nil {
				return err
			}
			t, err := a.explainClaim(ctx, h, c)
			if err != nil {
				return err
			}
			if a.Flags.Output == base.AsName {
				return a.PrintNames(c)
			}
			return a.writeObjectExplanation(t, func(about *base.Table) {
				about.AddRow("Claim", c.Namespace+"/"+c.Name)
				about.AddRow("State", t.Claim.State)
				about.AddRow("Place", formatPosition(*t.Claim))
				about.AddRow("Priority", formatClaimPriority(*t.Claim))
				about.AddRow("Expected", formatExpectedTime(*t.Claim, t.Now))
				about.AddRow("Expires", t.expires)
				about.AddRow("Why", t.Claim.Message)
			})
		}),
	}
}

func (a commands) explainClusterCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cluster NAME",
		Short: "Explain the state of a cluster, or of a claim's cluster",
		Long: "Explain the phase of a cluster in its pool, its next step, and what you can do.\n" +
			"NAME is the name of a claim in the namespace or, failing that, of a cluster.",
		Example:           "  hotspare explain cluster mine",
		Args:              base.RequireOneName("cluster or claim"),
		ValidArgsFunction: a.CompleteClusters,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			cd, err := a.FindCluster(ctx, h, args[0])
			if err != nil {
				return err
			}
			t, err := a.explainCluster(ctx, h, cd)
			if err != nil {
				return err
			}
			if a.Flags.Output == base.AsName {
				return a.PrintNames(cd)
			}
			return a.writeObjectExplanation(t, func(about *base.Table) {
				about.AddRow("Cluster", cd.Namespace+"/"+cd.Name)
				about.AddRow("State", clusterstate.DescribeCluster(cd))
				about.AddRow("Power", base.DescribePower(cd))
				about.AddRow("Use", t.Use.InWords(t.Now))
				if t.NextAttempt != nil {
					about.AddRow("Next attempt", base.DescribeNextAttempt(*t.NextAttempt, t.Now))
				}
			})
		}),
	}
}

// writeObjectExplanation prints an explanation; head adds its first rows.
func (a commands) writeObjectExplanation(t objectExplanation, head func(*base.Table)) error {
	if a.Flags.Output == base.AsJSON || a.Flags.Output == base.AsYAML {
		return a.PrintEncoded(t)
	}
	about := base.NewTable()
	head(about)
	about.Rows = slices.DeleteFunc(about.Rows, func(row []string) bool { return row[1] == "" || row[1] == base.None })
	if t.Pool != "" {
		about.AddRow("Pool", t.Namespace+"/"+t.Pool)
	}
	if t.Cluster != nil && t.Claim != nil {
		about.AddRow("Cluster", t.Cluster.Name+", "+t.Cluster.Message)
	}
	if t.Cluster != nil && t.Claim == nil {
		about.AddRow("Why", t.Cluster.Message)
	}
	conditions := base.NewTable("CONDITION", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range t.Amiss {
		conditions.AddRow(c.Type, string(c.Status), c.Reason, a.FormatAge(c.LastTransitionTime.Time), c.Message)
	}
	return a.writeExplanation(a.Stdout, t.ToDo, about, conditions)
}

func (e *objectExplanation) appendRemedy(name string, do *remedy.Remedy) {
	if do != nil {
		e.ToDo = append(e.ToDo, poolplan.Action{Of: name, Remedy: *do})
	}
}

func (a commands) explainClaim(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) (objectExplanation, error) {
	t := objectExplanation{
		Now: a.Clock.Now(), Namespace: c.Namespace, Pool: c.Spec.ClusterPoolName, Amiss: []hivev1.Condition{}, ToDo: []poolplan.Action{},
		expires: clusterstate.DescribeExpiry(c, a.Clock.Now()),
	}
	p, err := findPool(ctx, h, c.Namespace, c.Spec.ClusterPoolName)
	if err != nil {
		return t, err
	}
	if p == nil {
		t.explainOrphanedClaim(c, a.FormatCommandIn)
		return t, nil
	}
	f, err := previewPool(ctx, h, p, t.Now)
	if err != nil {
		return t, err
	}
	v := f.ExplainClaim(c, a.FormatCommandIn)
	t.Claim = &v
	t.appendRemedy(c.Name, v.ToDo)
	if cd := f.Clusters[c.Spec.Namespace]; cd != nil && p.Unreadable == "" {
		t.explainMember(f, cd, a.FormatCommandIn)
	}
	if v.State == clusterstate.Waiting {
		for _, do := range f.BuildView(t.Now, a.FormatCommandIn).ToDo { // what blocks the pool blocks the claim
			if do.Of == p.Name {
				t.ToDo = append(t.ToDo, do)
			}
		}
	}
	return t, nil
}

// explainOrphanedClaim explains a claim whose pool does not exist.
func (e *objectExplanation) explainOrphanedClaim(c *hivev1.ClusterClaim, formatCommand remedy.CommandFormatter) {
	e.Claim = &poolplan.Claim{Name: c.Name, State: clusterstate.OfClaim(c), Created: c.CreationTimestamp.Time, Cluster: c.Spec.Namespace}
	if e.Claim.State != clusterstate.Waiting {
		e.Claim.Message = "its pool was deleted"
		return
	}
	e.Claim.Message = "there is no pool " + c.Spec.ClusterPoolName + " in namespace " + c.Namespace
	e.appendRemedy(c.Name, remedy.New("Create the pool, or release the claim.", formatCommand(c.Namespace, "pool create %s --size 1", c.Spec.ClusterPoolName)))
}

func (a commands) explainCluster(ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment) (objectExplanation, error) {
	ref := clusterstate.PoolReference(cd)
	t := objectExplanation{
		Now: a.Clock.Now(), Namespace: clusterstate.HomeNamespace(cd), Pool: ref.PoolName,
		Amiss: base.EmptyIfNil(listUnhealthyConditions(cd)), ToDo: []poolplan.Action{},
	}
	next, err := h.FindNextAttempt(ctx, cd)
	if err != nil {
		return t, err
	}
	if !next.IsZero() {
		t.NextAttempt = &next
	}
	var p *hivev1.ClusterPool
	if ref.PoolName != "" {
		t.Use = clusterstate.UseOf(cd, findInactivityLimit(ctx, h, ref))
		if p, err = findPool(ctx, h, ref.Namespace, ref.PoolName); err != nil {
			return t, err
		}
	}
	if p == nil || p.Unreadable != "" {
		return t, nil
	}
	f, err := previewPool(ctx, h, p, t.Now)
	if err == nil && f.Clusters[cd.Name] != nil {
		t.explainMember(f, cd, a.FormatCommandIn)
	}
	return t, err
}

// findInactivityLimit returns after how much inactivity claimed clusters of a pool hibernate; 0 if that is not known, as to
// users who may not read the PoolPolicy.
func findInactivityLimit(ctx context.Context, h *base.Hub, ref hivev1.ClusterPoolReference) time.Duration {
	var policy v1alpha1.PoolPolicy
	err := h.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.PoolName}, &policy)
	if err != nil || policy.Spec.ClaimedClusters == nil {
		return 0
	}
	limit, err := policy.Spec.ClaimedClusters.HibernateAfterInactivity.Parse()
	if err != nil {
		return 0 // condition Hibernating says so
	}
	return limit
}

// explainMember explains the phase of a cluster in its pool.
func (e *objectExplanation) explainMember(f poolplan.Evaluation, cd *hivev1.ClusterDeployment, formatCommand remedy.CommandFormatter) {
	i := slices.IndexFunc(f.PlannedClusters(), func(c poolplan.PlannedCluster) bool { return c.Name == cd.Name })
	if i < 0 {
		return
	}
	v := f.ExplainCluster(f.PlannedClusters()[i], formatCommand)
	e.Cluster = &v
	e.Amiss = base.EmptyIfNil(listUnhealthyConditions(cd))
	e.appendRemedy(cd.Name, v.ToDo)
}

// badConditionStatus maps the conditions of a cluster that can report a problem to the status that
// does.
var badConditionStatus = map[string]corev1.ConditionStatus{
	hivev1.ClusterRequirementsMet:        corev1.ConditionFalse,
	hivev1.ClusterProvisionFailed:        corev1.ConditionTrue,
	hivev1.ClusterProvisionStopped:       corev1.ConditionTrue,
	hivev1.ClusterDeprovisionLaunchError: corev1.ConditionTrue,
	hivev1.ClusterUnreachable:            corev1.ConditionTrue,
	hivev1.ClusterReady:                  corev1.ConditionFalse,
	hivev1.ClusterGatesPassed:            corev1.ConditionFalse,
	hivev1.ClusterBootstrapped:           corev1.ConditionFalse,
}

// failedPowerReasons are the reasons of the condition Hibernating for a failed change of the power
// state.
var failedPowerReasons = []string{hivev1.ReasonFailedToStop, hivev1.ReasonFailedToStart}

// listUnhealthyConditions returns the conditions of a cluster that report a problem. A cluster that
// should hibernate need be neither ready nor reachable.
func listUnhealthyConditions(cd *hivev1.ClusterDeployment) []hivev1.Condition {
	awake := []string{hivev1.ClusterUnreachable, hivev1.ClusterReady, hivev1.ClusterGatesPassed, hivev1.ClusterBootstrapped}
	var out []hivev1.Condition
	for _, c := range cd.Status.Conditions {
		asleep := cd.Spec.PowerState == hivev1.PowerHibernating && slices.Contains(awake, c.Type)
		stuck := c.Type == hivev1.ClusterHibernating && slices.Contains(failedPowerReasons, c.Reason)
		if stuck || badConditionStatus[c.Type] == c.Status && c.Status != "" && !asleep && c.Reason != hivev1.ReasonInitialized {
			out = append(out, c)
		}
	}
	return out
}

// getClaim reads a claim.
func (a commands) getClaim(ctx context.Context, h *base.Hub, name string) (*hivev1.ClusterClaim, error) {
	var c hivev1.ClusterClaim
	if err := h.Get(ctx, h.ObjectKey(name), &c); err != nil {
		return nil, a.ClaimReadError(h, name, err)
	}
	return &c, nil
}
