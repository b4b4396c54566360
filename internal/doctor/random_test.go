package doctor

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestPropertiesOfFindings tries machines of which anything may be missing, broken or unknown.
func TestPropertiesOfFindings(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	capableOnes, obstacles := 0, 0
	for range 1000 {
		f := randomFacts(r)
		all, obstacle := Findings(f), ContainersObstacle(f)
		if stopped := slices.ContainsFunc(all, func(one Finding) bool { return one.Level == Problem }); stopped != (obstacle != "") {
			t.Fatalf("the findings %v have a problem: %t; the obstacle is %q", all, stopped, obstacle)
		}
		if obstacle == "" {
			capableOnes++
		} else {
			obstacles++
		}
		checkTexts(t, all, obstacle)
		if got := HasProblem(all, Containers); got != (obstacle != "") {
			t.Fatalf("HasProblem of containers is %t; the obstacle is %q", got, obstacle)
		}
		onlyHub := slices.DeleteFunc(slices.Clone(all), func(one Finding) bool { return one.Needed == Containers })
		if HasProblem(all, Hub) != HasProblem(onlyHub, Hub) || HasProblem(onlyHub, Hub) != HasProblem(onlyHub, Containers) {
			t.Fatalf("the problems of the hub depend on those of real pods: %v", all)
		}
		slices.Reverse(f.Cgroups.Controllers)
		for _, folder := range f.CNIFolders {
			slices.Reverse(folder.Plugins)
		}
		if got := ContainersObstacle(f); got != obstacle {
			t.Fatalf("the order of lists changes the obstacle from %q to %q", obstacle, got)
		}
	}
	if capableOnes == 0 || obstacles == 0 {
		t.Errorf("%d machines had no obstacle and %d had one: this test tries one kind only", capableOnes, obstacles)
	}
}

func checkTexts(t *testing.T, all []Finding, obstacle string) {
	t.Helper()
	seen := map[string]bool{}
	for _, one := range all {
		switch {
		case seen[one.Check]:
			t.Fatalf("two checks are called %s", one.Check)
		case one.Message == "" || strings.ContainsFunc(one.Message, unicode.IsControl):
			t.Fatalf("%s: the message is %q", one.Check, one.Message)
		case one.Level == OK && one.Remedy != nil, one.Level == Problem && (one.Remedy == nil || one.Remedy.Text == ""):
			t.Fatalf("%s is %s, with the remedy %v", one.Check, one.Level, one.Remedy)
		case one.Remedy != nil && strings.ContainsFunc(one.Remedy.Text+one.Remedy.Command, unicode.IsControl):
			t.Fatalf("%s: the remedy is %+v", one.Check, *one.Remedy)
		case one.Level == Problem && !strings.Contains(obstacle, one.Remedy.Command):
			t.Fatalf("%s has the command %q, and the obstacle is %q", one.Check, one.Remedy.Command, obstacle)
		}
		seen[one.Check] = true
	}
	if strings.ContainsFunc(obstacle, unicode.IsControl) || strings.Count(obstacle, ": ") < 1 && obstacle != "" {
		t.Fatalf("the obstacle is %q", obstacle)
	}
}

// oneOf returns one of the values.
func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomFacts changes each fact about a capable machine with a probability of about one in ten.
func randomFacts(r *rand.Rand) Facts {
	f := capable()
	const garbage = "\x1b[2J\x00\n\xff"
	changes := []func(){
		func() { f.OS = oneOf(r, "darwin", "freebsd", "") },
		func() {
			f.Distribution = Distribution{ID: oneOf(r, "fedora", "rhel", "alpine", "nixos", "", garbage), Name: garbage}
		},
		func() { f.Kernel = oneOf(r, "", "5.4.0", garbage) },
		func() { f.UserID = oneOf(r, 1, 1000, 65534) },
		func() { f.UserNamespace = true },
		func() { f.Capabilities = oneOf(r, Capabilities{Effective: r.Uint64()}, Capabilities{Err: garbage}) },
		func() { f.CNIFolders = nil },
		func() {
			f.CNIFolders = []CNIFolder{{garbage, slices.Clone(CNIPlugins[:r.IntN(4)])}, {"/opt/cni/bin", slices.Clone(CNIPlugins[r.IntN(4):])}}
		},
		func() {
			f.Cgroups = Cgroups{Version: 1, Controllers: []string{"cpu", "cpuacct", "cpuset", "devices", "memory"}[:3+r.IntN(3)]}
		},
		func() { f.Cgroups = Cgroups{Version: r.IntN(3), ReadOnly: r.IntN(2) == 0, Err: oneOf(r, "", garbage)} },
		func() { f.Cgroups.Withheld = oneOf(r, nil, []string{"memory"}, []string{garbage}) },
		func() { f.Overlay = oneOf(r, Unsupported, Support("")) },
		func() { f.TUNError = garbage },
		func() { f.Veth, f.VethError = oneOf(r, Unsupported, Support("")), garbage },
		func() { f.UserID, f.UserNamespaceError = 1000, garbage },
		func() { f.UserID, f.AppArmorRestricted = 1000, true },
		func() { f.SubordinateUsers, f.SubordinateGroups = randomQuantity(r), randomQuantity(r) },
		func() { f.InotifyInstances = randomQuantity(r) },
		func() { f.InotifyWatches = randomQuantity(r) },
		func() {
			f.DataFolder = DataFolder{Path: garbage, Err: oneOf(r, "", garbage), FileSystem: oneOf(r, "", "xfs", "overlay", "nfs"), Free: randomQuantity(r)}
		},
		func() { f.Memory = randomQuantity(r) },
		func() { f.OpenFiles = randomQuantity(r) },
		func() { f.LoopbackError = garbage },
	}
	for _, name := range []string{Containerd, ContainerdShim, CTR, Runc, IPTables, NFT, NewUIDMap, NewGIDMap} {
		changes = append(changes,
			func() { delete(f.Programs, name) },
			func() {
				f.Programs[name] = Program{Path: garbage, Version: oneOf(r, "", "v1.0.0", "9.9.9", garbage), Err: oneOf(r, "", garbage)}
			},
			func() {
				f.Programs[name] = Program{Path: garbage, Version: oneOf(r, "", "v1.0.0 (legacy)", "9.9.9", garbage), Lacks: oneOf(r, "", "the match recent", garbage), LacksErr: garbage}
			})
	}
	f.Cgroups.Controllers = slices.Clone(f.Cgroups.Controllers)
	for _, change := range changes {
		if r.IntN(10) == 0 {
			change()
		}
	}
	return f
}

func randomQuantity(r *rand.Rand) Quantity {
	return oneOf(r, Quantity{}, Quantity{Value: -1}, Quantity{Value: r.Int64()}, Quantity{Value: r.Int64N(1 << 30)}, Quantity{Err: "\x1b\n"})
}
