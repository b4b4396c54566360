package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing/record"
)

// importedClaims is the output of the command for programs. Fields may be added, but never changed or
// removed.
type importedClaims struct {
	Pool string `json:"pool"`
	// Imported is the number of claims that were added to the record, LeftOut that of the others in the
	// file.
	Imported int `json:"imported"`
	LeftOut  int `json:"leftOut"`
	// Since is from when on the record has claims now, Before the time before which claims were imported.
	Since  time.Time `json:"since"`
	Before time.Time `json:"before"`
}

func (a commands) importClaimsCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:               "import-claims POOL --trace FILE",
		Short:             "Add past claims to the record from which a PoolPolicy computes counts",
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: a.CompletePools,
		Long: `Add past claims to the record from which a PoolPolicy computes counts, so that the PoolPolicy
need not watch the pool for a week first.

The file has the format of hotspare simulate --trace: a column created with the time of each
claim. Export all claims from the first to the last time: a gap in the file counts as no
demand. hotspare imports claims of the last two years that were created before it began to
record this pool. It has recorded later claims itself, so a repeated import changes nothing.`,
		Example: `  hotspare pool import-claims ci --trace claims.csv
  kubectl get poolpolicy ci`,
	}
	cmd.Flags().StringVar(&path, "trace", "", "CSV file of claims, or - for standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if path == "" {
			return base.UsageErrorFor(errors.New("specify the claims with --trace FILE.csv"), cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			return a.runImportClaims(ctx, h, args[0], path)
		})(cmd, args)
	}
	return cmd
}

func (a commands) runImportClaims(ctx context.Context, h *base.Hub, name, path string) error {
	p, err := a.GetPool(ctx, h, name)
	if err != nil {
		return err
	}
	trace, err := a.ReadTrace(path)
	if err != nil {
		return err
	}
	var out importedClaims
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		out, err = a.importClaims(ctx, h, p, trace)
		return err
	})
	if err != nil {
		return fmt.Errorf("importing claims of pool %s: %w", name, err)
	}
	if err := a.announceImport(ctx, h, name); err != nil {
		return err
	}
	for _, n := range trace.Notes {
		fmt.Fprintf(a.Stderr, "note: %s\n", n)
	}
	if a.Flags.Output != base.AsTable && a.Flags.Output != "" {
		return a.PrintEncoded(out)
	}
	_, err = fmt.Fprintf(a.Stdout, "%d claims imported into the record of pool %s, which begins at %s\n",
		out.Imported, name, out.Since.Format(time.RFC3339))
	return err
}

// importClaims adds the claims to the record on the hub. A conflict means that hotspare has written
// the record meanwhile.
func (a commands) importClaims(ctx context.Context, h *base.Hub, p *hivev1.ClusterPool, trace simulate.Trace) (importedClaims, error) {
	now := a.Clock.Now().UTC()
	cm := &corev1.ConfigMap{}
	err := h.Get(ctx, h.ObjectKey(record.ConfigMapName(p.Name)), cm)
	exists := err == nil
	r := &record.Record{Details: record.Details{Since: now, Until: now}}
	switch {
	case apierrors.IsNotFound(err):
		cm = newRecordMap(p)
	case err != nil:
		return importedClaims{}, fmt.Errorf("reading the record: %w", err)
	case cm.Labels[v1alpha1.LabelDemandRecord] != p.Name:
		return importedClaims{}, fmt.Errorf("ConfigMap %s is not a record of claims: it has no label %s=%s: delete it, or set the label if it is a record",
			cm.Name, v1alpha1.LabelDemandRecord, p.Name)
	default:
		if r, err = record.Decode(cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey], now); err != nil {
			return importedClaims{}, fmt.Errorf("the record in ConfigMap %s cannot be used: %w", cm.Name, err)
		}
	}
	out, err := addImported(r, trace, now)
	if err != nil {
		return out, err
	}
	out.Pool = p.Name
	claims, details, err := r.Encode(now)
	if err != nil {
		return out, err
	}
	cm.BinaryData, cm.Data = setKey(cm.BinaryData, record.ClaimsKey, claims), setKey(cm.Data, record.DetailsKey, details)
	if exists {
		return out, h.Update(ctx, cm)
	}
	err = h.Create(ctx, cm)
	if apierrors.IsAlreadyExists(err) { // hotspare was faster
		err = apierrors.NewConflict(corev1.Resource("configmaps"), cm.Name, err)
	}
	return out, err
}

func setKey[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// newRecordMap returns an empty record, as the controller of policies creates it.
func newRecordMap(p *hivev1.ClusterPool) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: record.ConfigMapName(p.Name), Labels: map[string]string{v1alpha1.LabelDemandRecord: p.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterPool", Name: p.Name, UID: p.UID}},
	}}
}

// unobserved is the time between the last imported claim and the first recorded time that counts as one in
// which nobody looked.
const unobserved = 24 * time.Hour

// addImported adds the claims from before recording began to a record.
func addImported(r *record.Record, trace simulate.Trace, now time.Time) (importedClaims, error) {
	times := make([]time.Time, len(trace.Claims))
	for i, c := range trace.Claims {
		times[i] = time.Unix(c.Arrived, 0).UTC()
	}
	began := r.Since.UTC()
	out := importedClaims{Before: began}
	if first := times[0]; !first.Before(began.Truncate(15 * time.Minute)) {
		return out, fmt.Errorf("all claims of the file are from %s or later, and the record has the claims from %s on: export earlier ones",
			first.Format(time.RFC3339), began.Format(time.RFC3339))
	}
	if out.Imported = r.Demand.AddImported(times, began, now); out.Imported == 0 {
		return out, fmt.Errorf("all claims of the file from before %s are older than two years: export later ones", began.Format(time.RFC3339))
	}
	out.LeftOut = len(times) - out.Imported
	last := began
	for _, at := range times {
		if at.Before(began) {
			last = at
		}
	}
	if began.Sub(last) > unobserved {
		r.Demand.AddGap(last, began)
	}
	r.Since = r.Demand.Bins()[0].Begin()
	out.Since = r.Since
	return out, nil
}

// announceImport has the controller read the record again.
func (a commands) announceImport(ctx context.Context, h *base.Hub, pool string) error {
	var policy v1alpha1.PoolPolicy
	err := h.Get(ctx, h.ObjectKey(pool), &policy)
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(a.Stderr, "note: pool %s has no PoolPolicy: create one of that name, which uses the record\n", pool)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading PoolPolicy %s: %w", pool, err)
	}
	before := policy.DeepCopy()
	policy.Annotations = setKey(policy.Annotations, v1alpha1.AnnotationClaimsImported, a.Clock.Now().UTC().Format(time.RFC3339Nano))
	if err := h.Patch(ctx, &policy, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("setting annotation %s of PoolPolicy %s: %w", v1alpha1.AnnotationClaimsImported, pool, err)
	}
	return nil
}
