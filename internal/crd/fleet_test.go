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

// readers decode each kind of the fleet, and return what could not be decoded.
var readers = map[string]func([]byte) error{
	"InstanceType":    whole[v1alpha1.InstanceType],
	"FleetRegion":     whole[v1alpha1.FleetRegion],
	"DataPlane":       whole[v1alpha1.DataPlane],
	"ServiceInstance": whole[v1alpha1.ServiceInstance],
}

func whole[T any](raw []byte) error {
	var o T
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	return any(&o).(interface{ Whole() error }).Whole()
}

// Tests the schemas of the fleet with bad values, and that whatever they accept can be decoded.
func TestFleetWithBadInput(t *testing.T) {
	const (
		size   = `"sizes":[{"name":"x1","units":1}]`
		source = `"clusterSource":{"claim":{"pools":[{"poolRef":{"name":"p"}}]}}`
		region = `"provider":"aws","region":"us-east-1",` + source
		plane  = `"provider":"aws","region":"us-east-1","instanceTypes":["standard"]`
		order  = `"type":"standard","size":"x1","provider":"aws","region":"us-east-1"`
	)
	types := func(text string) string { return `{` + region + `,"instanceTypes":[` + text + `]}` }
	for name, tc := range map[string]struct{ kind, spec, want string }{
		"a type":                   {"InstanceType", `{` + size + `,"nodesPerUnit":3}`, ""},
		"a fraction of a node":     {"InstanceType", `{` + size + `,"nodesPerUnit":"0.1"}`, ""},
		"units on a node":          {"InstanceType", `{` + size + `,"unitsPerNode":10}`, ""},
		"neither":                  {"InstanceType", `{` + size + `}`, "set exactly one of nodesPerUnit and unitsPerNode"},
		"both":                     {"InstanceType", `{` + size + `,"unitsPerNode":10,"nodesPerUnit":3}`, "set exactly one of nodesPerUnit and unitsPerNode"},
		"no nodes":                 {"InstanceType", `{` + size + `,"nodesPerUnit":0}`, "it is not a number above 0 and up to 1000"},
		"fewer than no nodes":      {"InstanceType", `{` + size + `,"nodesPerUnit":"-3"}`, "it is not a number above 0"},
		"a word for nodes":         {"InstanceType", `{` + size + `,"nodesPerUnit":"three"}`, "nodesPerUnit"},
		"a bare fraction":          {"InstanceType", `{` + size + `,"nodesPerUnit":0.1}`, "nodesPerUnit"},
		"no sizes":                 {"InstanceType", `{"sizes":[],"nodesPerUnit":3}`, "spec.sizes in body should have at least 1 items"},
		"a size of no units":       {"InstanceType", `{"sizes":[{"name":"x1","units":0}],"nodesPerUnit":3}`, "spec.sizes[0].units in body should be greater than or equal to 1"},
		"a size twice":             {"InstanceType", `{"sizes":[{"name":"x1","units":1},{"name":"x1","units":2}],"nodesPerUnit":3}`, "Duplicate value"},
		"a size of other zones":    {"InstanceType", `{"sizes":[{"name":"x1","units":1,"availabilityZones":"Multi"}],"nodesPerUnit":3}`, "availabilityZones of a size contradicts spec.multiZone"},
		"zones that are none":      {"InstanceType", `{"sizes":[{"name":"x1","units":1,"availabilityZones":"Both"}],"nodesPerUnit":3}`, `supported values: "Single", "Multi"`},
		"a size of the same zones": {"InstanceType", `{"multiZone":true,"sizes":[{"name":"x1","units":1,"availabilityZones":"Multi"}],"nodesPerUnit":3}`, ""},
		"min above max":            {"InstanceType", `{` + size + `,"nodesPerUnit":3,"nodePools":[{"platform":"aws","minNodes":4,"maxNodes":3}]}`, "minNodes is above maxNodes"},
		"a platform twice":         {"InstanceType", `{` + size + `,"nodesPerUnit":3,"nodePools":[{"platform":"aws","maxNodes":3},{"platform":"aws","maxNodes":4}]}`, "Duplicate value"},
		"no period":                {"InstanceType", `{"sizes":[{"name":"x1","units":1,"capacity":{"maxDataRetentionPeriod":"14 days"}}],"nodesPerUnit":3}`, "it is not an ISO 8601 period: write P14D"},
		"a period":                 {"InstanceType", `{"sizes":[{"name":"x1","units":1,"capacity":{"maxDataRetentionPeriod":"P14D","ingressPerSec":"50Mi"}}],"nodesPerUnit":3}`, ""},
		"a region":                 {"FleetRegion", `{` + region + `}`, ""},
		"no source":                {"FleetRegion", `{"provider":"aws","region":"a"}`, "spec.clusterSource: Required value"},
		"two sources":              {"FleetRegion", `{"provider":"aws","region":"a","clusterSource":{"claim":{"pools":[{"poolRef":{"name":"p"}}]},"deployment":{"template":{}}}}`, "set exactly one of claim and deployment"},
		"no pools":                 {"FleetRegion", `{"provider":"aws","region":"a","clusterSource":{"claim":{"pools":[]}}}`, "should have at least 1 items"},
		"a cold source":            {"FleetRegion", `{"provider":"aws","region":"a","clusterSource":{"deployment":{"template":{"baseDomain":"example.com"}}}}`, ""},
		"a cold source that installs from an image set": {"FleetRegion", cold(`"provisioning":{"imageSetRef":{"name":"i"},"installConfigSecretRef":{"name":"c"}}`), ""},
		"… and says that it is not installed":           {"FleetRegion", cold(`"installed":false`), ""},
		"a cold source that is there already":           {"FleetRegion", cold(`"installed":true`), "installed cannot be set here"},
		"… with what was made":                          {"FleetRegion", cold(`"clusterMetadata":{"infraID":"x","clusterID":"y","adminKubeconfigSecretRef":{"name":"z"}}`), "clusterMetadata cannot be set here"},
		"… of a pool":                                   {"FleetRegion", cold(`"clusterPoolRef":{"poolName":"p","namespace":"other"}`), "clusterPoolRef cannot be set here"},
		"… of another installer":                        {"FleetRegion", cold(`"clusterInstallRef":{"group":"","version":"v1","kind":"Secret","name":"s"}`), "clusterInstallRef cannot be set here"},
		"… of another name":                             {"FleetRegion", cold(`"clusterName":"other"`), "clusterName cannot be set here"},
		"… that is left behind":                         {"FleetRegion", cold(`"preserveOnDelete":true`), "preserveOnDelete cannot be set here"},
		"… that sleeps":                                 {"FleetRegion", cold(`"powerState":"Hibernating"`), "powerState and hibernateAfter cannot be set here"},
		"… with an installer of one's own":              {"FleetRegion", cold(`"provisioning":{"installerImageOverride":"x"}`), "set imageSetRef to a ClusterImageSet"},
		"… with an image of one's own":                  {"FleetRegion", cold(`"provisioning":{"releaseImage":"x"}`), "set imageSetRef to a ClusterImageSet"},
		"… with a variable for the installer":           {"FleetRegion", cold(`"provisioning":{"installerEnv":[{"name":"A","value":"b"}]}`), "set imageSetRef to a ClusterImageSet"},
		"… with a customization":                        {"FleetRegion", cold(`"provisioning":{"customizationRef":{"name":"x"}}`), "customizationRef cannot be set here"},
		"limits":                                        {"FleetRegion", types(`{"name":"standard","limit":5,"slackUnits":3,"reserved":{"count":2}}`), ""},
		"slack above the limit":                         {"FleetRegion", types(`{"name":"standard","limit":3,"slackUnits":4}`), "spec.instanceTypes[0].slackUnits: Invalid value: slackUnits is above limit: units above the limit cannot be used, so lower slackUnits or raise limit"},
		"slack above no limit":                          {"FleetRegion", types(`{"name":"standard","limit":0,"slackUnits":5}`), "slackUnits is above limit"},
		"a negative limit":                              {"FleetRegion", types(`{"name":"standard","limit":-1}`), "spec.instanceTypes[0].limit in body should be greater than or equal to 0"},
		"a negative slack":                              {"FleetRegion", types(`{"name":"standard","slackUnits":-1}`), "spec.instanceTypes[0].slackUnits in body should be greater than or equal to 0"},
		"a negative reserve":                            {"FleetRegion", types(`{"name":"standard","reserved":{"count":-1}}`), "reserved.count in body should be greater than or equal to 0"},
		"min above max data planes":                     {"FleetRegion", types(`{"name":"standard","minDataPlanes":3,"maxDataPlanes":2}`), "minDataPlanes is above maxDataPlanes: raise"},
		"a type twice":                                  {"FleetRegion", types(`{"name":"a"},{"name":"a"}`), "Duplicate value"},
		"no mode":                                       {"FleetRegion", `{` + region + `,"scaleUp":{"mode":"On"}}`, `supported values: "Auto", "DryRun", "Off"`},
		"none in flight":                                {"FleetRegion", `{` + region + `,"scaleUp":{"maxInFlight":0}}`, "maxInFlight in body should be greater than or equal to 1"},
		"no duration":                                   {"FleetRegion", `{` + region + `,"scaleUp":{"backoff":"1w"}}`, `"1w" is not a duration`},
		"min above max nodes":                           {"FleetRegion", `{` + region + `,"defaultNodePool":{"minNodes":20}}`, "minNodes is above maxNodes"},
		"a data plane":                                  {"DataPlane", `{` + plane + `}`, ""},
		"no types":                                      {"DataPlane", `{"provider":"aws","region":"a","instanceTypes":[]}`, "should have at least 1 items"},
		"one type twice":                                {"DataPlane", `{"provider":"aws","region":"a","instanceTypes":["a","a"]}`, "Duplicate value"},
		"registered, no kubeconfig":                     {"DataPlane", `{` + plane + `,"ownership":"Registered"}`, "a Registered data plane needs clusterRef"},
		"registered":                                    {"DataPlane", `{` + plane + `,"ownership":"Registered","clusterRef":{"kubeconfigSecret":{"name":"k"}}}`, ""},
		"two clusters":                                  {"DataPlane", `{` + plane + `,"clusterRef":{"claim":{"name":"c"},"kubeconfigSecret":{"name":"k"}}}`, "set exactly one of claim, deployment and kubeconfigSecret"},
		"nobody's":                                      {"DataPlane", `{` + plane + `,"ownership":"Mine"}`, `supported values: "Managed", "Registered"`},
		"an instance":                                   {"ServiceInstance", `{` + order + `,"parameters":{"any":{"thing":1}}}`, ""},
		"no size":                                       {"ServiceInstance", `{"type":"standard","provider":"aws","region":"a"}`, "spec.size: Required value"},
		"a data plane without name":                     {"ServiceInstance", `{` + order + `,"dataPlaneName":""}`, "dataPlaneName"},
		"parameters that are a text":                    {"ServiceInstance", `{` + order + `,"parameters":"x"}`, "parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := crd.LoadSchema(tc.kind)
			if err != nil {
				t.Fatal(err)
			}
			var object map[string]any
			raw := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":%q,"metadata":{"name":"n","namespace":"d"},"spec":%s}`, tc.kind, tc.spec)
			if tc.kind == "InstanceType" {
				raw = strings.Replace(raw, `,"namespace":"d"`, "", 1)
			}
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
			stored, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if err := readers[tc.kind](stored); said == "" && err != nil {
				t.Errorf("it was accepted and cannot be read: %v", err)
			}
		})
	}
}

// The defaults of the schema are those in the documentation.
func TestFleetDefaults(t *testing.T) {
	s, err := crd.LoadSchema("FleetRegion")
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{
		"apiVersion": "hotspare.io/v1alpha1", "kind": "FleetRegion", "metadata": map[string]any{"name": "n", "namespace": "d"},
		"spec": map[string]any{
			"provider": "aws", "region": "a", "instanceTypes": []any{map[string]any{"name": "standard", "reserved": map[string]any{"count": int64(1)}}},
			"clusterSource": map[string]any{"deployment": map[string]any{"template": map[string]any{}}},
		},
	}
	if v, err := s.Admit(t.Context(), object); err != nil || len(v.Faults) > 0 {
		t.Fatal(err, v.Faults)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var r v1alpha1.FleetRegion
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %d %s %s; %s %s %s; %d to %d; %s", r.Spec.ScaleUp.Mode, r.Spec.ScaleUp.MaxInFlight, r.Spec.ScaleUp.ProvisionTimeout, r.Spec.ScaleUp.Backoff,
		r.Spec.ScaleDown.Mode, r.Spec.ScaleDown.EmptyFor, r.Spec.ScaleDown.CooldownAfterScaleUp, r.Spec.DefaultNodePool.MinNodes, r.Spec.DefaultNodePool.MaxNodes,
		r.Spec.InstanceTypes[0].Reserved.Size)
	if want := "Auto 1 2h 10m; Auto 10m 0s; 6 to 18; x1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// cold returns a FleetRegion that installs its clusters, with these fields in the template.
func cold(fields string) string {
	return `{"provider":"aws","region":"a","clusterSource":{"deployment":{"template":{"baseDomain":"example.com",` + fields + `}}}}`
}
