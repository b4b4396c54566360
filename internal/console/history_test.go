package console

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

// newHistoryObjects returns a pool, its policy, and the record of two days: two clusters run and one hibernates, and
// each hour has a claim, of which every fourth waits.
func newHistoryObjects(t *testing.T) []client.Object {
	t.Helper()
	asleep := v1alpha1.Decimal("0.1")
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ci"},
		Spec:       v1alpha1.PoolPolicySpec{TimeZone: "Europe/Berlin", Prices: &v1alpha1.PolicyPrices{Running: "1", Hibernating: &asleep}},
		Status: v1alpha1.PoolPolicyStatus{Month: &v1alpha1.PolicyMonth{
			Month: "2026-03", RunningHours: "120", HibernatingHours: "60", Cost: "126.00", SavedByHibernating: "54", CouldSave: "21.50", SavedByPolicy: "-3",
		}},
	}
	pool := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ci"}, Spec: hivev1.ClusterPoolSpec{Size: 3, RunningCount: 2}}
	return []client.Object{pool, policy, newRecordMap(t, "ci")}
}

func newRecordMap(t *testing.T, pool string) *corev1.ConfigMap {
	t.Helper()
	tr := record.NewTracker(nil)
	var claims []record.Claim
	clusters := []record.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c", State: record.Hibernating}}
	for i := range 2*24*60 + 1 {
		at := noon.Add(time.Duration(i-2*24*60) * time.Minute)
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
	binaryData, data, err := tr.Write(noon)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: record.ConfigMapName(pool), Labels: map[string]string{v1alpha1.LabelDemandRecord: pool}},
		BinaryData: binaryData, Data: data,
	}
}

func TestAPoolHasCharts(t *testing.T) {
	html, err := look(t, nil, "/pools/team/ci", newHistoryObjects(t)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Served at once 75%", "24 claims, waits: median 0s, p90 5m4s, p99 5m4s", "Ran idle 48 hours 24 hibernating",
		"Clusters without a claim, by state", "running idle", "recommended to run", "On average 3 clusters had no claim, and 2 of them ran idle.",
		"Claims in the following hour", "Longest wait, in minutes", "Times are in Europe/Berlin", "Saved by hibernating",
	} {
		if !strings.Contains(text(html), want) {
			t.Errorf("the page lacks %q:\n%s", want, text(html))
		}
	}
	// Each drawing has a title, a description, and a table of the same numbers.
	for _, id := range []string{"clusters", "claims", "waits", "forecast"} {
		for _, want := range []string{
			fmt.Sprintf(`role="img" aria-labelledby="chart-%s-title chart-%s-desc"`, id, id),
			fmt.Sprintf(`<title id="chart-%s-title">`, id), fmt.Sprintf(`<desc id="chart-%s-desc">`, id),
		} {
			if !strings.Contains(html, want) {
				t.Errorf("the page lacks %s", want)
			}
		}
	}
	if got := strings.Count(html, "<details"); got != 4 {
		t.Errorf("%d tables, want 4", got)
	}
	week, err := look(t, nil, "/pools/team/ci?span=week&namespace=team", newHistoryObjects(t)...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text(week), "48 claims") || !strings.Contains(week, `href="?span=day&amp;namespace=team"`) {
		t.Errorf("the week: %s", text(week))
	}
	if strings.Contains(html, "NaN") || strings.Contains(html, "ZgotmplZ") {
		t.Error("the page has a value that the template does not know")
	}
	wantWellFormed(t, html)
}

func TestEstimatedCostsAreMarkedInWords(t *testing.T) {
	objects := newHistoryObjects(t)
	policy := objects[1].(*v1alpha1.PoolPolicy) //nolint:forcetypeassert // see newHistoryObjects
	policy.Spec.Prices = nil
	policy.Status.EstimatedPrices = &v1alpha1.EstimatedPrices{Running: "1", Hibernating: "0.1", Currency: "USD", Basis: "6 machines: an estimate"}
	html, err := look(t, nil, "/pools/team/ci", objects...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"hibernating cluster-hours; prices: 6 machines: an estimate", "Cost this month 25.20 USD (estimated)",
		"Saved by hibernating 10.80 USD (estimated)", // 12 hours of the month, at 0.9 each
		"Recommended counts would save 10.80 USD (estimated)",
	} {
		if !strings.Contains(text(html), want) {
			t.Errorf("the page lacks %q:\n%s", want, text(html))
		}
	}
	policy.Status.EstimatedPrices = &v1alpha1.EstimatedPrices{Basis: "no estimate: platform vsphere has no list prices"}
	html, err = look(t, nil, "/pools/team/ci", objects...)
	if want := "set spec.prices of the PoolPolicy to see costs; no estimate: platform vsphere has no list prices"; err != nil || !strings.Contains(text(html), want) {
		t.Errorf("without an estimate: %v, %s", err, text(html))
	}
}

// wantWellFormed fails the test if the drawings of a page are not XML.
func wantWellFormed(t *testing.T, html string) {
	t.Helper()
	begin := `<svg class="plot"`
	for at := strings.Index(html, begin); at >= 0; at = strings.Index(html, begin) {
		html = html[at:]
		end := strings.Index(html, "<p ")
		d := xml.NewDecoder(strings.NewReader(html[:end]))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("a chart is not XML: %v: %s", err, html[:end])
			}
		}
		html = html[end:]
	}
}

func TestAPoolWithoutHistorySaysWhy(t *testing.T) {
	objects := newHistoryObjects(t)
	foreign, broken := newRecordMap(t, "ci"), newRecordMap(t, "ci")
	foreign.Labels = nil
	broken.Data[record.DetailsKey] = "<script>"
	list := map[string]bool{"clusterpools": true, "clusterclaims": true, "clusterdeployments": true}
	for name, tc := range map[string]struct {
		may     map[string]bool
		objects []client.Object
		want    string
	}{
		"no policy":     {nil, objects[:1], "A PoolPolicy of the same name keeps one"},
		"no record yet": {nil, objects[:2], "The PoolPolicy has recorded nothing yet"},
		"no permission": {list, objects, "You do not have permission to get ConfigMaps in namespace team"},
		"not a record":  {nil, []client.Object{objects[0], foreign}, "is not a record of claims"},
		"unreadable":    {nil, []client.Object{objects[0], broken}, "cannot be used"},
	} {
		html, err := look(t, tc.may, "/pools/team/ci", tc.objects...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text(html), tc.want) || strings.Contains(html, `class="plot"`) || strings.Contains(html, "<script>") {
			t.Errorf("%s: %s", name, text(html))
		}
	}
}

func TestTheOverviewHasTheCostsOfTheMonth(t *testing.T) {
	objects := newHistoryObjects(t)
	html, err := look(t, nil, "/", objects...)
	if err != nil {
		t.Fatal(err)
	}
	if want := "This month 126 54.00 saved by hibernating; recommended counts would save 21.50 more"; !strings.Contains(text(html), want) {
		t.Errorf("the overview lacks %q: %s", want, text(html))
	}
	policy := objects[1].(*v1alpha1.PoolPolicy) //nolint:forcetypeassert // see newHistoryObjects
	other := policy.DeepCopy()
	other.Name = "other"
	policy.Status.EstimatedPrices = &v1alpha1.EstimatedPrices{Running: "1", Hibernating: "0.1", Currency: "USD", Basis: "6 machines: an estimate"}
	if html, err = look(t, nil, "/", objects...); err != nil || !strings.Contains(text(html), "This month 126 (estimated) 54.00 saved by hibernating") {
		t.Errorf("with estimated prices: %v, %s", err, text(html))
	}
	if html, err = look(t, nil, "/", append(objects, other)...); err != nil || !strings.Contains(text(html), "This month 126 by your own prices, 126 USD (estimated for 1 of 2 pools) 54.00 by your own prices, 54.00 USD saved") {
		t.Errorf("with estimated prices and others: %v, %s", err, text(html))
	}
	policy.Status.EstimatedPrices = nil
	policy.Status.Month = &v1alpha1.PolicyMonth{Month: "2026-03", RunningHours: "120", HibernatingHours: "60"}
	if html, err = look(t, nil, "/", objects...); err != nil || !strings.Contains(text(html), "This month 120 running cluster-hours 60 hibernating, 1 pool with a policy") {
		t.Errorf("without prices: %v, %s", err, text(html))
	}
	policy.Status.Month.Month = "2026-02"
	if html, err = look(t, nil, "/", objects...); err != nil || strings.Contains(text(html), "This month") {
		t.Errorf("of an earlier month: %v, %s", err, text(html))
	}
	list := map[string]bool{"clusterpools": true, "clusterclaims": true, "clusterdeployments": true}
	if html, err = look(t, list, "/", objects...); err != nil || strings.Contains(text(html), "This month") {
		t.Errorf("without permission: %v, %s", err, text(html))
	}
}
