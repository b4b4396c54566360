package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/policy"
)

func parse(t *testing.T, text string) (policy.Policy, string) {
	t.Helper()
	var spec v1alpha1.PoolPolicySpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	p, faults := policy.Parse(spec, policy.HubDefaults)
	var out []string
	for _, f := range faults {
		out = append(out, f.Reason+": "+f.Error())
	}
	return p, strings.Join(out, "; ")
}

func TestASpecIsParsed(t *testing.T) {
	p, faults := parse(t, `
mode: Auto
objective: {maxWait: 2m, quantile: "99.5%"}
running: {min: 1, max: 12}
size: {min: 2, max: 40}
budget: 1500
prices: {running: "1.2", hibernating: 0.1}
timeZone: Europe/Berlin
calendar:
- {name: Christmas, start: 2026-12-24, end: 2027-01-01, rule: FREQ=YEARLY, demand: "0.1"}
`)
	if faults != "" {
		t.Fatal(faults)
	}
	if want := (sizing.Objective{Share: 0.995, MaxWait: 2 * time.Minute}); p.Objective != want || !p.Auto {
		t.Errorf("objective %+v, auto %t", p.Objective, p.Auto)
	}
	want := sizing.Limits{
		Running: sizing.Range{Min: 1, Max: 12}, Size: sizing.Range{Min: 2, Max: 40},
		Budget: sizing.Budget{Set: true, Limit: 1500}, Prices: sizing.Prices{Running: 1.2, Hibernating: 0.1},
	}
	if p.Limits != want {
		t.Errorf("limits %+v, want %+v", p.Limits, want)
	}
	// Its times are those of the policy's zone: in UTC it is the 23rd.
	if e := p.Calendar.At(time.Date(2026, 12, 23, 23, 30, 0, 0, time.UTC)); e.DemandFactor() != 0.1 {
		t.Errorf("on Christmas Eve in Berlin: %+v", e)
	}
}

func TestPricesByDepth(t *testing.T) {
	p, faults := parse(t, `prices: {running: 1, hibernating: "0.1", frozen: "0.5", stopped: 0}`)
	prices := p.Limits.Prices
	if faults != "" || prices.AtDepth(cloud.DepthFreeze) != 0.5 || prices.AtDepth(cloud.DepthSuspend) != 0.1 || prices.AtDepth(cloud.DepthStop) != 0 {
		t.Errorf("%+v, %s", prices, faults)
	}
}

func TestASpecWithoutPricesGetsTheEstimate(t *testing.T) {
	const known = `{running: "1.152", hibernating: "0.0789", currency: USD, basis: 6 machines}`
	for name, c := range map[string]struct{ spec, estimate, want string }{
		"an estimate":                     {`{budget: 10}`, known, "1.152 0.0789, estimated: true"},
		"prices of its own":               {`{budget: 10, prices: {running: 2}}`, known, "2 0, estimated: false"},
		"a cluster that sleeps for free":  {`{}`, `{running: "1", hibernating: "0"}`, "1 0, estimated: true"},
		"no estimate, no budget":          {`{}`, `{basis: "no estimate: why"}`, "0 0, estimated: false"},
		"no estimate, and a budget":       {`{budget: 10}`, `{basis: "no estimate: why"}`, `budget "10" needs prices: set prices, such as {running: "1.2", hibernating: "0.1"}; no estimate: why`},
		"an estimate that is not numbers": {`{}`, `{running: lots, hibernating: NaN, basis: x}`, "0 0, estimated: false"},
		"an estimate without end":         {`{}`, `{running: Inf, hibernating: "0", basis: x}`, "0 0, estimated: false"},
	} {
		var spec v1alpha1.PoolPolicySpec
		var estimate v1alpha1.EstimatedPrices
		if err := errors.Join(yaml.UnmarshalStrict([]byte(c.spec), &spec), yaml.UnmarshalStrict([]byte(c.estimate), &estimate)); err != nil {
			t.Fatal(err)
		}
		p, faults := policy.Parse(spec, policy.HubDefaults.WithEstimate(&estimate))
		got := fmt.Sprintf("%g %g, estimated: %t", p.Limits.Prices.Running, p.Limits.Prices.Hibernating, p.HasEstimatedPrices())
		if len(faults) > 0 {
			got = faults[0].Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestAnEmptySpecHasTheDefaults(t *testing.T) {
	p, faults := parse(t, "{}")
	if faults != "" || p.Auto || p.Objective.Share != 0.99 || p.Zone.String() != "UTC" || p.Limits != (sizing.Limits{}) {
		t.Errorf("%+v, %s", p, faults)
	}
}

// The schema refuses most of these, but not on a hub whose CRD is older, and not in a file.
func TestEveryFaultNamesTheFieldTheValueAndTheRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"mode: Always":                 `InvalidMode: mode "Always" is not a mode: use Recommend or Auto`,
		"mode: Auto":                   "InvalidLimits: size.max is missing, and mode Auto needs it: set the largest",
		"objective: {immediate: 100%}": `InvalidObjective: objective.immediate "100%" is not a percentage above 0 and below 100: write 99`,
		"objective: {immediate: NaN}":  `InvalidObjective: objective.immediate "NaN" is not a percentage`,
		"objective: {immediate: 99, maxWait: 2m, quantile: 99}":  "InvalidObjective: objective has both",
		"objective: {quantile: 99}":                              "InvalidObjective: objective is incomplete: write",
		"objective: {}":                                          "InvalidObjective: objective is incomplete: write",
		"objective: {maxWait: 2d, quantile: 99}":                 `InvalidObjective: objective.maxWait "2d" is not a duration: write`,
		"running: {min: 4, max: 3}":                              "InvalidLimits: running.min 4 is above running.max 3: lower the one or raise the other",
		"running: {min: 4}\nsize: {max: 3}":                      "InvalidLimits: running.min 4 is above size.max 3, and only clusters that exist can run",
		"size: {max: 0}":                                         "InvalidLimits: size.max 0 is below 1: use 1 or more, or remove it",
		"size: {min: 2000000000}":                                "InvalidLimits: size.min 2000000000 is above 100000: use a smaller one",
		"size: {min: -1}":                                        "InvalidLimits: size.min -1 is negative: use 0 or more",
		"budget: 0\nprices: {running: 1}":                        `InvalidBudget: budget "0" buys no cluster: use more than 0, or remove it`,
		"budget: 10":                                             `InvalidBudget: budget "10" needs prices: set prices, such as`,
		"budget: many\nprices: {running: 1}":                     `InvalidBudget: budget "many" is not a number above 0: write`,
		"calendar: [{name: x, start: 2026-01-01, demand: lots}]": `InvalidCalendar: calendar[0].demand "lots" is not a number from 0 to 1000: write`,
		"prices: {running: 0}":                                   `InvalidPrices: prices.running "0" is not a number above 0: write`,
		"prices: {running: 1, hibernating: -1}":                  `InvalidPrices: prices.hibernating "-1" is not a number of at least 0: write`,
		"prices: {running: 1, frozen: -1}":                       `InvalidPrices: prices.frozen "-1" is not a number of at least 0: write`,
		"prices: {running: 1, suspended: x}":                     `InvalidPrices: prices.suspended "x" is not a number of at least 0: write`,
		"timeZone: Europe/Belin\ncalendar: [{name: x, start: 2026-01-01, running: 1}]": `InvalidTimeZone: timeZone "Europe/Belin" is not a time zone: use a name`,
		"timeZone: Local": `InvalidTimeZone: timeZone "Local" is not a time zone`,
		"calendar: [{name: x, start: tomorrow, running: 1}]":                      `InvalidCalendar: calendar[0].start "tomorrow" is not a date or time: write`,
		"calendar: [{name: x, start: 2026-01-01, running: 1, rule: FREQ=HOURLY}]": `InvalidCalendar: calendar[0].rule "FREQ=HOURLY" repeats more often than daily: use`,
	} {
		_, faults := parse(t, text)
		if !strings.HasPrefix(faults, want) || strings.Count(faults, "Invalid") != 1 {
			t.Errorf("%s:\n got %s\nwant %s", text, faults, want)
		}
	}
}
