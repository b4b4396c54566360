package hivetypes

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hotsparev1 "hotspare.io/hotspare/api/hive/v1"
)

var update = flag.Bool("update", false, "write the lists of fields again")

// ours are the kinds as hotspare's own types have them.
var ours = map[string]reflect.Type{
	"clusterpools":                    reflect.TypeFor[hotsparev1.ClusterPool](),
	"clusterclaims":                   reflect.TypeFor[hotsparev1.ClusterClaim](),
	"clusterdeployments":              reflect.TypeFor[hotsparev1.ClusterDeployment](),
	"clusterdeploymentcustomizations": reflect.TypeFor[hotsparev1.ClusterDeploymentCustomization](),
	"clusterimagesets":                reflect.TypeFor[hotsparev1.ClusterImageSet](),
	"clusterprovisions":               reflect.TypeFor[hotsparev1.ClusterProvision](),
	"clusterdeprovisions":             reflect.TypeFor[hotsparev1.ClusterDeprovision](),
	"machinepools":                    reflect.TypeFor[hotsparev1.MachinePool](),
}

const fieldsFile = "../../tools/hivefields/fields.txt"

// later are fields that the importable version of Hive lacks, and others have: newer ones,
// and amiID, which its own pages show.
var later = []string{
	"clusterdeployments spec.platform.vsphere.infrastructure any",
	"machinepools spec.platform.aws.amiID string",
}

// TestTheListOfFieldsIsHives compares the list that completes our CRDs with Hive's types:
// every field that our own types keep as it is written, or lack.
func TestTheListOfFieldsIsHives(t *testing.T) {
	want := slices.Clone(later)
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		list(&want, resource, "", shapeOf(ours[resource]), shapeOf(kinds[resource]))
	}
	slices.Sort(want)
	raw, err := os.ReadFile(fieldsFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	head, descriptions, got := parse(string(raw))
	if *update {
		var out strings.Builder
		out.WriteString(head)
		for _, line := range want {
			out.WriteString(strings.TrimSpace(line+" "+descriptions[line]) + "\n")
		}
		if err := os.WriteFile(fieldsFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run this test with -update, then make generate: %s", diff)
	}
}

// parse reads the list: its comments, and the description of each line.
func parse(text string) (head string, descriptions map[string]string, lines []string) {
	descriptions = map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			head += line + "\n"
			continue
		}
		words := strings.SplitN(line, " ", 4)
		short := strings.Join(words[:min(3, len(words))], " ")
		if lines = append(lines, short); len(words) == 4 {
			descriptions[short] = words[3]
		}
	}
	return head, descriptions, lines
}

// list adds what Hive's shape has where ours is open or has nothing.
func list(out *[]string, resource, at string, our, hive *shape) {
	switch {
	case resource == "clusterpools" && at == "spec.platform": // as that of clusterdeployments
	case our.open():
		leaves(out, resource, at, hive)
	case our.Items != nil && hive.Items != nil:
		list(out, resource, at+"[]", our.Items, hive.Items)
	case our.Properties != nil && hive.Properties != nil:
		for _, name := range slices.Sorted(maps.Keys(hive.Properties)) {
			below := our.Properties[name]
			if below == nil {
				below = &shape{}
			}
			list(out, resource, strings.TrimPrefix(at+"."+name, "."), below, hive.Properties[name])
		}
	}
}

// open is whether the shape says nothing.
func (s *shape) open() bool { return reflect.DeepEqual(s, &shape{}) }

// leaves adds the fields of a shape.
func leaves(out *[]string, resource, at string, s *shape) {
	switch {
	case len(s.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			leaves(out, resource, at+"."+name, s.Properties[name])
		}
	case s.Items != nil:
		leaves(out, resource, at+"[]", s.Items)
	case s.Values != nil:
		leaves(out, resource, at+"{}", s.Values)
	case resource == "clusterdeploymentcustomizations": // a patch's value: see free
	default:
		*out = append(*out, fmt.Sprintf("%s %s %s", resource, at, s.word()))
	}
}

// word is the type of a field in the list.
func (s *shape) word() string {
	switch {
	case s.Format == "quantity":
		return "quantity"
	case s.IntOrString:
		return "intOrString"
	case s.open():
		return "any"
	case s.Format == "date-time":
		return "time"
	case s.Format == "duration":
		return "duration"
	case s.Format == "byte":
		return "bytes"
	case s.Type == "integer":
		return s.Format
	}
	return s.Type
}
