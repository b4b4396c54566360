package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

const chart = "../../charts/hotspare"

// language returns a promql with the series that hotspare-manager serves.
func language(t *testing.T) *promql {
	t.Helper()
	q := &promql{kinds: map[string]string{}, labels: map[string]map[string]bool{}, values: values(t)}
	for _, m := range exist(t) {
		f := strings.Split(m, " ")
		labels := map[string]bool{}
		for _, l := range strings.Split(f[2], ",") {
			labels[l] = true
		}
		if f[1] != "histogram" {
			q.kinds[f[0]], q.labels[f[0]] = f[1], labels
			continue
		}
		for _, suffix := range []string{"_count", "_sum", "_bucket"} {
			q.kinds[f[0]+suffix], q.labels[f[0]+suffix] = "counter", maps.Clone(labels)
		}
		q.labels[f[0]+"_bucket"]["le"] = true
	}
	return q
}

// closed lists the labels whose values come from a closed list in hotspare.
var closed = []string{"phase", "state", "status", "power", "source", "outcome", "verb", "reason"}

// values returns the possible values of each metric's closed labels.
func values(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	families, err := touched(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		suffixes := []string{"", "_count", "_sum", "_bucket"}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				for _, suffix := range suffixes {
					key := f.GetName() + suffix + " " + l.GetName()
					if out[key] == nil {
						out[key] = map[string]bool{}
					}
					out[key][l.GetValue()] = true
				}
			}
		}
	}
	maps.DeleteFunc(out, func(key string, _ map[string]bool) bool {
		metric, label, _ := strings.Cut(key, " ")
		// A request's status and verb are defined by HTTP and Kubernetes.
		return !slices.Contains(closed, label) || strings.HasPrefix(metric, "hive_kube_client")
	})
	return out
}

// touched returns a registry with every value of the closed labels.
func touched(t *testing.T) *prometheus.Registry {
	t.Helper()
	m, reg := newMetrics()
	for _, v := range []pool.Verb{pool.Bind, pool.Start, pool.Hibernate, pool.Create, pool.Delete} {
		m.RecordPoolStep(dev, pool.Step{Verb: v})
	}
	for _, c := range []pool.Cause{pool.InstallFailed, pool.PowerFailed, pool.ResumeTimedOut, pool.Unreachable, pool.Unready, pool.Displaced} {
		m.RecordPoolStep(dev, pool.Step{Verb: pool.Delete, Cause: c})
	}
	up := &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at(time.Second), FinishedAt: ptrAt(time.Minute)}
	for _, s := range []hivev1.ClusterDeploymentStatus{{}, {PowerTransition: up}, {InstalledTimestamp: ptrAt(time.Minute)}} {
		after := newClaim()
		runs(after)
		m.RecordClaimWait(newClaim(), after, &hivev1.ClusterDeployment{Status: s}, noon)
	}
	for _, end := range []struct {
		result reconcile.Result
		err    error
	}{{}, {reconcile.Result{RequeueAfter: 1}, nil}, {err: errors.New("no")}} {
		pass := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return end.result, end.err })
		_, _ = m.WrapReconciler("power", pass).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{}}) // the outcome of the reconcile is what is measured
	}
	region := lively()
	for _, r := range []scaling.Reason{scaling.LimitReached, scaling.AtMaximum} {
		region.Types = append(region.Types, v1alpha1.RegionTypeStatus{Name: string(r), Decision: &v1alpha1.ScalingDecision{Reason: string(r)}})
	}
	reg.MustRegister(
		metrics.NewPoolGauges(func() (map[types.NamespacedName]pool.Snapshot, error) {
			return map[types.NamespacedName]pool.Snapshot{dev: busy()}, nil
		}),
		metrics.NewFleetGauges(func() (map[types.NamespacedName]metrics.Fleet, error) {
			return map[types.NamespacedName]metrics.Fleet{use1: region}, nil
		}),
		metrics.NewInventoryGauges(func() (map[types.NamespacedName]metrics.Inventory, error) {
			return map[types.NamespacedName]metrics.Inventory{dev: {}}, nil
		}),
	)
	return reg
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// label matches a label in a legend, or in an annotation of an alert.
var label = regexp.MustCompile(`\{\{ *(?:\$labels\.)?([a-z_]+) *\}\}`)

// shows checks that the text only uses labels of an expression's value.
func shows(t *testing.T, text string, labels map[string]bool) {
	t.Helper()
	for _, m := range label.FindAllStringSubmatch(text, -1) {
		if !labels[m[1]] {
			t.Errorf("%q shows %s, which is not among the labels %v", text, m[1], sorted(labels))
		}
	}
}

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func TestAlertsAskForWhatExistsAndSayWhatToDo(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, chart+"/alerts/hotspare.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	q, seen := language(t), map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			t.Run(r.Alert, func(t *testing.T) {
				if seen[r.Alert] {
					t.Error("there are two of that name")
				}
				seen[r.Alert] = true
				checkAlert(t, q, r)
			})
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d alerts: this test looks in the wrong place", len(seen))
	}
	for _, m := range regexp.MustCompile(`(?m)^## (Hotspare.+)$`).FindAllStringSubmatch(read(t, "../../docs/operate/alerts.md"), -1) {
		if !seen[m[1]] {
			t.Errorf("docs/operate/alerts.md tells of %s, which does not exist", m[1])
		}
	}
}

func checkAlert(t *testing.T, q *promql, r alert) {
	t.Helper()
	labels, err := q.check(r.Expr)
	if err != nil {
		t.Error(err)
	}
	if r.For != "" {
		if _, err := time.ParseDuration(r.For); err != nil {
			t.Error(err)
		}
	}
	if s := r.Labels["severity"]; s != "warning" && s != "critical" {
		t.Errorf("severity is %q", s)
	}
	for _, what := range []string{"summary", "description"} {
		if r.Annotations[what] == "" {
			t.Errorf("there is no %s", what)
		}
		shows(t, r.Annotations[what], labels)
	}
	page, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://hotspare.io/")
	file, anchor, _ := strings.Cut(page, "#")
	if !ok || anchor != strings.ToLower(r.Alert) || !strings.Contains(read(t, "../../"+file), "\n## "+r.Alert+"\n") {
		t.Errorf("runbook_url %q leads nowhere: want a heading ## %s", r.Annotations["runbook_url"], r.Alert)
	}
}

type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Query                  any // an object with the text in query
		}
	}
	Panels []struct {
		ID          int
		Type, Title string
		Description string
		Targets     []struct{ Expr, LegendFormat string }
	}
}

// classifyRequest matches the query with which a dashboard variable gets its values.
var classifyRequest = regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)

func TestDashboardsAskForWhatExists(t *testing.T) {
	files, err := filepath.Glob(chart + "/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no dashboards: %v", err)
	}
	q := language(t)
	for _, file := range files {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		checkVariables(t, q, d, read(t, file))
		ids := map[int]bool{}
		for _, p := range d.Panels {
			t.Run(p.Title, func(t *testing.T) {
				if ids[p.ID] {
					t.Errorf("there are two panels %d", p.ID)
				}
				ids[p.ID] = true
				if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
					t.Error("it says or asks nothing")
				}
				for _, target := range p.Targets {
					labels, err := q.check(target.Expr)
					if err != nil {
						t.Error(err)
					}
					shows(t, target.LegendFormat, labels)
				}
			})
		}
	}
}

func checkVariables(t *testing.T, q *promql, d dashboard, text string) {
	t.Helper()
	have := map[string]bool{"__rate_interval": true, "__all": true}
	for _, v := range d.Templating.List {
		have[v.Name] = true
		if v.Type != "query" {
			continue
		}
		m := classifyRequest.FindStringSubmatch(v.Definition)
		if q, ok := v.Query.(map[string]any); !ok || q["query"] != v.Definition || m == nil {
			t.Errorf("variable %s: %q is not understood", v.Name, v.Definition)
			continue
		}
		if labels, err := q.check(m[1]); err != nil || !labels[m[2]] {
			t.Errorf("variable %s: %v, want %s among the labels %v", v.Name, err, m[2], sorted(labels))
		}
	}
	for _, m := range regexp.MustCompile(`\$\{?([a-z_]+)`).FindAllStringSubmatch(text, -1) {
		if !have[m[1]] {
			t.Errorf("there is no variable $%s", m[1])
		}
	}
}

func TestWhatCannotBeAskedIsRefused(t *testing.T) {
	q := language(t)
	for expr, why := range map[string]string{
		`hotspare_pool_sizes`:                                                     "no metric",
		`sum(1)`:                                                                  "no metric",
		`hotspare_pool_size{pool="a"}`:                                            "no label",
		`hotspare_pool_claims{state="wating"}`:                                    "never",
		`hotspare_pool_claims{state=~"waiting|gone"}`:                             "never",
		`sum by (phase) (hotspare_pool_claims)`:                                   "not among",
		`hotspare_pool_size - hotspare_pool_claims`:                               "never match",
		`hotspare_pool_steps_total > 3`:                                           "is a counter",
		`rate(hotspare_pool_size[5m])`:                                            "takes a range",
		`max(hotspare_pool_size[5m])`:                                             "stands where values should",
		`hotspare_pool_size[5m]`:                                                  "stands where values should",
		`avg_over_time(hotspare_pool_size)`:                                       "takes a range",
		`max_over_time(sum(hotspare_pool_size)[5m])`:                              "needs a step",
		`histogram_quantile(0.9, rate(hotspare_claim_wait_seconds_count[5m]))`:    "needs label le",
		`hotspare_leader{name="other"}`:                                           "no label",
		`hotspare_pool_size hotspare_pool_size`:                                   "not understood",
		`hotspare_pool_size > on (clusterpool_name, region) hotspare_fleet_units`: "not on both sides",
		`sum by (region) (hotspare_fleet_units`:                                   "too early",
	} {
		if _, err := q.check(expr); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", expr, err, why)
		}
	}
}
