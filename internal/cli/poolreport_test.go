package cli

import (
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

func newReportPool(name string) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: hivev1.ClusterPoolSpec{Size: 3, RunningCount: 2}}
}

func newReportPolicy(name string) *v1alpha1.PoolPolicy {
	asleep := v1alpha1.Decimal("0.1")
	return &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1alpha1.PoolPolicySpec{Prices: &v1alpha1.PolicyPrices{Running: "1", Hibernating: &asleep}},
	}
}

// newRecordMap returns the record of two days until now: two clusters run and one hibernates, at depth stop or depth, one less is
// recommended to run, and a claim arrives each hour, of which every fourth waits.
func newRecordMap(t *testing.T, name string, depth ...cloud.Depth) *corev1.ConfigMap {
	t.Helper()
	tr := record.NewTracker(nil)
	var claims []record.Claim
	clusters := []record.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c", State: record.Hibernating, Depth: append(depth, cloud.DepthStop)[0]}}
	for i := range 2*24*60 + 1 {
		at := now.Add(time.Duration(i-2*24*60) * time.Minute)
		if i%60 == 15 {
			c := record.Claim{ID: fmt.Sprint(i), Created: at, Running: at, AtOnce: true}
			if i/60%4 == 0 {
				c.AtOnce, c.Running = false, at.Add(5*time.Minute)
			}
			claims = append(claims, c)
		}
		tr.Observe(record.Objects{Now: at, Claims: claims, Clusters: clusters}, sizing.Objective{Share: 0.99}, "UTC")
		tr.Note(record.Note{
			Pool: sizing.Setting{Running: 2, Size: 3}, Recommended: sizing.Setting{Running: 1, Size: 3}, Static: sizing.Setting{Running: 2, Size: 3},
			Computed: true, Forecast: &sizing.Forecast{Mean: 1.2, High: 3},
		}, at)
	}
	binaryData, data, err := tr.Write(now)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: record.ConfigMapName(name), Labels: map[string]string{v1alpha1.LabelDemandRecord: name}},
		BinaryData: binaryData, Data: data,
	}
}

func TestAReportOfAPool(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, newReportPool("ci"), newReportPolicy("ci"), newRecordMap(t, "ci"))
	if code := r.run("pool", "report", "ci"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	want := `Pool        default/ci
Time        2026-11-19T12:00:00Z to 2026-11-21T12:00:00Z, with clusters recorded for 48 hours
Claims      48: 36 at once (75%), 12 waited
Waits       median 0s, p90 5m4s, p99 5m4s, longest 5m4s
Objective   99% promised, 75% seen
Forecast    1.2 claims an hour expected, 1 seen; the 90% band was right in 100% of the hours
Now         no clusters

UNCLAIMED      CLUSTER-HOURS   SHARE   COST
running idle   96.0            67%     96.00
resuming       0.0             0%      0.00
installing     0.0             0%      0.00
other          0.0             0%      0.00
hibernating    48.0            33%     4.80
total          144.0           100%    101

Saved by hibernating   43.20, compared with running all clusters
You could have saved   43.20, with the counts recommended at each moment, according to the record; waits would have been different: to simulate them, run hotspare simulate --from-hub ci
This month             101 since 2026-11-01, and 43.20 saved by hibernating
`
	if got := r.stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	code := r.run("pool", "report", "ci", "--since", "6h", "--prices", "running=100")
	if got := r.stdout.String(); code != 0 || !strings.Contains(got, "Claims      6: ") || !strings.Contains(got, "1200") {
		t.Errorf("six hours at other prices: exit code %d\n%s%s", code, r.stdout.String(), r.stderr.String())
	}
}

func TestAReportSaysThatPricesAreEstimated(t *testing.T) {
	policy := newReportPolicy("ci")
	policy.Spec.Prices = nil
	policy.Status.EstimatedPrices = &v1alpha1.EstimatedPrices{Running: "1.152", Hibernating: "0.0789", Currency: "USD", Basis: "6 machines: an estimate"}
	r := newRig(t, interceptor.Funcs{}, newReportPool("ci"), policy, newRecordMap(t, "ci"))
	if code := r.run("pool", "report", "ci"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	want := `Pool        default/ci
Time        2026-11-19T12:00:00Z to 2026-11-21T12:00:00Z, with clusters recorded for 48 hours
Claims      48: 36 at once (75%), 12 waited
Waits       median 0s, p90 5m4s, p99 5m4s, longest 5m4s
Objective   99% promised, 75% seen
Forecast    1.2 claims an hour expected, 1 seen; the 90% band was right in 100% of the hours
Now         no clusters
Prices      estimated: 1.152 USD an hour for a cluster that runs, 0.0789 for one that hibernates; 6 machines: an estimate

UNCLAIMED      CLUSTER-HOURS   SHARE   ESTIMATED COST
running idle   96.0            67%     111
resuming       0.0             0%      0.00
installing     0.0             0%      0.00
other          0.0             0%      0.00
hibernating    48.0            33%     3.79
total          144.0           100%    114

Saved by hibernating   51.51 USD (estimated), compared with running all clusters
You could have saved   51.51 USD (estimated), with the counts recommended at each moment, according to the record; waits would have been different: to simulate them, run hotspare simulate --from-hub ci
This month             114 USD (estimated) since 2026-11-01, and 51.51 USD (estimated) saved by hibernating
`
	if got := r.stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for args, estimated := range map[string]bool{"": true, "--prices running=1": false} {
		code := r.run(append([]string{"pool", "report", "ci", "-o", "json"}, strings.Fields(args)...)...)
		if got := r.stdout.String(); code != 0 || strings.Contains(got, `"estimatedPrices"`) != estimated || strings.Contains(got, `"basis": "6 machines: an estimate"`) != estimated {
			t.Errorf("%q: exit code %d\n%s", args, code, got)
		}
	}
}

func TestAReportHasThePriceOfEachDepth(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, newReportPool("ci"), newReportPolicy("ci"), newRecordMap(t, "ci", cloud.DepthFreeze))
	code := r.run("pool", "report", "ci", "--prices", "running=1,hibernating=0.1,frozen=0.5")
	got := r.stdout.String()
	for _, want := range []string{
		"hibernating         48.0            33%     24.00\n", "  of which frozen   48.0            33%     24.00\n", "total               144.0           100%    120\n",
		"Saved by hibernating   24.00, compared", "This month             120 since",
	} {
		if code != 0 || !strings.Contains(got, want) {
			t.Fatalf("exit code %d, no %q in\n%s%s", code, want, got, r.stderr.String())
		}
	}
	if code := r.run("pool", "report", "ci", "--prices", "running=1,asleep=0.1"); code == 0 || !strings.Contains(r.stderr.String(), `"asleep" is not running, hibernating, frozen`) {
		t.Errorf("a price that does not exist: exit code %d, %s", code, r.stderr.String())
	}
}

func TestReportsOfAllPoolsForPrograms(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, newReportPool("ci"), newReportPolicy("ci"), newRecordMap(t, "ci"), newReportPool("dev"), newReportPool("new"), newReportPolicy("new"))
	if code := r.run("pool", "report", "-o", "json"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	var got struct {
		Pools []struct {
			Pool, Source string
			Claims       struct{ Total, AtOnce int }
			Hours        struct{ RunningIdle float64 }
			Costs        *struct{ Total, CouldSave float64 }
			Missing      []string
		}
	}
	if err := json.Unmarshal([]byte(r.stdout.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pools) != 3 {
		t.Fatalf("%+v", got)
	}
	ci, dev, fresh := got.Pools[0], got.Pools[1], got.Pools[2]
	if ci.Source != "record" || ci.Claims.Total != 48 || ci.Hours.RunningIdle != 96 || ci.Costs == nil || len(ci.Missing) != 0 {
		t.Errorf("%+v", ci)
	}
	if dev.Source != "objects" || dev.Costs != nil || len(dev.Missing) != 1 || !strings.Contains(dev.Missing[0], "create a PoolPolicy dev") {
		t.Errorf("%+v", dev)
	}
	if fresh.Source != "objects" || len(fresh.Missing) != 1 || !strings.Contains(fresh.Missing[0], "RecordUsable") {
		t.Errorf("%+v", fresh)
	}
}

func TestAReportSaysWhatIsMissing(t *testing.T) {
	policy := newReportPolicy("ci")
	policy.Spec.Prices = nil
	unpriced := policy.DeepCopy()
	unpriced.Status.EstimatedPrices = &v1alpha1.EstimatedPrices{Basis: "no estimate: platform vsphere has no list prices"}
	claim := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "dev"},
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		args    []string
		want    []string
	}{
		"prices": {
			[]client.Object{newReportPool("ci"), policy, newRecordMap(t, "ci")},
			[]string{"ci"},
			[]string{"Missing: costs: set spec.prices of the PoolPolicy, or use --prices"},
		},
		"an estimate": {
			[]client.Object{newReportPool("ci"), unpriced, newRecordMap(t, "ci")},
			[]string{"ci"},
			[]string{"or use --prices running=1.2,hibernating=0.1; no estimate: platform vsphere has no list prices.\n"},
		},
		"a record":      {[]client.Object{newReportPool("dev"), claim}, []string{"dev"}, []string{"Claims   1\n", "1 claim waiting", "create a PoolPolicy dev with an empty spec"}},
		"older numbers": {[]client.Object{newReportPool("ci"), policy, newOldRecordMap(t)}, []string{"ci", "--since", "20d"}, []string{"they are kept for eight days"}},
	} {
		r := newRig(t, interceptor.Funcs{}, tc.objects...)
		if code := r.run(append([]string{"pool", "report"}, tc.args...)...); code != 0 {
			t.Errorf("%s: exit code %d: %s", name, code, r.stderr.String())
		}
		for _, w := range tc.want {
			if !strings.Contains(r.stdout.String(), w) {
				t.Errorf("%s: it lacks %q:\n%s", name, w, r.stdout.String())
			}
		}
	}
}

// newOldRecordMap returns the record of a pool since a month, without quarters: an earlier version has written it.
func newOldRecordMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	tr := record.NewTracker(nil)
	for i := range 31 * 24 {
		tr.Observe(record.Objects{Now: now.Add(time.Duration(i-31*24+1) * time.Hour)}, sizing.Objective{Share: 0.99}, "UTC")
	}
	binaryData, data, err := tr.Write(now)
	if err != nil {
		t.Fatal(err)
	}
	delete(binaryData, record.QuartersKey)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: record.ConfigMapName("ci"), Labels: map[string]string{v1alpha1.LabelDemandRecord: "ci"}},
		BinaryData: binaryData, Data: data,
	}
}

func TestChartsOfAReport(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, newReportPool("ci"), newReportPolicy("ci"), newRecordMap(t, "ci"), newReportPool("dev"))
	folder := t.TempDir()
	for _, name := range []string{"ci.svg", "ci.png"} {
		if code := r.run("pool", "report", "ci", "--plot", filepath.Join(folder, name)); code != 0 {
			t.Fatalf("%s: exit code %d: %s", name, code, r.stderr.String())
		}
	}
	raw, err := os.ReadFile(filepath.Join(folder, "ci.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		"Pool default/ci", "Clusters without a claim, by state", "running idle", "hibernating", "Longest wait", "expected", "On average 3 clusters had no claim",
	} {
		if !strings.Contains(string(raw), word) {
			t.Errorf("it lacks %q", word)
		}
	}
	f, err := os.Open(filepath.Join(folder, "ci.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
	if code := r.run("pool", "report", "dev", "--plot", filepath.Join(folder, "dev.png")); code == 0 || !strings.Contains(r.stderr.String(), "create a PoolPolicy dev") {
		t.Errorf("without a record: exit code %d, %s", code, r.stderr.String())
	}
}

func TestBadFlagsOfAReportAreExplainedBeforeAnyWork(t *testing.T) {
	r := newRig(t, interceptor.Funcs{})
	for args, want := range map[string]string{
		"ci --plot a.jpg":       `--plot: "a.jpg" is not the name of an SVG or PNG file: use one that ends in .svg or .png`,
		"--plot a.png":          "--plot draws one pool: name it",
		"ci --since yesterday":  `--since "yesterday" is not a duration`,
		"ci --since 1s":         `--since "1s" is not a duration from 15m`,
		"ci --since NaNd":       `--since "NaNd" is not a duration`,
		"ci --since -3d":        `--since "-3d" is not a duration`,
		"ci --prices running=x": `--prices: "running=x" has no price`,
		"ci -o name":            "a report has no name",
		"ci other":              "",
	} {
		if code := r.run(append([]string{"pool", "report"}, strings.Fields(args)...)...); code != 2 || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("%s: exit code %d, %s", args, code, r.stderr.String())
		}
	}
}
