package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/internal/metrics"
)

// catcher is a registry that only remembers what was registered.
type catcher struct {
	prometheus.Registerer
	caught []prometheus.Collector
}

func (c *catcher) Register(col prometheus.Collector) error {
	c.caught = append(c.caught, col)
	return nil
}

func (c *catcher) MustRegister(cols ...prometheus.Collector) { c.caught = append(c.caught, cols...) }

// described parses the text of a description, because it has no accessors.
var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// exist returns all metrics: "name type labels".
func exist(t *testing.T) []string {
	t.Helper()
	c := &catcher{}
	metrics.New(c, clocktesting.NewFakePassiveClock(noon))
	c.MustRegister(metrics.NewLeaderGauge(nil), metrics.NewPoolGauges(nil), metrics.NewFleetGauges(nil), metrics.NewInventoryGauges(nil), metrics.NewPolicyGauges(nil))
	var out []string
	for _, col := range c.caught {
		kind := "gauge"
		switch col.(type) {
		case *prometheus.CounterVec:
			kind = "counter"
		case *prometheus.HistogramVec:
			kind = "histogram"
		}
		descriptions := make(chan *prometheus.Desc, 100)
		col.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			m := described.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("cannot read %s", d)
			}
			labels := strings.Split(m[2], ",")
			slices.Sort(labels)
			out = append(out, m[1]+" "+kind+" "+strings.Join(labels, ","))
		}
	}
	slices.Sort(out)
	return out
}

// row matches a row of a table in docs/operate/metrics.md: name, type, labels. POOL stands for the
// two labels that name a pool, REGION for those of a FleetRegion.
var row = regexp.MustCompile("^\\| `((?:hive|hotspare)_[a-z_]+)` \\| (gauge|counter|histogram) \\|([^|]*)\\|")

func TestDocsTellOfEveryMetric(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operate/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(raw)) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var labels []string
		for _, l := range strings.Fields(strings.NewReplacer("`", "", ",", " ").Replace(m[3])) {
			if l == "POOL" {
				labels = append(labels, "clusterpool_namespace", "clusterpool_name")
				continue
			}
			if l == "REGION" {
				labels = append(labels, "namespace", "region")
				continue
			}
			labels = append(labels, l)
		}
		slices.Sort(labels)
		told = append(told, m[1]+" "+m[2]+" "+strings.Join(labels, ","))
	}
	slices.Sort(told)
	if diff := cmp.Diff(exist(t), told); diff != "" {
		t.Errorf("docs/operate/metrics.md (+) differs from what there is (-):\n%s", diff)
	}
}
