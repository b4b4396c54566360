//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

// createHistory gives a pool the record of eight days, and a policy that continues it.
func (h *hub) createHistory(namespace, pool string, now time.Time) error {
	binaryData, data, err := newRecord(now).Write(now)
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: record.ConfigMapName(pool), Labels: map[string]string{v1alpha1.LabelDemandRecord: pool}},
		BinaryData: binaryData, Data: data,
	}
	raw, err := json.Marshal(cm)
	if err != nil {
		return err
	}
	return h.apply(string(raw) + fmt.Sprintf(`
---
apiVersion: hotspare.io/v1alpha1
kind: PoolPolicy
metadata: {namespace: %s, name: %s}
spec: {timeZone: Europe/Berlin, prices: {running: "1.2", hibernating: "0.1"}}
`, namespace, pool))
}

// newRecord returns what hotspare would have seen of a pool with a working week: three clusters run without a claim,
// and more in working hours.
func newRecord(now time.Time) *record.Record {
	r := rand.New(rand.NewPCG(7, 7))
	t := record.NewTracker(nil)
	var claims []record.Claim
	const step = 5 * time.Minute
	resuming, installing := 0, 0
	for at := now.Add(-8 * 24 * time.Hour); !at.After(now); at = at.Add(step) {
		rate := 0.15
		if at.Weekday()%6 != 0 {
			x := (float64(at.Hour()) + float64(at.Minute())/60 - 13) / 4
			rate += 5 * math.Exp(-x*x)
		}
		wanted := int(math.Ceil(rate * 0.9))
		resuming, installing = max(resuming-1, 0), max(installing-1, 0)
		if r.Float64() < rate/12 {
			c := record.Claim{ID: at.String(), Created: at, Running: at, AtOnce: true}
			if r.Float64() < 0.03 {
				c.AtOnce, c.Running = false, at.Add(time.Duration(60+r.IntN(400))*time.Second)
			}
			claims = append(claims, c)
			resuming, installing = 1, 8
		}
		// Nobody looked for some hours.
		if age := now.Sub(at); age > 60*time.Hour && age < 65*time.Hour {
			continue
		}
		pool := sizing.Setting{Running: 4, Size: 9}
		states := make([]record.Cluster, 0, pool.Size)
		for i := range pool.Size {
			c := record.Cluster{Name: fmt.Sprint(i), State: record.Hibernating}
			switch {
			case i < pool.Running-resuming:
				c.State = record.Running
			case i < pool.Running:
				c.State = record.Resuming
			case i == pool.Size-1 && installing > 0:
				c.State = record.Installing
			}
			states = append(states, c)
		}
		t.Observe(record.Objects{Now: at, Claims: claims, Clusters: states}, sizing.Objective{Share: 0.99}, "Europe/Berlin")
		f := &sizing.Forecast{Mean: rate, High: int(math.Ceil(rate + 1.6*math.Sqrt(rate))), Low: int(max(rate-1.6*math.Sqrt(rate), 0))}
		t.Note(record.Note{Pool: pool, Recommended: sizing.Setting{Running: wanted, Size: 8}, Static: pool, Computed: true, Forecast: f}, at)
		if len(claims) > 50 {
			claims = claims[len(claims)-50:]
		}
	}
	return &t.Record
}

func TestChartsOfAPool(t *testing.T) {
	h := sharedDemoHub(t)
	if err := h.createHistory("default", "dev", time.Now()); err != nil {
		t.Fatal(err)
	}
	p := signedIn(t, h)
	for name, path := range map[string]string{"pool-day": "/pools/default/dev", "pool-week": "/pools/default/dev?span=week"} {
		t.Run(name, func(t *testing.T) {
			p.TB = t
			p.checkPage(name, path, "Clusters without a claim, by state", "Claims in the following hour", "Saved by hibernating")
		})
	}
	p.TB = t
	p.visit("/pools/default/dev?span=week")
	p.waitForText("Last week")
	// The table of a chart opens, and stays open when the page changes.
	p.runActions("opening a table", chromedp.Click("#chart-clusters summary", chromedp.ByQuery))
	p.waitUntil("the table is open", `document.querySelector("#chart-clusters details").open && document.querySelector("#chart-clusters td").offsetWidth > 0`)
	p.waitUntil("each drawing has a name",
		`[...document.querySelectorAll("svg.plot")].every(e => document.getElementById(e.getAttribute("aria-labelledby").split(" ")[0]).textContent)`)
}
