package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing/record"
)

// hourly is a trace with a claim each hour, from some days ago on, until some days ago.
func hourly(t *testing.T, from, until int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("created\n")
	for at := now.AddDate(0, 0, -from); at.Before(now.AddDate(0, 0, -until)); at = at.Add(time.Hour) {
		b.WriteString(at.Format(time.RFC3339) + "\n")
	}
	path := filepath.Join(t.TempDir(), "claims.csv")
	write(t, path, b.String())
	return path
}

func (r *rig) record() *record.Record {
	r.t.Helper()
	var cm corev1.ConfigMap
	if err := r.hub.Get(r.t.Context(), client.ObjectKey{Namespace: "default", Name: "dev.demand"}, &cm); err != nil {
		r.t.Fatal(err)
	}
	if cm.Labels[v1alpha1.LabelDemandRecord] != "dev" || len(cm.OwnerReferences) != 1 || cm.OwnerReferences[0].Name != "dev" {
		r.t.Errorf("the record has labels %v and owners %v", cm.Labels, cm.OwnerReferences)
	}
	out, err := record.Decode(cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey], now)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func TestClaimsAreImportedOnce(t *testing.T) {
	policy := &v1alpha1.PoolPolicy{ObjectMeta: aged("default", "dev", time.Hour)}
	conflicts := 0
	r := newRig(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if conflicts++; conflicts == 1 {
			return apierrors.NewConflict(corev1.Resource("configmaps"), o.GetName(), nil)
		}
		return c.Update(ctx, o, opts...)
	}}, append(world(), policy)...)
	if code := r.run("pool", "import-claims", "dev", "--trace", hourly(t, 20, 2)); code != 0 {
		t.Fatal(r.stderr.String())
	}
	if got := r.stdout.String(); !strings.Contains(got, "432 claims imported into the record of pool dev, which begins at 2026-11-01T12:00:00Z") {
		t.Error(got)
	}
	first := r.record()
	if n, gaps := first.Demand.Claims(), first.Demand.Gaps(); n != 432 || len(gaps) != 1 || !first.Since.Equal(now.AddDate(0, 0, -20)) || !first.Until.Equal(now) {
		t.Errorf("%d claims, gaps %v, since %s until %s", n, gaps, first.Since, first.Until)
	}
	var announced v1alpha1.PoolPolicy
	if err := r.hub.Get(t.Context(), client.ObjectKeyFromObject(policy), &announced); err != nil || announced.Annotations[v1alpha1.AnnotationClaimsImported] == "" {
		t.Errorf("the controller does not learn of it: %v, %v", announced.Annotations, err)
	}
	if code := r.run("pool", "import-claims", "dev", "--trace", hourly(t, 20, 2)); code == 0 || !strings.Contains(r.stderr.String(), "all claims of the file are from 2026-11-01T12:00:00Z or later") {
		t.Errorf("again: %d, %s", code, r.stderr.String())
	}
	if code := r.run("pool", "import-claims", "dev", "--trace", hourly(t, 30, 2), "-o", "json"); code != 0 || !strings.Contains(r.stdout.String(), `"imported": 240`) {
		t.Errorf("earlier claims: %d, %s%s", code, r.stdout.String(), r.stderr.String())
	}
	if n := r.record().Demand.Claims(); n != 672 || conflicts != 2 {
		t.Errorf("%d claims, %d updates", n, conflicts)
	}
}

func TestWhyClaimsAreNotImported(t *testing.T) {
	foreign := &corev1.ConfigMap{ObjectMeta: aged("default", "dev.demand", time.Hour)}
	broken := foreign.DeepCopy()
	broken.Labels = map[string]string{v1alpha1.LabelDemandRecord: "dev"}
	old := filepath.Join(t.TempDir(), "old.csv")
	write(t, old, "created\n2020-01-01T00:00:00Z\n")
	for name, c := range map[string]struct {
		objects []client.Object
		args    []string
		want    string
	}{
		"no file":         {nil, nil, "specify the claims with --trace"},
		"a missing file":  {nil, []string{"--trace", "nope.csv"}, "no such file"},
		"claims of 2020":  {nil, []string{"--trace", old}, "older than two years: export later ones"},
		"not a record":    {[]client.Object{foreign}, []string{"--trace", old}, "it has no label hotspare.io/demand-record=dev: delete it, or"},
		"a broken record": {[]client.Object{broken}, []string{"--trace", old}, "the record in ConfigMap dev.demand cannot be used"},
	} {
		r := newRig(t, interceptor.Funcs{}, append(world(), c.objects...)...)
		if code := r.run(append([]string{"pool", "import-claims", "dev"}, c.args...)...); code == 0 || !strings.Contains(r.stderr.String(), c.want) {
			t.Errorf("%s: %d, %s, want %s", name, code, r.stderr.String(), c.want)
		}
	}
	r := newRig(t, interceptor.Funcs{}, world()...)
	if code := r.run("pool", "import-claims", "dev", "--trace", hourly(t, 3, 1)); code != 0 || !strings.Contains(r.stderr.String(), "pool dev has no PoolPolicy: create one of that name") {
		t.Errorf("without a policy: %d, %s", code, r.stderr.String())
	}
}
