package machinepool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

type object = map[string]any

// awsSet is a MachineSet as the installer makes it.
func awsSet(pool, zone string, replicas int64) MachineSet {
	return MachineSet{
		Name: "c-" + pool + "-" + zone, Role: "worker", Replicas: replicas,
		MachineLabels: map[string]string{"machine.openshift.io/cluster-api-machineset": "c-" + pool + "-" + zone},
		Provider: object{
			"ami": object{"id": "ami-1"}, "instanceType": "m5.large",
			"placement":    object{"availabilityZone": zone, "region": zone[:len(zone)-1]},
			"blockDevices": []any{object{"ebs": object{"volumeSize": float64(120), "volumeType": "gp3"}}},
			"subnet":       object{"filters": []any{object{"name": "tag:Name", "values": []any{"c-private-" + zone}}}},
		},
	}
}

// aws is a cluster in two zones.
func aws(pool Pool, edits ...func(*MachineSetSnapshot)) MachineSetSnapshot {
	f := MachineSetSnapshot{Pool: pool, InfraID: "c", Platform: "aws", Sets: []MachineSet{awsSet("worker", "us-east-1a", 2), awsSet("worker", "us-east-1b", 1)}}
	for _, e := range edits {
		e(&f)
	}
	return f
}

func pool(name string, replicas int64) Pool { return Pool{Name: name, Replicas: replicas} }

func scaled(name string, low, high int64) Pool { return Pool{Name: name, Range: &Range{low, high}} }

func has(sets ...MachineSet) func(*MachineSetSnapshot) {
	return func(f *MachineSetSnapshot) { f.Sets = append(f.Sets, sets...) }
}

func says(settings object) func(*MachineSetSnapshot) {
	return func(f *MachineSetSnapshot) { f.Settings = settings }
}

func owned(s MachineSet, pool string) MachineSet { s.Pool = pool; return s }

// shares are the names of MachineSets with what each is to have.
func shares(d Plan) string {
	var out []string
	for _, s := range d.Sets {
		out = append(out, fmt.Sprintf("%s %d (%d-%d)", s.Name, s.Replicas, s.MinReplicas, s.MaxReplicas))
	}
	return strings.Join(out, ", ")
}

func TestSets(t *testing.T) {
	zone := func(names ...any) object { return object{"zones": names} }
	for name, tc := range map[string]struct {
		fleet MachineSetSnapshot
		steps string
	}{
		"a set for each of the workers'":              {aws(pool("p", 3)), "create MachineSet c-p-us-east-1a; create MachineSet c-p-us-east-1b"},
		"the installer's become the worker pool's":    {aws(pool("worker", 3)), "update MachineSet c-worker-us-east-1a; update MachineSet c-worker-us-east-1b"},
		"and are scaled":                              {aws(pool("worker", 4), has(owned(awsSet("worker", "us-east-1c", 1), "worker"))), "update MachineSet c-worker-us-east-1a; update MachineSet c-worker-us-east-1b"},
		"in named zones only":                         {aws(pool("p", 3), says(zone("us-east-1b"))), "create MachineSet c-p-us-east-1b"},
		"in a zone without workers":                   {aws(pool("p", 3), says(zone("us-east-1d"))), "create MachineSet c-p-us-east-1d"},
		"what is in another zone goes":                {aws(pool("p", 1), says(zone("us-east-1b")), has(owned(awsSet("p", "us-east-1a", 1), "p"), owned(awsSet("p", "us-east-1b", 1), "p"))), "delete MachineSet c-p-us-east-1a"},
		"installer's in another zone go, too":         {aws(pool("worker", 1), says(zone("us-east-1b"))), "update MachineSet c-worker-us-east-1b; delete MachineSet c-worker-us-east-1a"},
		"what a user has made stays the user's":       {aws(pool("worker", 3), has(awsSet("worker-gpu", "us-east-1a", 5))), "update MachineSet c-worker-us-east-1a; update MachineSet c-worker-us-east-1b"},
		"another pool's stays that pool's":            {aws(pool("p", 2), has(owned(awsSet("p-q", "us-east-1a", 1), "p-q"))), "create MachineSet c-p-us-east-1a; create MachineSet c-p-us-east-1b"},
		"others' layout is no reason to shrink":       {MachineSetSnapshot{Pool: pool("p", 2), InfraID: "c", Platform: "aws", Sets: []MachineSet{awsSet("worker", "us-east-1a", 1), owned(awsSet("p", "us-east-1a", 1), "p"), owned(awsSet("p", "us-east-1b", 1), "p")}}, ""},
		"half a pool is completed":                    {aws(pool("p", 2), has(owned(awsSet("p", "us-east-1a", 1), "p"))), "create MachineSet c-p-us-east-1b"},
		"one that is going is waited for":             {aws(pool("p", 3), has(owned(awsSet("p", "us-east-1b", 1), "p"), func() MachineSet { s := owned(awsSet("p", "us-east-1a", 1), "p"); s.Deleting = true; return s }())), ""},
		"a pool can be copied when no worker is left": {MachineSetSnapshot{Pool: pool("p", 1), InfraID: "c", Platform: "aws", Sets: []MachineSet{owned(awsSet("q", "us-east-1a", 1), "q")}}, "create MachineSet c-p-us-east-1a"},
		"deleted: all go":                             {aws(Pool{Name: "p", Deleted: true}, has(owned(awsSet("p", "us-east-1a", 1), "p"))), "delete MachineSet c-p-us-east-1a"},
		"deleted: the workers, too":                   {aws(Pool{Name: "worker", Deleted: true}), "delete MachineSet c-worker-us-east-1a; delete MachineSet c-worker-us-east-1b"},
		"deleted: with autoscalers": {aws(Pool{Name: "p", Deleted: true}, func(f *MachineSetSnapshot) {
			f.Scalers = []MachineAutoscaler{{Name: "c-p-x", Pool: "p"}, {Name: "c-worker-us-east-1a"}}
		}), "delete MachineAutoscaler c-p-x"},
		"autoscaled": {aws(scaled("p", 2, 5)), "create MachineSet c-p-us-east-1a; create MachineSet c-p-us-east-1b; create ClusterAutoscaler default; set MachineAutoscaler c-p-us-east-1a; set MachineAutoscaler c-p-us-east-1b"},
		"autoscaled already": {aws(scaled("p", 2, 5), has(owned(awsSet("p", "us-east-1a", 3), "p"), owned(awsSet("p", "us-east-1b", 1), "p")), func(f *MachineSetSnapshot) {
			f.Autoscaling = true
			f.Scalers = []MachineAutoscaler{{"c-p-us-east-1a", "p", Range{1, 3}}, {"c-p-us-east-1b", "p", Range{1, 2}}}
		}), ""},
		"autoscaled, outside of the bounds": {aws(scaled("p", 2, 5), has(owned(awsSet("p", "us-east-1a", 9), "p"), owned(awsSet("p", "us-east-1b", 0), "p")), func(f *MachineSetSnapshot) {
			f.Autoscaling = true
			f.Scalers = []MachineAutoscaler{{"c-p-us-east-1a", "p", Range{1, 3}}, {"c-p-us-east-1b", "p", Range{1, 2}}}
		}), "update MachineSet c-p-us-east-1a; update MachineSet c-p-us-east-1b"},
		"autoscaled no more":                            {aws(pool("p", 2), has(owned(awsSet("p", "us-east-1a", 1), "p"), owned(awsSet("p", "us-east-1b", 1), "p")), func(f *MachineSetSnapshot) { f.Scalers = []MachineAutoscaler{{"c-p-us-east-1a", "p", Range{1, 3}}} }), "delete MachineAutoscaler c-p-us-east-1a"},
		"a second pool of one name has nothing to have": {aws(Pool{Name: "worker", DuplicateOf: "first", Deleted: true}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(DecideMachineSets(tc.fleet)); got != tc.steps {
				t.Errorf("got %q, want %q", got, tc.steps)
			}
		})
	}
}

func TestSharesOfReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		fleet MachineSetSnapshot
		want  string
		sum   int64
	}{
		"the first gets more":     {aws(pool("p", 3)), "c-p-us-east-1a 2 (2-2), c-p-us-east-1b 1 (1-1)", 3},
		"none":                    {aws(pool("p", 0)), "c-p-us-east-1a 0 (0-0), c-p-us-east-1b 0 (0-0)", 0},
		"autoscaled":              {aws(scaled("p", 3, 7)), "c-p-us-east-1a 2 (2-4), c-p-us-east-1b 1 (1-3)", 3},
		"what is scaled stays so": {aws(scaled("worker", 0, 8)), "c-worker-us-east-1a 2 (0-4), c-worker-us-east-1b 1 (0-4)", 3},
	} {
		t.Run(name, func(t *testing.T) {
			d := DecideMachineSets(tc.fleet)
			if got := shares(d); got != tc.want || d.Replicas != tc.sum {
				t.Errorf("got %s, in all %d; want %s", got, d.Replicas, tc.want)
			}
		})
	}
}

func TestObjections(t *testing.T) {
	vsphere := MachineSetSnapshot{Pool: scaled("worker", 0, 3), InfraID: "c", Platform: "vsphere", Sets: []MachineSet{{Name: "c-worker-0", Role: "worker", Provider: object{"numCPUs": 4}}}}
	byID := aws(pool("p", 1), says(object{"zones": []any{"us-east-1d"}}))
	for i := range byID.Sets {
		byID.Sets[i].Provider["subnet"] = object{"id": "subnet-1"}
	}
	for name, tc := range map[string]struct {
		fleet  MachineSetSnapshot
		reason string
		parts  []string
	}{
		"a platform that is not known":         {MachineSetSnapshot{Pool: pool("p", 1), Platform: "nutanix"}, hivev1.ReasonUnsupportedPlatform, []string{`"nutanix"`, "aws, azure, gcp, openstack, vsphere and local"}},
		"a setting that is not known":          {aws(pool("p", 1), says(object{"rootVolume": object{"throughput": 3.0}})), hivev1.ReasonUnsupportedSetting, []string{"spec.platform.aws.rootVolume.throughput", "rootVolume.size"}},
		"another platform's settings":          {aws(pool("p", 1), func(f *MachineSetSnapshot) { f.Foreign = []string{"gcp"} }), hivev1.ReasonUnsupportedSetting, []string{"spec.platform.gcp", "aws"}},
		"zones twice":                          {aws(pool("p", 1), says(object{"zones": []any{"a", "a"}})), hivev1.ReasonUnsupportedSetting, []string{"each zone once"}},
		"zones where there are none":           {MachineSetSnapshot{Pool: pool("p", 1), Platform: "vsphere", Settings: object{"zones": []any{"a"}}}, hivev1.ReasonUnsupportedSetting, []string{"zones are not supported"}},
		"nothing to copy from":                 {aws(pool("p", 1), func(f *MachineSetSnapshot) { f.Sets = nil }), hivev1.ReasonNoTemplate, []string{"c-worker"}},
		"only a user's to copy from":           {aws(pool("p", 1), func(f *MachineSetSnapshot) { f.Sets = []MachineSet{awsSet("worker-gpu", "us-east-1a", 1)} }), hivev1.ReasonNoTemplate, nil},
		"a zone whose subnet cannot be known":  {byID, hivev1.ReasonNoTemplate, []string{"zone us-east-1d", "c-p-us-east-1d"}},
		"a disk where there is none":           {aws(pool("p", 1), says(object{"rootVolume": object{"size": 9.0}}), func(f *MachineSetSnapshot) { f.Sets = f.Sets[:1]; delete(f.Sets[0].Provider, "blockDevices") }), hivev1.ReasonUnsupportedSetting, []string{"blockDevices"}},
		"the control plane":                    {aws(pool("master", 1)), hivev1.ReasonUnsupportedName, []string{"master"}},
		"no name":                              {aws(pool("A b", 1)), hivev1.ReasonUnsupportedName, []string{`"A b"`}},
		"a label of the cluster's own":         {aws(Pool{Name: "p", MachineLabels: map[string]string{"machine.openshift.io/cluster-api-cluster": "x"}}), hivev1.ReasonUnsupportedSetting, []string{"spec.machineLabels"}},
		"the same pool twice":                  {aws(Pool{Name: "p", DuplicateOf: "first"}), hivev1.ReasonDuplicatePool, []string{"MachinePool first"}},
		"fewer at most than there are sets":    {aws(scaled("p", 0, 1)), hivev1.ReasonMaxTooSmall, []string{"2 MachineSets", "at least 2"}},
		"fewer at least, where each needs one": {vsphere, hivev1.ReasonMinTooSmall, []string{"vsphere", "at least 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := DecideMachineSets(tc.fleet)
			v := d.Unsupported
			if !v.IsTrue() {
				v = d.NotEnough
			}
			if !v.IsTrue() || v.Reason != tc.reason || len(d.Steps) > 0 {
				t.Errorf("got %+v with steps %s", v, told(d))
			}
			for _, p := range tc.parts {
				if !strings.Contains(v.Message, p) {
					t.Errorf("it does not say %q: %s", p, v.Message)
				}
			}
		})
	}
}

// What is said of each platform, and what becomes of a worker's providerSpec.
func TestProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		platform string
		template object
		settings object
		name     string
		want     object
	}{
		"aws": {
			"aws", awsSet("worker", "us-east-1a", 1).Provider,
			object{
				"type": "m6i.xlarge", "zones": []any{"us-east-1d"}, "amiID": "ami-2", "spotMarketOptions": object{"maxPrice": "1"},
				"rootVolume": object{"size": 200.0, "iops": 100.0, "type": "gp2", "kmsKeyARN": "arn:x"},
			},
			"c-p-us-east-1d",
			object{
				"ami": object{"id": "ami-2"}, "instanceType": "m6i.xlarge", "spotMarketOptions": object{"maxPrice": "1"},
				"placement":    object{"availabilityZone": "us-east-1d", "region": "us-east-1"},
				"blockDevices": []any{object{"ebs": object{"volumeSize": 200.0, "volumeType": "gp2", "iops": 100.0, "kmsKey": object{"arn": "arn:x"}}}},
				"subnet":       object{"filters": []any{object{"name": "tag:Name", "values": []any{"c-private-us-east-1d"}}}},
			},
		},
		"azure": {
			"azure",
			object{"location": "eastus", "zone": "1", "vmSize": "a", "osDisk": object{"diskSizeGB": 1.0, "managedDisk": object{"storageAccountType": "s"}}},
			object{"type": "b", "zones": []any{"2"}, "osDisk": object{"diskSizeGB": 2.0, "diskType": "t"}},
			"c-p-eastus2",
			object{"location": "eastus", "zone": "2", "vmSize": "b", "osDisk": object{"diskSizeGB": 2.0, "managedDisk": object{"storageAccountType": "t"}}},
		},
		"gcp": {
			"gcp",
			object{"region": "us-east1", "zone": "us-east1-b", "machineType": "n1", "disks": []any{object{"sizeGb": 1.0, "type": "a"}}},
			object{"type": "n2", "zones": []any{"us-east1-c"}, "osDisk": object{"diskSizeGB": 2.0, "diskType": "pd-ssd"}},
			"c-p-c",
			object{"region": "us-east1", "zone": "us-east1-c", "machineType": "n2", "disks": []any{object{"sizeGb": 2.0, "type": "pd-ssd"}}},
		},
		"vsphere": {
			"vsphere",
			object{"numCPUs": 2.0, "workspace": object{"server": "v"}},
			object{"cpus": 8.0, "coresPerSocket": 4.0, "memoryMB": 1024.0, "osDisk": object{"diskSizeGB": 60.0}, "resourcePool": "/r"},
			"c-p-0",
			object{"numCPUs": 8.0, "numCoresPerSocket": 4.0, "memoryMiB": 1024.0, "diskGiB": 60.0, "workspace": object{"server": "v", "resourcePool": "/r"}},
		},
		"openstack": {
			"openstack",
			object{"flavor": "a"},
			object{"flavor": "b", "rootVolume": object{"size": 10.0, "type": "fast"}},
			"c-p-0",
			object{"flavor": "b", "rootVolume": object{"diskSize": 10.0, "volumeType": "fast"}},
		},
		"as it is": {"openstack", object{"flavor": "a"}, nil, "c-p-0", object{"flavor": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			template := MachineSet{Name: "c-worker-0", Role: "worker", Provider: tc.template}
			if z := platforms[tc.platform].zone; z != nil {
				template.Name = "c-worker" + platforms[tc.platform].suffix(stringAt(tc.template, platforms[tc.platform].region), stringAt(tc.template, z))
			}
			before := deepCopyJSON(tc.template)
			d := DecideMachineSets(MachineSetSnapshot{Pool: pool("p", 1), InfraID: "c", Platform: tc.platform, Settings: tc.settings, Sets: []MachineSet{template}})
			if len(d.Steps) != 1 {
				t.Fatalf("%s, %+v", told(d), d.Unsupported)
			}
			if diff := cmp.Diff(tc.want, d.Steps[0].Set.Provider); diff != "" || d.Steps[0].Name != tc.name {
				t.Errorf("%s: %s", d.Steps[0].Name, diff)
			}
			if diff := cmp.Diff(before, any(tc.template)); diff != "" {
				t.Errorf("the template was changed: %s", diff)
			}
		})
	}
}

func TestLabelsAndTaintsOfSets(t *testing.T) {
	gpu := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	p := Pool{Name: "p", Replicas: 1, Labels: map[string]string{"a": "1"}, MachineLabels: map[string]string{"m": "1"}, Taints: []corev1.Taint{gpu}, Owned: OwnedMetadata{Labels: []string{"old"}}}
	have := owned(awsSet("p", "us-east-1a", 1), "p")
	have.Labels = map[string]string{"old": "x", "theirs": "y"}
	d := DecideMachineSets(aws(p, says(object{"zones": []any{"us-east-1a"}}), has(have)))
	if told(d) != "update MachineSet c-p-us-east-1a" {
		t.Fatal(told(d))
	}
	got := d.Steps[0].Set
	want := have
	want.Labels, want.Taints = map[string]string{"a": "1", "theirs": "y"}, []corev1.Taint{gpu}
	want.MachineLabels = map[string]string{"m": "1", "machine.openshift.io/cluster-api-machineset": have.Name}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(d.Owned.Labels, []string{"a", "old"}) {
		t.Errorf("owned: %v", d.Owned)
	}
}

// However many pools, zones and changes of mind: carried out, the decision leads to rest,
// the shares sum to the replicas, and a name never changes for a pool and zone.
func TestSetsConverge(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	f := aws(pool("p", 1))
	for range 400 {
		f.Pool = pool([]string{"p", "worker", "p-us"}[r.IntN(3)], r.Int64N(20))
		if r.IntN(3) == 0 {
			low := r.Int64N(4)
			f.Pool.Range = &Range{low, low + 3 + r.Int64N(8)}
		}
		f.Settings = nil
		if r.IntN(2) == 0 {
			f.Settings = object{"zones": []any{"us-east-1" + string(rune('a'+r.IntN(3)))}}
		}
		d := DecideMachineSets(f)
		for pass := 0; len(d.Steps) > 0; pass++ {
			if pass > 3 {
				t.Fatalf("no rest: %s", told(d))
			}
			for _, s := range d.Steps {
				f = f.after(s)
			}
			d = DecideMachineSets(f)
		}
		if d.Unsupported.IsTrue() || d.NotEnough.IsTrue() {
			t.Fatalf("%+v: %+v %+v", f.Pool, d.Unsupported, d.NotEnough)
		}
		var sum int64
		for _, s := range d.Sets {
			sum += int64(s.Replicas)
			if !strings.HasPrefix(s.Name, "c-"+f.Pool.Name+"-us-east-1") {
				t.Fatalf("pool %s has %s", f.Pool.Name, s.Name)
			}
		}
		if f.Pool.Range == nil && sum != f.Pool.Replicas || f.Pool.Range != nil && (sum < f.Pool.Range.Min || sum > f.Pool.Range.Max) {
			t.Fatalf("%+v: %d in all", f.Pool, sum)
		}
	}
}

func (m MachineSetSnapshot) after(s Step) MachineSetSnapshot {
	named := func(x MachineSet) bool { return x.Name == s.Name }
	m.Sets, m.Scalers = slices.Clone(m.Sets), slices.Clone(m.Scalers)
	switch s.Verb {
	case CreateSet:
		m.Sets = append(m.Sets, *s.Set)
	case UpdateSet:
		m.Sets[slices.IndexFunc(m.Sets, named)] = *s.Set
	case DeleteSet:
		m.Sets = slices.DeleteFunc(m.Sets, named)
	case AddAutoscaling:
		m.Autoscaling = true
	case PutAutoscaler, DeleteAutoscaler:
		m.Scalers = slices.DeleteFunc(m.Scalers, func(a MachineAutoscaler) bool { return a.Name == s.Name })
		if s.Verb == PutAutoscaler {
			m.Scalers = append(m.Scalers, MachineAutoscaler{s.Name, m.Pool.Name, s.Range})
		}
	}
	return m
}
