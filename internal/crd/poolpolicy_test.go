package crd_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/crd"
	"hotspare.io/hotspare/internal/sizing/policy"
)

// Tests that the schema of PoolPolicy rejects bad values, and that the values that it accepts can be
// decoded.
func TestPoolPoliciesWithBadInput(t *testing.T) {
	s, err := crd.LoadSchema("PoolPolicy")
	if err != nil {
		t.Fatal(err)
	}
	const percentage = "it is not a percentage above 0 and below 100"
	for name, tc := range map[string]struct{ spec, want string }{
		"nothing":                    {`{}`, ""},
		"a share with a sign":        {`{"objective":{"immediate":"99.9%"}}`, ""},
		"a share as a number":        {`{"objective":{"immediate":99}}`, ""},
		"a share of all":             {`{"objective":{"immediate":"100%"}}`, percentage},
		"a share of 100":             {`{"objective":{"immediate":100}}`, percentage},
		"a share of nothing":         {`{"objective":{"immediate":"0%"}}`, percentage},
		"a share in words":           {`{"objective":{"immediate":"most"}}`, percentage},
		"two objectives":             {`{"objective":{"immediate":99,"maxWait":"2m","quantile":99}}`, "keep one of them"},
		"half an objective":          {`{"objective":{"maxWait":"2m"}}`, "set immediate, or maxWait and quantile"},
		"a wait":                     {`{"objective":{"maxWait":"2m","quantile":99}}`, ""},
		"a wait in days":             {`{"objective":{"maxWait":"2d","quantile":99}}`, `"2d" is not a duration`},
		"a minimum above a maximum":  {`{"running":{"min":4,"max":3}}`, "min is above max: lower the one or raise the other"},
		"a maximum of 0":             {`{"running":{"max":0}}`, "should be greater than or equal to 1"},
		"auto without a limit":       {`{"mode":"Auto"}`, "mode Auto needs size.max: set the largest"},
		"auto":                       {`{"mode":"Auto","size":{"max":9}}`, ""},
		"another mode":               {`{"mode":"Always"}`, "Unsupported value"},
		"a budget without prices":    {`{"budget":5}`, ""},
		"a budget of 0":              {`{"budget":0,"prices":{"running":1}}`, "it is 0 or not a number: write a number above 0"},
		"a budget of \"0\"":          {`{"budget":"0","prices":{"running":1}}`, "it is 0 or not a number: write a number above 0"},
		"a budget":                   {`{"budget":"99.5","prices":{"running":"1.2","hibernating":0}}`, ""},
		"a negative price":           {`{"prices":{"running":"1","hibernating":"-1"}}`, "it is not a number of at least 0"},
		"no price of running":        {`{"prices":{"hibernating":"1"}}`, "spec.prices.running: Required value"},
		"a zone that is a path":      {`{"timeZone":"../passwd"}`, "is not a time zone"},
		"an entry without an effect": {`{"calendar":[{"name":"x","start":"2026-01-01"}]}`, "changes nothing: set demand, running or size"},
		"an entry without a name":    {`{"calendar":[{"start":"2026-01-01","running":1}]}`, "name: Required value"},
		"an entry":                   {`{"calendar":[{"name":"x","start":"2026-01-01","rule":"FREQ=YEARLY","demand":"0.1"}]}`, ""},
		"a demand in words":          {`{"calendar":[{"name":"x","start":"2026-01-01","demand":"lots"}]}`, "it is not a number of at least 0"},
		"a demand of a million":      {`{"calendar":[{"name":"x","start":"2026-01-01","demand":1000000}]}`, "it is above 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			raw := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"PoolPolicy","metadata":{"name":"n","namespace":"d"},"spec":%s}`, tc.spec)
			if err := utiljson.Unmarshal([]byte(raw), &object); err != nil {
				t.Fatal(err)
			}
			v, err := s.Admit(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			if len(v.Faults) > 0 {
				said = v.Faults.ToAggregate().Error()
			}
			if !strings.Contains(said, tc.want) || (said == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", said, tc.want)
			}
			if said != "" {
				return
			}
			stored, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var read v1alpha1.PoolPolicy
			if err := json.Unmarshal(stored, &read); err != nil || read.Unreadable != "" {
				t.Fatalf("it was accepted and cannot be read: %v %s", err, read.Unreadable)
			}
			estimated := policy.HubDefaults.WithEstimate(&v1alpha1.EstimatedPrices{Running: "1", Hibernating: "0.1"})
			if _, faults := policy.Parse(read.Spec, estimated); len(faults) > 0 {
				t.Errorf("it was accepted and cannot be used: %v", faults)
			}
			if read.Spec.Mode == "" || read.Spec.TimeZone != "UTC" || read.Status.ObservedGeneration != -1 {
				t.Errorf("the defaults are missing: %+v", read.Spec)
			}
		})
	}
}
