package pricetable

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/sizing"
)

var seedFlag = flag.Uint64("pricetable.seed", 0, "seed of random tables; 0 chooses one")

func parse(t *testing.T, text string) Table {
	t.Helper()
	table, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func groups(counts ...int64) Machines {
	m := Machines{Platform: "aws", ControlPlane: Group{Count: counts[0]}}
	for _, n := range counts[1:] {
		m.Compute = append(m.Compute, Group{Count: n})
	}
	return m
}

// describe returns an estimate, or why there is none, in a line.
func describe(e Estimate, err error) string {
	if err != nil {
		return fmt.Sprintf("%s: %v", fault.KindOf(err), err)
	}
	return fmt.Sprintf("%.6g %.6g %s: %s", e.Prices.Running, e.Prices.Hibernating, e.Currency, e.Basis)
}

func TestAnEstimateIsTheSumOfItsMachines(t *testing.T) {
	const list = ", on-demand list prices of 2026-01 in USD: an estimate"
	for name, c := range map[string]struct {
		machines Machines
		want     string
	}{
		"the installer's defaults": {groups(3, 3), "1.2309 0.0789 USD: 3 × m6i.xlarge and 3 × m6i.xlarge on aws" + list},
		"one node":                 {groups(1, 0), "0.20515 0.01315 USD: 1 × m6i.xlarge on aws" + list},
		"several groups": {
			Machines{Platform: "aws", ControlPlane: Group{"m5.2xlarge", 3}, Compute: []Group{{"", 2}, {"g4dn.xlarge", 1}}},
			"2.1409 0.0789 USD: 3 × m5.2xlarge, 2 × m6i.xlarge and 1 × g4dn.xlarge on aws" + list,
		},
		"roles with other machines": {
			Machines{Platform: "azure", ControlPlane: Group{Count: 3}, Compute: []Group{{Count: 3}}},
			"2.3646 0.6366 USD: 3 × Standard_D8s_v3 and 3 × Standard_D4s_v3 on azure" + list,
		},
		"Google Cloud": {
			Machines{Platform: "gcp", ControlPlane: Group{Count: 3}, Compute: []Group{{Count: 3}}},
			"1.344 0.1788 USD: 3 × n2-standard-4 and 3 × n2-standard-4 on gcp" + list,
		},
		"a type without a price": {
			Machines{Platform: "aws", ControlPlane: Group{"c9.mega", 3}},
			"denied: the table lacks the price of instance type c9.mega on aws: add platforms.aws.machines, as c9.mega: PRICE" +
				" to key prices.yaml of ConfigMap hotspare-prices in the namespace of hotspare, or set spec.prices of the PoolPolicy",
		},
		"a type of another cloud": {
			Machines{Platform: "gcp", ControlPlane: Group{"m5.xlarge", 3}},
			"denied: the table lacks the price of instance type m5.xlarge on gcp: add platforms.gcp.machines, as m5.xlarge: PRICE" +
				" to key prices.yaml of ConfigMap hotspare-prices in the namespace of hotspare, or set spec.prices of the PoolPolicy",
		},
		"no machines":           {groups(0, 0), "denied: a cluster of the pool has no machines: set spec.prices of the PoolPolicy"},
		"a type of no machines": {Machines{Platform: "aws", ControlPlane: Group{Count: 1}, Compute: []Group{{"c9.mega", 0}}}, "0.20515 0.01315 USD: 1 × m6i.xlarge on aws" + list},
		"no list prices":        {Machines{Platform: "vsphere", ControlPlane: Group{Count: 3}}, "denied: platform vsphere has no list prices: set spec.prices of the PoolPolicy"},
		"no platform":           {Machines{}, "denied: the pool has no platform: set spec.platform of the pool, or spec.prices of the PoolPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe(EstimatePrices(Default(), c.machines))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlatformsWithoutListPricesHaveNoEstimate(t *testing.T) {
	for _, name := range []string{"vsphere", "openstack", "baremetal", "agentBareMetal", "nutanix", "ibmcloud", "none", "local", "exec", "capi", ""} {
		if err := CheckPlatform(name); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "spec.prices of the PoolPolicy") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryDepthOfSleepCostsTheDisks(t *testing.T) {
	e, err := EstimatePrices(Default(), groups(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Prices.SleepCost(10, sizing.PerShallowDepth[float64]{Suspend: 4}); math.Abs(got-10*e.Prices.Hibernating) > 1e-9 {
		t.Errorf("ten hours cost %g, want %g", got, 10*e.Prices.Hibernating)
	}
}

func TestAnOwnersTableAddsAndReplaces(t *testing.T) {
	for name, c := range map[string]struct{ own, machines, want string }{
		"nothing":           {"", "m5.xlarge", "0.20515 0.01315 USD: 1 × m5.xlarge on aws, on-demand list prices of 2026-01 in USD: an estimate"},
		"a type":            {"platforms: {aws: {machines: {c9.mega: 2}}}", "c9.mega", "2.01315 0.01315 USD: 1 × c9.mega on aws, on-demand list prices of 2026-01 and prices of ConfigMap hotspare-prices in USD: an estimate"},
		"a price":           {"platforms: {aws: {machines: {m5.xlarge: \"0.1\"}}}", "m5.xlarge", "0.11315 0.01315 USD: 1 × m5.xlarge on aws, on-demand list prices of 2026-01 and prices of ConfigMap hotspare-prices in USD: an estimate"},
		"a default type":    {"platforms: {aws: {controlPlane: {type: r5.xlarge}}}", "", "0.26515 0.01315 USD: 1 × r5.xlarge on aws, on-demand list prices of 2026-01 and prices of ConfigMap hotspare-prices in USD: an estimate"},
		"a disk":            {"date: 2026-03\ncurrency: USD\nplatforms: {aws: {controlPlane: {disk: 0}}}", "", "0.192 0 USD: 1 × m6i.xlarge on aws, on-demand list prices of 2026-01 and prices of ConfigMap hotspare-prices of 2026-03 in USD: an estimate"},
		"another currency":  {"currency: EUR\nplatforms: {aws: {controlPlane: {disk: 0.01}, machines: {m6i.xlarge: 0.18}}}", "", "0.19 0.01 EUR: 1 × m6i.xlarge on aws, prices of ConfigMap hotspare-prices in EUR: an estimate"},
		"no price in it":    {"currency: EUR\nplatforms: {aws: {controlPlane: {disk: 0.01}}}", "", "denied: the table lacks the price of instance type m6i.xlarge on aws in EUR: add platforms.aws.machines, as m6i.xlarge: PRICE to key prices.yaml of ConfigMap hotspare-prices in the namespace of hotspare, or set spec.prices of the PoolPolicy"},
		"no disk in it":     {"currency: EUR\nplatforms: {aws: {machines: {m6i.xlarge: 0.18}}}", "", "denied: the table lacks the price of the disk of a machine of controlPlane on aws in EUR: add platforms.aws.controlPlane.disk to key prices.yaml of ConfigMap hotspare-prices in the namespace of hotspare, or set spec.prices of the PoolPolicy"},
		"only the currency": {"currency: EUR", "m5.xlarge", "denied: the table lacks the price of instance type m5.xlarge on aws in EUR: add platforms.aws.machines, as m5.xlarge: PRICE to key prices.yaml of ConfigMap hotspare-prices in the namespace of hotspare, or set spec.prices of the PoolPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			merged := Merge(Default(), parse(t, c.own))
			got := describe(EstimatePrices(merged, Machines{Platform: "aws", ControlPlane: Group{c.machines, 1}}))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := Default().Platforms["aws"].Machines["m5.xlarge"]; got != 0.192 || *Default().Platforms["aws"].ControlPlane.Disk != 0.01315 {
		t.Errorf("a merge has changed the default table: m5.xlarge is %g", got)
	}
}

func TestABadTableIsExplained(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a negative price":     {"platforms: {aws: {machines: {m5.xlarge: -1}}}", `platforms.aws.machines: the price of m5.xlarge, "-1" is not a number from 0.000001 to 1000000: write the price of one hour, such as 0.192`},
		"no price":             {"platforms: {aws: {machines: {m5.xlarge: 0}}}", `platforms.aws.machines: the price of m5.xlarge, "0" is not a number from`},
		"an empty price":       {"platforms: {aws: {machines: {m5.xlarge: }}}", `platforms.aws.machines: the price of m5.xlarge, "" is not a number from`},
		"NaN":                  {"platforms: {gcp: {machines: {n1-standard-4: .nan}}}", `platforms.gcp.machines: the price of n1-standard-4, "NaN" is not a number from`},
		"an infinite price":    {"platforms: {gcp: {machines: {n1-standard-4: .inf}}}", `platforms.gcp.machines: the price of n1-standard-4, "+Inf" is not a number from`},
		"a price in words":     {"platforms: {azure: {machines: {Standard_D4s_v5: cheap}}}", `platforms.azure.machines: the price of Standard_D4s_v5, "cheap" is not a number from`},
		"a price of a month":   {"platforms: {aws: {machines: {m5.xlarge: 10000000}}}", `platforms.aws.machines: the price of m5.xlarge, "10000000" is not a number from`},
		"a negative disk":      {"platforms: {aws: {compute: {disk: -0.1}}}", `platforms.aws.compute.disk "-0.1" is not a number from 0 to 1000000: write`},
		"a platform":           {"platforms: {vsphere: {}}", "platforms.vsphere: platform vsphere has no list prices: set spec.prices of the PoolPolicy, and remove it from the table"},
		"a currency":           {"currency: euro", `currency "euro" is not the code of a currency: write three capital letters, such as EUR`},
		"a date":               {"date: January", `date "January" is not a month: write one such as "2026-01", or remove it`},
		"an unknown key":       {"platforms: {aws: {machine: {m5.xlarge: 1}}}", `"machine" is not a key of the table: use date, currency and platforms; in a platform controlPlane`},
		"an unknown key above": {"aws: {}", `"aws" is not a key of the table: use date`},
		"a list":               {"[1]", "it is of kind array: write a mapping with the keys date, currency and platforms"},
		"machines in a list":   {"platforms: {aws: {machines: [m5.xlarge]}}", "platforms.machines is of kind array, which does not fit: write it as in the default table"},
		"a type twice":         {"platforms:\n  aws:\n    machines:\n      m5.xlarge: 1\n      m5.xlarge: 2", `m5.xlarge" already set in map`},
		"no YAML":              {"platforms: {aws: {machines: {m5.xlarge: 1}}", "it is not valid YAML: line 1"},
		"many mistakes":        {"currency: x\nplatforms: {aws: {machines: {a: -1, b: -1, c: -1, d: -1}}}", "the price of b, \"-1\" is not a number from 0.000001 to 1000000: write the price of one hour, such as 0.192; and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || fault.KindOf(err) != fault.Denied {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
	for _, text := range []string{"currency: EUR\nplatforms: {aws: {machines: {a: -1}}}", "currency: EUR\naws: {}"} {
		if table, err := Parse([]byte(text)); err == nil || table.Currency != "EUR" || table.Platforms != nil {
			t.Errorf("%s: %+v, %v: want the currency only", text, table, err)
		}
	}
}

func TestTheDefaultTableIsComplete(t *testing.T) {
	table := Default()
	if !strings.HasPrefix(string(embedded), "# These prices are estimates.") || table.Date == "" || table.Currency != "USD" {
		t.Errorf("%s %s", table.Date, table.Currency)
	}
	for _, name := range platformNames {
		p := table.Platforms[name]
		for _, r := range []Role{p.ControlPlane, p.Compute} {
			if p.Machines[r.Type] == 0 || r.Disk == nil || *r.Disk <= 0 || *r.Disk > p.Machines[r.Type] {
				t.Errorf("%s: %+v", name, r)
			}
		}
		for machine, price := range p.Machines {
			if price < 0.1 || price > 2 {
				t.Errorf("%s: %s costs %g an hour", name, machine, price)
			}
		}
	}
}

// The documentation shows the default table, and an example of an owner's.
func TestTheDocumentationShowsTheTable(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n## Prices\n")
	if !found {
		t.Fatal("docs/sizing.md has no section Prices")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	shown := 0
	for _, name := range platformNames {
		p := Default().Platforms[name]
		shown += len(p.Machines)
		for machine, price := range p.Machines {
			if want := fmt.Sprintf("`%s` %g", machine, price); !strings.Contains(section, want+",") && !strings.Contains(section, want+" |") {
				t.Errorf("it lacks %s", want)
			}
		}
		if want := fmt.Sprintf("| %s | `%s`, %g | `%s`, %g |", name, p.ControlPlane.Type, *p.ControlPlane.Disk, p.Compute.Type, *p.Compute.Disk); !strings.Contains(section, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if shown < 40 {
		t.Errorf("%d prices: this test looks in the wrong place", shown)
	}
	_, example, _ := strings.Cut(section, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	var cm struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}
	if err := yaml.Unmarshal([]byte(example), &cm); err != nil || cm.Metadata.Name != ConfigMapName {
		t.Fatalf("its example is ConfigMap %q, %v", cm.Metadata.Name, err)
	}
	if own := parse(t, cm.Data[ConfigMapKey]); len(own.Platforms) == 0 {
		t.Error("its example has no prices")
	}
}

// For any table and any machines, Running is the sum of the prices of machines and disks, and a machine more never makes anything cheaper.
func TestRandomTablesAndMachines(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-pricetable.seed=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		table, m := randomTable(r), randomMachines(r)
		e, err := EstimatePrices(table, m)
		if err != nil {
			if fault.KindOf(err) != fault.Denied {
				t.Fatalf("%v", err)
			}
			continue
		}
		running, disks := add(table, m)
		if !isNear(e.Prices.Running, running+disks) || !isNear(e.Prices.Hibernating, disks) || !(e.Prices.Running > 0) {
			t.Fatalf("%+v costs %+v, want %g and %g", m, e.Prices, running+disks, disks)
		}
		more := m
		more.Compute = append([]Group{}, m.Compute...)
		if i := r.IntN(len(m.Compute) + 1); i == 0 {
			more.ControlPlane.Count++
		} else {
			more.Compute[i-1].Count++
		}
		after, err := EstimatePrices(table, more)
		if err != nil {
			continue // the machine is the first of a type without a price
		}
		if after.Prices.Running < e.Prices.Running || after.Prices.Hibernating < e.Prices.Hibernating {
			t.Fatalf("%+v costs %+v, and %+v %+v", m, e.Prices, more, after.Prices)
		}
	}
}

func isNear(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

// add adds up the prices machine by machine.
func add(table Table, m Machines) (running, disks float64) {
	p := table.Platforms[m.Platform]
	one := func(g Group, r Role) {
		if g.Type == "" {
			g.Type = r.Type
		}
		for range g.Count {
			running += p.Machines[g.Type]
			disks += *r.Disk
		}
	}
	one(m.ControlPlane, p.ControlPlane)
	for _, g := range m.Compute {
		one(g, p.Compute)
	}
	return running, disks
}

var randomTypes = []string{"", "a.large", "b.large", "m6i.xlarge", "none.large"}

func randomTable(r *rand.Rand) Table {
	own := Table{Currency: []string{"", "USD", "EUR"}[r.IntN(3)], Platforms: map[string]Platform{}}
	role := func() Role {
		out := Role{Type: randomTypes[r.IntN(len(randomTypes))]}
		if r.IntN(3) > 0 {
			price := r.Float64()
			out.Disk = &price
		}
		return out
	}
	for _, name := range platformNames {
		p := Platform{ControlPlane: role(), Compute: role(), Machines: map[string]float64{}}
		for _, machine := range randomTypes[1:4] {
			if r.IntN(3) > 0 {
				p.Machines[machine] = smallestPrice + 100*r.Float64()
			}
		}
		own.Platforms[name] = p
	}
	return Merge(Default(), own)
}

func randomMachines(r *rand.Rand) Machines {
	group := func() Group { return Group{randomTypes[r.IntN(len(randomTypes))], r.Int64N(6)} }
	m := Machines{Platform: append(platformNames, "vsphere")[r.IntN(len(platformNames)+1)], ControlPlane: group()}
	for range r.IntN(4) {
		m.Compute = append(m.Compute, group())
	}
	return m
}
