package crd_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/crd"
)

// Tests the schema of DataPlaneAgent with bad values. Rules that compare with the previous object
// are tested on a hub, in test/e2e.
func TestDataPlaneAgentsWithBadInput(t *testing.T) {
	s, err := crd.LoadSchema("DataPlaneAgent")
	if err != nil {
		t.Fatal(err)
	}
	pool := func(fields string) string { return `{"dataPlaneUID":"u","pools":[{"type":"standard",` + fields + `}]}` }
	instance := func(fields string) string {
		return `{"dataPlaneUID":"u","instances":[{"uid":"1","type":"standard","size":"x1","units":1,"placementID":"p",` + fields + `}]}`
	}
	for name, tc := range map[string]struct{ spec, want string }{
		"the least":                    {`{"dataPlaneUID":"u"}`, ""},
		"no data plane":                {`{}`, "spec.dataPlaneUID: Required value"},
		"an empty data plane":          {`{"dataPlaneUID":""}`, "spec.dataPlaneUID"},
		"reports without end":          {`{"dataPlaneUID":"u","reportEvery":"10ms"}`, "reportEvery is below 1s or above 1h"},
		"no reports":                   {`{"dataPlaneUID":"u","reportEvery":"2h"}`, "reportEvery is below 1s or above 1h"},
		"a pool":                       {pool(`"maxNodes":3,"nodesPerUnit":3`), ""},
		"a pool of shared nodes":       {pool(`"maxNodes":3,"nodesPerUnit":"0.1","nodeRequests":{"cpu":"8","memory":"32Gi"}`), ""},
		"a pool without ratio":         {pool(`"maxNodes":3`), "set exactly one of nodesPerUnit and unitsPerNode"},
		"a pool with two ratios":       {pool(`"maxNodes":3,"nodesPerUnit":3,"unitsPerNode":3`), "set exactly one of nodesPerUnit and unitsPerNode"},
		"a pool below nothing":         {pool(`"maxNodes":-1,"nodesPerUnit":3`), "maxNodes"},
		"an instance":                  {instance(`"namespace":"n","name":"a","parameters":{"owners":["me"]}`), ""},
		"an instance from nowhere":     {instance(`"name":"a"`), "namespace is missing"},
		"a reserved one":               {`{"dataPlaneUID":"u","instances":[{"uid":"reserved-kafka-t-1","name":"reserved-kafka-t-1","reserved":true,"type":"t","size":"x1","units":1,"placementID":"p"}]}`, ""},
		"a reserved one with an id":    {instance(`"name":"reserved-kafka-standard-1","reserved":true`), "the uid of a reserved instance must be its name"},
		"a reserved one by name alone": {instance(`"name":"a","reserved":true`), "reserved-kafka-TYPE-NUMBER"},
		"a reserved one of another":    {instance(`"name":"reserved-kafka-developer-1","reserved":true`), "reserved-kafka-TYPE-NUMBER"},
		"an id that is a path":         {`{"dataPlaneUID":"u","instances":[{"uid":"../1","namespace":"n","name":"a","type":"t","size":"x1","units":1,"placementID":"p"}]}`, "uid"},
		"an instance of no units":      {`{"dataPlaneUID":"u","instances":[{"uid":"1","namespace":"n","name":"a","type":"t","size":"x1","units":0,"placementID":"p"}]}`, "units"},
		"parameters that are a word":   {instance(`"namespace":"n","name":"a","parameters":"x"`), "parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			raw := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"DataPlaneAgent","metadata":{"name":"n","namespace":"d"},"spec":%s}`, tc.spec)
			if err := utiljson.Unmarshal([]byte(raw), &object); err != nil {
				t.Fatal(err)
			}
			v, err := s.Admit(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(v.Faults)
			if (tc.want == "") != (len(v.Faults) == 0) || !strings.Contains(said, tc.want) {
				t.Fatalf("the schema says %s, want %q", said, tc.want)
			}
			if tc.want != "" {
				return
			}
			stored, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var a v1alpha1.DataPlaneAgent
			if err := json.Unmarshal(stored, &a); err != nil || a.Whole() != nil {
				t.Errorf("what was let pass cannot be read: %v, %v", err, a.Whole())
			}
		})
	}
}
