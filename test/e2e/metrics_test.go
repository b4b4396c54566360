package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestMetricsTellOfPools(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	p := fakePool(ns, "counted", 5, 2)
	h.create(t, p)
	h.settled(t, p)
	of := fmt.Sprintf(`clusterpool_name=%q,clusterpool_namespace=%q`, p.Name, ns)
	h.measured(t,
		"hotspare_leader 1",
		"hive_clusterpool_clusterdeployments_assignable{"+of+"} 2",
		"hive_clusterpool_clusterdeployments_standby{"+of+"} 3",
		"hive_clusterpool_clusterdeployments_installing{"+of+"} 0",
		"hive_clusterpool_clusterdeployments_unclaimed{"+of+"} 5",
		"hotspare_pool_size{"+of+"} 5",
		"hotspare_pool_claims{"+of+`,state="waiting"} 0`,
		"hotspare_pool_steps_total{"+of+`,verb="create"} 5`,
		"hotspare_cluster_install_seconds_count{"+of+`,platform="aws"} 5`,
	)

	t.Log("a claim is measured")
	c := claimOn(p, "x")
	h.create(t, c)
	h.served(t, c)
	h.measured(t,
		"hive_clusterpool_clusterdeployments_claimed{"+of+"} 1",
		"hive_clusterclaim_assignment_delay_seconds_count{"+of+"} 1",
		"hotspare_claim_wait_seconds_count{"+of+`,source="running"} 1`,
		"hotspare_pool_claims{"+of+`,state="served"} 1`,
		"hive_cluster_deployments_running_transition_seconds_count{cluster_pool_name=",
		`hive_kube_client_requests_total{controller="clusterpool",method="PATCH",resource="clusterdeployments",status="200",verb="patch"}`,
		`hive_controller_reconcile_seconds_count{controller="clusterclaim",outcome="success"}`,
		"go_goroutines ",
	)

	t.Log("B25: a deleted pool has no series")
	h.delete(t, c)
	h.delete(t, p)
	h.gone(t, p)
	eventually(t, "the series of the pool go", func(ctx context.Context) error {
		text, err := h.scrape(ctx, t)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, ns) {
				return fmt.Errorf("there is %s", line)
			}
		}
		return nil
	})
}

func TestMetricsAreForThisMachineOnly(t *testing.T) {
	dir := t.TempDir()
	h := &hub{dir: dir}
	refused(t, h.run(t, "", "up", "--metrics-address", "0.0.0.0:9090"), "could be reached from elsewhere", "127.0.0.1:9090")
	if r := h.run(t, "", "up", "--metrics-address", "9090"); r.code != 2 {
		t.Errorf("a wrong address: exit code %d, want 2: %s", r.code, r.all())
	}
}

// measured waits until a scrape has lines that begin with these.
func (h *hub) measured(t *testing.T, beginnings ...string) {
	t.Helper()
	eventually(t, "the metrics tell", func(ctx context.Context) error {
		text, err := h.scrape(ctx, t)
		if err != nil {
			return err
		}
		for _, b := range beginnings {
			if !strings.Contains("\n"+text, "\n"+b) {
				name, _, _ := strings.Cut(b, "{")
				return fmt.Errorf("no line begins with %s\n%s", b, linesWith(text, name))
			}
		}
		return nil
	})
}

func linesWith(text, name string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// scrape asks where hotspare status says that metrics are.
func (h *hub) scrape(ctx context.Context, t *testing.T) (string, error) {
	t.Helper()
	var status struct {
		Metrics string `json:"metrics"`
	}
	r := h.run(t, "", "status", "-o", "json")
	if r.code != 0 {
		return "", errors.New(r.all())
	}
	if err := json.Unmarshal([]byte(r.out), &status); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, status.Metrics, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, raw)
	}
	return string(raw), err
}
