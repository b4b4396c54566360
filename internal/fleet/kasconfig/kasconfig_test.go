package kasconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/kasconfig"
)

// shipped returns the files as they are in kas-fleet-manager.
func shipped(t *testing.T) map[string]kasconfig.File {
	t.Helper()
	out := map[string]kasconfig.File{}
	for _, name := range kasconfig.Names {
		text, err := os.ReadFile(filepath.Join("testdata", "head", name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = kasconfig.File{Name: name, Text: text}
	}
	return out
}

func TestTheShippedFiles(t *testing.T) {
	m, err := kasconfig.Read(shipped(t), kasconfig.Options{Namespace: "fleet"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range m.Types {
		for _, z := range it.Spec.Sizes {
			got = append(got, fmt.Sprintf("%s %s %d %s %s %d", it.Name, z.Name, z.Units, z.AvailabilityZones, z.Capacity.IngressPerSec, z.Capacity.MaxPartitions))
		}
		for _, p := range it.Spec.NodePools {
			_, most, _ := it.Spec.Nodes(p.Platform)
			got = append(got, fmt.Sprintf("%s on %s: %d to %d %s, %d units, multi-zone %t", it.Name, p.Platform, *p.MinNodes, p.MaxNodes, p.MachineType, it.Spec.UnitsOn(most), it.Spec.MultiZone))
		}
	}
	for _, r := range m.Regions {
		got = append(got, fmt.Sprintf("%s/%s %s %s %s %s %+v", r.Namespace, r.Name, r.Spec.Provider, r.Spec.Region, r.Spec.ScaleUp.Mode, r.Spec.ScaleDown.Mode, r.Spec.DefaultNodePool))
		for _, rt := range r.Spec.InstanceTypes {
			got = append(got, fmt.Sprintf("%s %v %d %+v", rt.Name, rt.Limit, rt.SlackUnits, *rt.Reserved))
		}
		for _, p := range r.Spec.ClusterSource.Claim.Pools {
			got = append(got, fmt.Sprintf("pool %s %t", p.PoolRef.Name, p.MultiZone))
		}
	}
	want := []string{
		"standard x1 1 Multi 50Mi 1500", "standard x2 2 Multi 100Mi 3000",
		"standard on aws: 3 to 18 r5.xlarge, 6 units, multi-zone true", "standard on gcp: 3 to 18 custom-4-32768-ext, 6 units, multi-zone true",
		"developer x1 1 Single 1Mi 100",
		"developer on aws: 1 to 3 m5.2xlarge, 30 units, multi-zone false", "developer on gcp: 1 to 3 custom-8-32768, 30 units, multi-zone false",
		"fleet/aws-us-east-1 aws us-east-1 DryRun DryRun {MachineType:m5.2xlarge MinNodes:3 MaxNodes:18}",
		"developer <nil> 0 {Count:0 Size:x1}", "standard <nil> 0 {Count:0 Size:x1}",
		"pool aws-us-east-1 false", "pool aws-us-east-1-multi-zone true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(m.Notes) != 3 {
		t.Errorf("notes: %s", strings.Join(m.Notes, "\n"))
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for name, tt := range map[string]struct{ file, old, new, want string }{
		"an unknown key":          {kasconfig.ProvidersFile, "standard: {}", "standard: {limt: 3}", `supported_providers[0].regions[0].supported_instance_type.standard.limt: 3: unknown key "limt"`},
		"… at the top":            {kasconfig.ScalingFile, "enable_dynamic_data_plane_scale_up", "enable_scale_up", `enable_scale_up: false: unknown key "enable_scale_up"`},
		"… of a size":             {kasconfig.TypesFile, "maxPartitions: 100\n", "maxPartition: 100\n", `supported_instance_types[1].sizes[0].maxPartition: 100: unknown key`},
		"a key that is missing":   {kasconfig.TypesFile, "maxPartitions: 100\n", "\n", `supported_instance_types[1].sizes[0].maxPartitions: nothing: write a whole number of 1 or more`},
		"a type that there isn't": {kasconfig.ProvidersFile, "standard: {}", "premium: {}", `supported_instance_type.premium: an object: type "premium" does not exist: kafka-instance-types-configuration.yaml has standard, developer`},
		"… to keep warm":          {kasconfig.PrewarmingFile, "standard:", "premium:", `premium: an object: type "premium" does not exist`},
		"… with nodes":            {kasconfig.ScalingFile, "      standard: ", "      premium: ", `kafka_workload_per_instance_type.premium: an object: type "premium" does not exist`},
		"a size that there isn't": {kasconfig.PrewarmingFile, "base_streaming_unit_size: x1 \n", "base_streaming_unit_size: x9\n", `developer.base_streaming_unit_size: "x9": type developer has no size "x9": it is one of x1`},
		"slack above the limit":   {kasconfig.ProvidersFile, "standard: {}", "standard: {limit: 3, min_available_capacity_slack_streaming_units: 4}", `standard.min_available_capacity_slack_streaming_units: 4: it is above the limit, 3`},
		"… a limit of 0":          {kasconfig.ProvidersFile, "standard: {}", "standard: {limit: 0, min_available_capacity_slack_streaming_units: 5}", `it is above the limit, 0`},
		"a negative limit":        {kasconfig.ProvidersFile, "standard: {}", "standard: {limit: -1}", `standard.limit: -1: it is below 0`},
		"a negative slack":        {kasconfig.ProvidersFile, "standard: {}", "standard: {min_available_capacity_slack_streaming_units: -2}", `slack_streaming_units: -2: it is below 0`},
		"a negative reserve":      {kasconfig.PrewarmingFile, "num_reserved_instances: 0", "num_reserved_instances: -7", `developer.num_reserved_instances: -7: it is below 0`},
		"min above max":           {kasconfig.ScalingFile, "min_compute_nodes: 1", "min_compute_nodes: 4", `developer.compute_node_autoscaling.min_compute_nodes: 4: it is above max_compute_nodes, 3`},
		"no nodes":                {kasconfig.ScalingFile, "max_compute_nodes: 3\n", "max_compute_nodes: 0\n", `max_compute_nodes: 0: it is below 1`},
		"a fraction":              {kasconfig.ProvidersFile, "standard: {}", "standard: {limit: 1.5}", `standard.limit: 1.5: write a whole number of 0 or more`},
		"a text for a number":     {kasconfig.TypesFile, "maxPartitions: 100\n", "maxPartitions: \"100\"\n", `maxPartitions: "100": write a whole number`},
		"too high a number":       {kasconfig.ProvidersFile, "standard: {}", "standard: {limit: 3000000000}", `standard.limit: 3000000000: it is above 2147483647`},
		"no amount":               {kasconfig.TypesFile, `"1Mi"`, `"1 MB"`, `maxMessageSize: "1 MB": write an amount above 0, such as 50Mi`},
		"a type twice":            {kasconfig.TypesFile, "id: developer", "id: standard", `supported_instance_types[1].id: "standard": the type is listed twice`},
		"a size twice":            {kasconfig.TypesFile, "id: x2", "id: x1", `sizes[1].id: "x1": the size is listed twice`},
		"zones that are none":     {kasconfig.TypesFile, "- single", "- both", `supportedAZModes[0]: "both": write single or multi`},
		"a type of unknown ratio": {kasconfig.TypesFile, "id: developer", "id: mini", `supported_instance_types[1].id: "mini": the number of nodes per streaming unit is unknown: set --nodes-per-unit mini=3`},
		"a provider without":      {kasconfig.ProvidersFile, "name: aws", "name: azure", `compute_machine_per_cloud_provider.azure: nothing: provider-configuration.yaml has this provider`},
		"a type without nodes":    {kasconfig.ScalingFile, "      developer:\n        compute_machine_type: m5.2xlarge\n        compute_node_autoscaling:\n          min_compute_nodes: 1\n          max_compute_nodes: 3\n  gcp", "  gcp", `aws.kafka_workload_per_instance_type.developer: nothing: provider-configuration.yaml offers the type there`},
		"a key twice":             {kasconfig.ProvidersFile, "standard: {}\n          developer: {}", "standard: {}\n          standard: {}", `key "standard" already set in map`},
		"no YAML":                 {kasconfig.ProvidersFile, "supported_providers:", "supported_providers: [", `provider-configuration.yaml: `},
		"a list of providers":     {kasconfig.ProvidersFile, "supported_providers:", "providers:", `unknown key "providers"`},
		"a word for a switch":     {kasconfig.ScalingFile, "scale_up: false", "scale_up: never", `enable_dynamic_data_plane_scale_up: "never": write true or false`},
		"a list for an object":    {kasconfig.ProvidersFile, "standard: {}", "standard: [1]", `standard: a list: write an object`},
	} {
		t.Run(name, func(t *testing.T) {
			files := shipped(t)
			f := files[tt.file]
			changed := strings.Replace(string(f.Text), tt.old, tt.new, 1)
			if changed == string(f.Text) {
				t.Fatalf("%q does not stand in %s", tt.old, tt.file)
			}
			files[tt.file] = kasconfig.File{Name: tt.file, Text: []byte(changed)}
			_, err := kasconfig.Read(files, kasconfig.Options{Namespace: "fleet"})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.file) {
				t.Errorf("got %v\nwant %s: … %s", err, tt.file, tt.want)
			}
		})
	}
}

// Each of these files may be missing or empty; fleet H: a missing file stopped kas-fleet-manager,
// and a broken one was treated as absent.
func TestFilesThatAreNotThere(t *testing.T) {
	for _, name := range kasconfig.Names {
		files := shipped(t)
		delete(files, name)
		m, err := kasconfig.Read(files, kasconfig.Options{Namespace: "fleet"})
		switch {
		case name == kasconfig.TypesFile:
			if err == nil {
				t.Error("without types nothing has a meaning")
			}
		case err != nil:
			t.Errorf("without %s: %v", name, err)
		case name == kasconfig.ProvidersFile && len(m.Regions) > 0:
			t.Error("regions come from nowhere")
		}
	}
	files := shipped(t)
	files[kasconfig.PrewarmingFile] = kasconfig.File{Name: kasconfig.PrewarmingFile, Text: []byte("{}\n")}
	m, err := kasconfig.Read(files, kasconfig.Options{Namespace: "fleet"})
	if err != nil || m.Regions[0].Spec.InstanceTypes[0].Reserved != nil {
		t.Errorf("{} reserves nothing: %v, %+v", err, m.Regions)
	}
	files[kasconfig.PrewarmingFile] = kasconfig.File{Name: kasconfig.PrewarmingFile, Text: []byte("standard: [\n")}
	if _, err := kasconfig.Read(files, kasconfig.Options{}); err == nil {
		t.Error("a broken file is an error")
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	files := shipped(t)
	files[kasconfig.ProvidersFile] = kasconfig.File{Name: "p.yaml", Text: []byte("supported_providers: [{name: aws, regions: [{name: a, supported_instance_type: {premium: {limit: -1, x: 1}}}]}]")}
	_, err := kasconfig.Read(files, kasconfig.Options{})
	for _, want := range []string{"premium: an object: type \"premium\" does not exist", "premium.limit: -1", "premium.x: 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	files := shipped(t)
	f := files[kasconfig.TypesFile]
	files[kasconfig.TypesFile] = kasconfig.File{Name: f.Name, Text: []byte(strings.Replace(string(f.Text), "      - multi\n", "      - multi\n      - single\n", 2))}
	m, err := kasconfig.Read(files, kasconfig.Options{Namespace: "fleet", Pool: "spares", NodesPerUnit: map[string]string{"standard": "1.5"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}
	if diff := cmp.Diff(want, m.Regions[0].Spec.ClusterSource.Claim.Pools); diff != "" {
		t.Error(diff)
	}
	if n := m.Types[0].Spec.UnitsOn(18); n != 12 {
		t.Errorf("18 nodes have room for %d units at 1.5 nodes each", n)
	}
}
