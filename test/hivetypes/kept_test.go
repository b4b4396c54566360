package hivetypes

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFieldsThatHivesTypesLackAreKept lists our fields that a client with Hive's types
// drops when it writes a whole object, with the policy that keeps each.
func TestFieldsThatHivesTypesLackAreKept(t *testing.T) {
	want := []string{
		"clusterclaims status.estimatedReadyTime kept-status",
		"clusterclaims status.observedGeneration kept-status",
		"clusterclaims status.position kept-status",
		"clusterclaims status.priority kept-status",
		"clusterdeploymentcustomizations spec.clusterDeploymentSpecPatches kept-spec",
		"clusterdeploymentcustomizations status.clusterDeploymentRef.* kept-references",
		"clusterdeploymentcustomizations status.clusterPoolRef.* kept-references",
		"clusterdeploymentcustomizations status.observedGeneration kept-status",
		"clusterdeployments spec.machineManagement kept-spec",
		"clusterdeployments spec.platform.capi kept-spec",
		"clusterdeployments spec.platform.exec kept-spec",
		"clusterdeployments spec.platform.local kept-spec",
		"clusterdeployments spec.powerstateTransitionToHibernatingTimeout kept-spec",
		"clusterdeployments spec.powerstateTransitionToRunningTimeout kept-spec",
		"clusterdeployments status.bootstrap kept-status",
		"clusterdeployments status.claimedTimestamp kept-status",
		"clusterdeployments status.gates kept-status",
		"clusterdeployments status.observedGeneration kept-status",
		"clusterdeployments status.powerTransition kept-status",
		"clusterdeprovisions status.observedGeneration kept-status",
		"clusterpools spec.platform.capi kept-spec",
		"clusterpools spec.platform.exec kept-spec",
		"clusterpools spec.platform.local kept-spec",
		"clusterpools spec.powerstateTransitionToHibernatingTimeout kept-spec",
		"clusterpools spec.powerstateTransitionToRunningTimeout kept-spec",
		"clusterpools status.failedStepsTime kept-status",
		"clusterpools status.failedStepsVersion kept-status",
		"clusterpools status.gatesVersion kept-status",
		"clusterpools status.inventory kept-status",
		"clusterpools status.observedGeneration kept-status",
		"clusterpools status.pending kept-status",
		"clusterpools status.plan kept-status",
		"clusterpools status.recipeVersion kept-status",
		"clusterpools status.selector kept-status",
		"clusterpools status.stepsSince kept-status",
		"clusterpools status.stepsVersion kept-status",
		"clusterprovisions status.observedGeneration kept-status",
		"machinepools status.observedGeneration kept-status",
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "admission", "kept-fields.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, line := range want {
		words := strings.Fields(line)
		fields = append(fields, words[0]+" "+words[1])
		_, policy, found := strings.Cut(string(raw), "name: "+words[2]+".hotspare.io\nspec:\n  failurePolicy")
		policy, _, _ = strings.Cut(policy, "\n---\n")
		parts := strings.Split(words[1], ".")
		resource := words[0]
		if parts[0] == "status" {
			resource += "/status"
		}
		if !found || !strings.Contains(policy, resource) || !strings.Contains(policy, parts[1]) {
			t.Errorf("policy %s does not keep %s of %s", words[2], words[1], resource)
		}
	}
	var got []string
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		lacking(&got, resource, "", shapeOf(ours[resource]), shapeOf(kinds[resource]))
	}
	slices.Sort(got)
	if diff := cmp.Diff(fields, slices.Compact(got)); diff != "" {
		t.Errorf("keep each of these in config/admission/kept-fields.yaml: %s", diff)
	}
}

// lacking adds the fields of ours that Hive lacks.
func lacking(out *[]string, resource, at string, our, hive *shape) {
	if our.Items != nil && hive.Items != nil {
		lacking(out, resource, at+"[]", our.Items, hive.Items)
	}
	if hive.Properties == nil {
		return
	}
	for name, below := range our.Properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		switch has := hive.Properties[name]; {
		case has != nil:
			lacking(out, resource, path, below, has)
		case strings.HasSuffix(at, "Ref"):
			*out = append(*out, resource+" "+at+".*")
		default:
			*out = append(*out, resource+" "+path)
		}
	}
}
