// Package pricetable estimates what the clusters of a pool cost, from a table of prices of instance types: the one
// that hotspare has, with the changes of the owner of the hub. It is pure.
package pricetable

import (
	_ "embed" // the default table
	"maps"
)

// The ConfigMap in the namespace of hotspare with which the owner of a hub changes the default table, and its key.
const (
	ConfigMapName = "hotspare-prices"
	ConfigMapKey  = "prices.yaml"
)

// A Table has the prices of one hour of machines.
type Table struct {
	// Date is the month of the prices, such as 2026-01; empty if it is not known.
	Date string
	// Currency is a code of three letters; empty in the table of an owner that names none.
	Currency string
	// Platforms are by the key in spec.platform of a pool.
	Platforms map[string]Platform
	// source says whose prices they are, for people; empty in a table that was only parsed.
	source string
}

// A Platform has the prices of one platform.
type Platform struct {
	ControlPlane, Compute Role
	// Machines are the prices of one hour of a machine that runs, by instance type.
	Machines map[string]float64
}

// A Role has what the machines of the control plane, or those of compute, have in common.
type Role struct {
	// Type is the instance type of machines for which an install-config names none.
	Type string
	// Disk is the price of one hour of the disk of one machine; nil if it is not known.
	Disk *float64
}

//go:embed prices.yaml
var embedded []byte

var byDefault = mustParse(embedded)

// mustParse parses the embedded table.
func mustParse(raw []byte) Table {
	t, err := Parse(raw)
	if err != nil {
		panic(err) // a mistake in prices.yaml, which a test would show
	}
	t.source = "on-demand list prices of " + t.Date
	return t
}

// Default returns the default table. It must not be changed.
func Default() Table { return byDefault }

// Merge returns a table with the entries of the owner's table, and those of the other one that it leaves out. If the
// owner's has another currency, no price of the other one is used, because amounts would be mixed: its instance
// types remain, which are not amounts. Neither table is changed.
func Merge(base, own Table) Table {
	sameCurrency := own.Currency == "" || own.Currency == base.Currency
	out := Table{Date: own.Date, Currency: own.Currency, Platforms: map[string]Platform{}, source: own.describeSource()}
	if sameCurrency {
		out.Date, out.Currency, out.source = base.Date, base.Currency, base.source
		if len(own.Platforms) > 0 {
			out.source += " and " + own.describeSource()
		}
	}
	for name, p := range base.Platforms {
		if !sameCurrency {
			p = p.withoutPrices()
		}
		out.Platforms[name] = mergePlatforms(p, own.Platforms[name])
	}
	for name, p := range own.Platforms {
		if _, merged := out.Platforms[name]; !merged {
			out.Platforms[name] = mergePlatforms(Platform{}, p)
		}
	}
	return out
}

// describeSource says whose prices the table of an owner has.
func (t Table) describeSource() string {
	text := "prices of ConfigMap " + ConfigMapName
	if t.Date != "" {
		text += " of " + t.Date
	}
	return text
}

// withoutPrices returns the instance types of a platform.
func (p Platform) withoutPrices() Platform {
	return Platform{ControlPlane: Role{Type: p.ControlPlane.Type}, Compute: Role{Type: p.Compute.Type}}
}

func mergePlatforms(base, own Platform) Platform {
	out := Platform{
		ControlPlane: mergeRoles(base.ControlPlane, own.ControlPlane), Compute: mergeRoles(base.Compute, own.Compute),
		Machines: map[string]float64{},
	}
	maps.Copy(out.Machines, base.Machines)
	maps.Copy(out.Machines, own.Machines)
	return out
}

func mergeRoles(base, own Role) Role {
	if own.Type != "" {
		base.Type = own.Type
	}
	if own.Disk != nil {
		base.Disk = own.Disk
	}
	return base
}
