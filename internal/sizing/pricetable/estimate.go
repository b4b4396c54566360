package pricetable

import (
	"fmt"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/sizing"
)

// Machines are those of one cluster.
type Machines struct {
	// Platform is the key in spec.platform of the pool.
	Platform     string
	ControlPlane Group
	Compute      []Group
}

// A Group is a number of machines of one instance type.
type Group struct {
	// Type is the instance type; empty if the installer chooses it.
	Type  string
	Count int64
}

// An Estimate is what one cluster probably costs.
type Estimate struct {
	// Prices are those of one hour. Running is the sum of its machines and their disks, Hibernating that of the disks. All
	// depths of sleep have the price of Hibernating.
	Prices   sizing.Prices
	Currency string
	// Basis says what the prices are computed from, for people.
	Basis string
}

// CheckPlatform returns fault.Denied if the machines of a platform have no instance types with list prices.
func CheckPlatform(name string) error {
	switch {
	case slices.Contains(platformNames, name):
		return nil
	case name == "":
		return fault.NewDenied("the pool has no platform: set spec.platform of the pool, or spec.prices of the PoolPolicy")
	default:
		return fault.NewDenied("platform %s has no list prices: set spec.prices of the PoolPolicy", name)
	}
}

// EstimatePrices estimates the prices of a cluster with these machines. An error is fault.Denied, and says which price
// is missing and how to add it.
func EstimatePrices(t Table, m Machines) (Estimate, error) {
	if err := CheckPlatform(m.Platform); err != nil {
		return Estimate{}, err
	}
	s := sum{table: t, platform: m.Platform}
	if err := s.add("controlPlane", t.Platforms[m.Platform].ControlPlane, m.ControlPlane); err != nil {
		return Estimate{}, err
	}
	for _, g := range m.Compute {
		if err := s.add("compute", t.Platforms[m.Platform].Compute, g); err != nil {
			return Estimate{}, err
		}
	}
	if len(s.words) == 0 {
		return Estimate{}, fault.NewDenied("a cluster of the pool has no machines: set spec.prices of the PoolPolicy")
	}
	return Estimate{
		Prices: sizing.Prices{Running: s.running, Hibernating: s.disks}, Currency: t.Currency,
		Basis: fmt.Sprintf("%s on %s, %s in %s: an estimate", joinWords(s.words), m.Platform, t.source, t.Currency),
	}, nil
}

// A sum adds up the prices of groups of machines.
type sum struct {
	table          Table
	platform       string
	running, disks float64
	words          []string
}

// add adds a group of machines that have a role, whose key in the table is given.
func (s *sum) add(key string, r Role, g Group) error {
	if g.Count <= 0 {
		return nil
	}
	name := g.Type
	if name == "" {
		name = r.Type
	}
	price, priced := s.table.Platforms[s.platform].Machines[name]
	switch {
	case name == "":
		return s.newMissingError("the default instance type of "+key, key+".type")
	case !priced:
		return s.newMissingError("the price of instance type "+name, "machines, as "+name+": PRICE")
	case r.Disk == nil:
		return s.newMissingError("the price of the disk of a machine of "+key, key+".disk")
	}
	s.running += float64(g.Count) * (price + *r.Disk)
	s.disks += float64(g.Count) * *r.Disk
	s.words = append(s.words, fmt.Sprintf("%d × %s", g.Count, name))
	return nil
}

// newMissingError says what the table lacks, and at which path below the platform to add it.
func (s *sum) newMissingError(what, path string) error {
	in := ""
	if s.table.Currency != Default().Currency {
		in = " in " + s.table.Currency
	}
	return fault.NewDenied("the table lacks %s on %s%s: add platforms.%s.%s to key %s of ConfigMap %s in the namespace of hotspare,"+
		" or set spec.prices of the PoolPolicy", what, s.platform, in, s.platform, path, ConfigMapKey, ConfigMapName)
}

// joinWords joins words: a, b and c.
func joinWords(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
