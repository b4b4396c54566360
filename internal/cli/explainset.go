package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// setExplanation explains one ClaimSet. It is the output of explain claimset -o json and a public interface: docs/cli.md
// describes it. Fields may be added, but never changed or removed.
type setExplanation struct {
	Now       time.Time                `json:"now"`
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Pool      string                   `json:"pool,omitempty"`
	Size      int                      `json:"size"`
	Assigned  int                      `json:"assigned"`
	Claims    []v1alpha1.ClaimSetClaim `json:"claims"`
	poolplan.Set
	ToDo []poolplan.Action `json:"toDo"`
}

func (a commands) explainSetCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "claimset CLAIMSET",
		Short:             "Explain what a ClaimSet waits for, and what you can do",
		Long:              "Explain where a ClaimSet is in the queue of its pool, which clusters it lacks, and what you can do.",
		Example:           "  hotspare explain claimset e2e",
		Args:              base.RequireOneName("ClaimSet"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			set := &v1alpha1.ClaimSet{}
			err := h.Get(ctx, h.ObjectKey(base.StripKindPrefix(args[0])), set)
			if apierrors.IsNotFound(err) && !base.IsAPIMissing(err) {
				return base.WithRemedy(fmt.Errorf("namespace %s has no ClaimSet %q", h.Namespace, args[0]), "see: "+a.FormatCommand("claimset list"))
			}
			if err != nil {
				return fmt.Errorf("reading ClaimSet %s: %w", args[0], err)
			}
			t, err := a.explainSet(ctx, h, set)
			if err != nil {
				return err
			}
			return a.writeSetExplanation(set, t)
		}),
	}
}

func (a commands) explainSet(ctx context.Context, h *base.Hub, set *v1alpha1.ClaimSet) (setExplanation, error) {
	t := setExplanation{
		Now: a.Clock.Now(), Namespace: set.Namespace, Name: set.Name, Pool: set.Status.ClusterPoolName, Size: int(set.Spec.Size),
		Assigned: int(set.Status.Assigned), Claims: base.EmptyIfNil(set.Status.Claims), ToDo: []poolplan.Action{},
	}
	t.Message = base.DescribeClaimSet(set)
	pending := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetPending)
	if pending == nil || pending.Status != metav1.ConditionTrue || set.DeletionTimestamp != nil {
		return t, nil
	}
	if pending.Reason == v1alpha1.ReasonSetWaiting || pending.Reason == v1alpha1.ReasonSetIncomplete {
		if err := a.explainSetInPool(ctx, h, set, &t); err != nil {
			return t, err
		}
	}
	if len(t.ToDo) > 0 {
		return t, nil
	}
	do := remedy.NewWait("It is served automatically.")
	if meta.IsStatusConditionTrue(set.Status.Conditions, hivev1.ConditionStalled) {
		do = remedy.New("Correct what the message says, or release it.", a.FormatCommandIn(set.Namespace, "claimset release %s", set.Name))
	}
	t.ToDo = append(t.ToDo, poolplan.Action{Of: set.Name, Remedy: *do})
	return t, nil
}

// explainSetInPool explains the place of a set in the queue of its pool, and what the pool needs.
func (a commands) explainSetInPool(ctx context.Context, h *base.Hub, set *v1alpha1.ClaimSet, t *setExplanation) error {
	p, err := findPool(ctx, h, set.Namespace, set.Status.ClusterPoolName)
	if err != nil || p == nil {
		return err
	}
	f, err := previewPool(ctx, h, p, t.Now)
	if err != nil {
		return err
	}
	v := f.ExplainSet(set.Name, t.Size)
	if v.Message == "" {
		return nil
	}
	t.Set = v
	for _, do := range f.BuildView(t.Now, a.FormatCommandIn).ToDo { // what blocks the pool blocks the set
		if do.Of == p.Name {
			t.ToDo = append(t.ToDo, do)
		}
	}
	return nil
}

func (a commands) writeSetExplanation(set *v1alpha1.ClaimSet, t setExplanation) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(t)
	case base.AsName:
		return a.PrintNames(set)
	}
	about := base.NewTable()
	about.AddRow("ClaimSet", t.Namespace+"/"+t.Name)
	about.AddRow("Clusters", fmt.Sprintf("%d of %d", t.Assigned, t.Size))
	if t.Pool != "" {
		about.AddRow("Pool", t.Namespace+"/"+t.Pool)
	}
	if t.Position > 0 {
		about.AddRow("Place", base.FormatNumber(t.Position))
	}
	if t.Ready != nil {
		about.AddRow("Expected", formatExpectedTime(poolplan.Claim{Ready: t.Ready}, t.Now))
	}
	about.AddRow("Why", t.Message)
	claims := base.NewTable("CLAIM", "CLUSTER")
	for _, c := range t.Claims {
		claims.AddRow(c.Name, base.ValueOrNone(c.Cluster))
	}
	return a.writeExplanation(a.Stdout, t.ToDo, about, claims)
}

// readSets returns the ClaimSets of a namespace. known is false if the hub is older than this kind, or if the user may
// not read them.
func readSets(ctx context.Context, h *base.Hub, namespace string) (sets claimset.Sets, known bool, err error) {
	var list v1alpha1.ClaimSetList
	err = h.List(ctx, &list, client.InNamespace(namespace))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("listing the ClaimSets of namespace %s: %w", namespace, err)
	}
	return claimset.ByUID(list.Items), true, nil
}
