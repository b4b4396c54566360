package crd_test

import (
	"fmt"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"hotspare.io/hotspare/internal/crd"
)

func TestClusterBootstrapsWithBadInput(t *testing.T) {
	s, err := crd.LoadSchema("ClusterBootstrap")
	if err != nil {
		t.Fatal(err)
	}
	object := func(fields string) string {
		return `{"gates":[{"name":"a","type":"Object","object":{"apiVersion":"v1","kind":"Secret","namespace":"d","name":"s","expression":"true"` + fields + `}}]}`
	}
	for name, tc := range map[string]struct{ spec, want string }{
		"a gate":                   {`{"gates":[{"name":"a","type":"NodesReady"}]}`, ""},
		"no gate":                  {`{"gates":[]}`, "should have at least 1 items"},
		"nothing":                  {`{}`, "it has neither steps nor gates: add one of them"},
		"a step":                   {`{"steps":[{"name":"a","manifests":{"objects":[{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"spec":{"any":1}}]}}]}`, ""},
		"a step without an action": {`{"steps":[{"name":"a"}]}`, "set one of manifests, job and chart"},
		"a chart":                  {`{"steps":[{"name":"a","chart":{"archiveFrom":{"configMapRef":{"name":"c"}},"values":{"any":{"thing":[1]}}}}]}`, ""},
		"a chart without archive":  {`{"steps":[{"name":"a","chart":{"namespace":"n"}}]}`, "archiveFrom: Required value"},
		"a chart of two":           {`{"steps":[{"name":"a","chart":{"archiveFrom":{"configMapRef":{"name":"c"},"secretRef":{"name":"s"}}}}]}`, "set either configMapRef or secretRef"},
		"values that are a list":   {`{"steps":[{"name":"a","chart":{"archiveFrom":{"configMapRef":{"name":"c"}},"values":[1]}}]}`, "must be of type object"},
		"a step with two":          {`{"steps":[{"name":"a","job":{"image":"i"},"manifests":{"from":[{"secretRef":{"name":"s"}}]}}]}`, "set one of manifests, job and chart"},
		"a job":                    {`{"steps":[{"name":"a","job":{"image":"i","command":["true"],"clusterAdmin":true,"envFrom":[{"secretRef":{"name":"s"}}]}}]}`, ""},
		"a job without an image":   {`{"steps":[{"name":"a","job":{"command":["true"]}}]}`, "Required value"},
		"a step without objects":   {`{"steps":[{"name":"a","manifests":{}}]}`, "it has no objects: set objects or from"},
		"two steps of one name":    {`{"steps":[{"name":"a","manifests":{"from":[{"secretRef":{"name":"s"}}]}},{"name":"a","manifests":{"from":[{"secretRef":{"name":"s"}}]}}]}`, "Duplicate value"},
		"a source of two kinds":    {`{"steps":[{"name":"a","manifests":{"from":[{"secretRef":{"name":"s"},"configMapRef":{"name":"s"}}]}}]}`, "set either configMapRef or secretRef"},
		"a source of no kind":      {`{"steps":[{"name":"a","manifests":{"from":[{}]}}]}`, "set either configMapRef or secretRef"},
		"a step with no time":      {`{"steps":[{"name":"a","timeout":"0s","manifests":{"from":[{"secretRef":{"name":"s"}}]}}]}`, "it is 0: write a longer time"},
		"another type":             {`{"gates":[{"name":"a","type":"Moon"}]}`, "Unsupported value"},
		"two gates of one name":    {`{"gates":[{"name":"a","type":"NodesReady"},{"name":"a","type":"NodesReady"}]}`, "Duplicate value"},
		"a name with a slash":      {`{"gates":[{"name":"a/b","type":"NodesReady"}]}`, "should match"},
		"an object":                {object(""), ""},
		"a name that is a path":    {strings.Replace(object(""), `"name":"s"`, `"name":".."`, 1), "it is not a name of an object"},
		"a name with a separator":  {strings.Replace(object(""), `"name":"s"`, `"name":"a/b"`, 1), "should match"},
		"a version that is a path": {strings.Replace(object(""), `"apiVersion":"v1"`, `"apiVersion":"../v1/x"`, 1), "should match"},
		"no object":                {`{"gates":[{"name":"a","type":"Object"}]}`, "type Object needs object"},
		"an object of another":     {strings.Replace(object(""), `"type":"Object"`, `"type":"NodesReady"`, 1), "only that type has it"},
		"a pod":                    {`{"gates":[{"name":"a","type":"PodRuns","pod":{"image":"i","command":["true"]}}]}`, ""},
		"no pod":                   {`{"gates":[{"name":"a","type":"PodRuns"}]}`, "type PodRuns needs pod: set pod.image"},
		"a pod of another":         {`{"gates":[{"name":"a","type":"NodesReady","pod":{"image":"i"}}]}`, "remove it"},
		"DNS":                      {`{"gates":[{"name":"a","type":"DNSAnswers"}]}`, ""},
		"DNS with an image":        {`{"gates":[{"name":"a","type":"DNSAnswers","pod":{"image":"i"}}]}`, ""},
		"DNS with a command":       {`{"gates":[{"name":"a","type":"DNSAnswers","pod":{"image":"i","command":["x"]}}]}`, "remove it"},
		"a timeout of 0":           {`{"gateTimeout":"0s","gates":[{"name":"a","type":"NodesReady"}]}`, "it is 0: write a longer time"},
		"a timeout in days":        {`{"gateTimeout":"1d","gates":[{"name":"a","type":"NodesReady"}]}`, "is not a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			var o map[string]any
			raw := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"ClusterBootstrap","metadata":{"name":"n","namespace":"d"},"spec":%s}`, tc.spec)
			if err := utiljson.Unmarshal([]byte(raw), &o); err != nil {
				t.Fatal(err)
			}
			v, err := s.Admit(t.Context(), o)
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
		})
	}
}
