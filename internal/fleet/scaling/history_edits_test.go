package scaling_test

import (
	"slices"
	"time"

	"hotspare.io/hotspare/internal/fleet/scaling"
)

// regionEdits are the edits that users can make to a FleetRegion and to the objects that it refers
// to.
var regionEdits = []func(f *fleet){
	func(f *fleet) { f.Region.Up.Mode = f.mode() },
	func(f *fleet) { f.Region.Up.MaxInFlight = 1 + f.rand.IntN(3) },
	func(f *fleet) { f.Region.Up.Timeout = time.Duration(f.rand.IntN(3)) * time.Hour },
	func(f *fleet) { f.Region.Up.Backoff = time.Duration(f.rand.IntN(3)) * 10 * time.Minute },
	func(f *fleet) { f.Region.Down.Mode = f.mode() },
	func(f *fleet) { f.Region.Down.EmptyFor = time.Duration(f.rand.IntN(60)) * time.Minute },
	func(f *fleet) { f.Region.Down.Cooldown = time.Duration(f.rand.IntN(60)) * time.Minute },
	func(f *fleet) {
		f.Region.Down.MaxConcurrent = nil
		if f.one(2) {
			f.Region.Down.MaxConcurrent = ptr(f.rand.IntN(3))
		}
	},
	func(f *fleet) { // remove a type from the region, or add it again
		if len(f.off) > 0 {
			f.Region.Types, f.off = append(f.Region.Types, f.off...), nil
		} else if n := len(f.Region.Types); n > 1 {
			f.off, f.Region.Types = slices.Clone(f.Region.Types[n-1:]), f.Region.Types[:n-1]
		}
	},
	func(f *fleet) { // delete an InstanceType, or create it again
		t := f.anyType()
		t.Unknown = map[bool]string{true: "there is no such InstanceType"}[t.Unknown == ""]
	},
	func(f *fleet) { // break the source of clusters, or repair it
		t := f.anyType()
		t.Blocked = map[bool]string{true: "there is no ClusterPool"}[t.Blocked == ""]
	},
	func(f *fleet) { f.anyType().Limit = nil },
	func(f *fleet) { f.anyType().Limit = ptr(f.rand.IntN(20)) },
	func(f *fleet) { f.anyType().Slack = f.rand.IntN(8) },
	func(f *fleet) {
		t := f.anyType()
		t.MinPlanes, t.MaxPlanes = f.rand.IntN(3), nil
	},
	func(f *fleet) {
		t := f.anyType()
		t.MaxPlanes = ptr(f.rand.IntN(4))
	},
	func(f *fleet) { t := f.anyType(); t.Sizes = append(t.Sizes, 1+f.rand.IntN(8)) },
	func(f *fleet) { t := f.anyType(); t.MultiZone = !t.MultiZone },
	func(f *fleet) { f.anyType().Expected = f.rand.IntN(10) },
}

func (f *fleet) mode() scaling.Mode {
	return []scaling.Mode{scaling.Auto, scaling.Auto, scaling.Off, scaling.DryRun}[f.rand.IntN(4)]
}

func (f *fleet) anyType() *scaling.Type {
	// Clone the types, because a backup of the hub has them, too.
	f.Region.Types = slices.Clone(f.Region.Types)
	return &f.Region.Types[f.rand.IntN(len(f.Region.Types))]
}

// editRegion makes one random edit.
func (f *fleet) editRegion() {
	n := f.rand.IntN(len(regionEdits))
	regionEdits[n](f)
	f.say("edit %d: %+v", n, f.Region)
}

// mendRegion reverts the edits that keep the region from working.
func (f *fleet) mendRegion() {
	f.Region.Up.Mode, f.Region.Down.Mode = scaling.Auto, scaling.Auto
	if most := f.Region.Down.MaxConcurrent; most != nil && *most == 0 {
		f.Region.Down.MaxConcurrent = nil
	}
	f.Region.Types, f.off = append(slices.Clone(f.Region.Types), f.off...), nil
	for n := range f.Region.Types {
		f.Region.Types[n].Unknown, f.Region.Types[n].Blocked = "", ""
	}
}

// leaveAlone lets time pass while users do nothing and broken settings stay as they are. The region
// settles, and whatever waits has a reason (check).
func (f *fleet) leaveAlone() {
	f.say("from here on users leave everything alone")
	quiet := 0
	for range 400 {
		f.Now = f.Now.Add(30 * time.Minute)
		for n := range f.Planes {
			f.report(&f.Planes[n])
		}
		for n := len(f.Planes) - 1; n >= 0; n-- {
			p := &f.Planes[n]
			f.version[p.Name]++
			switch {
			case p.Released || p.Deleting || p.Phase == scaling.Cleanup:
				f.gone(n)
			case slices.Contains([]scaling.Phase{"", scaling.Accepted, scaling.Provisioning, scaling.WaitingForAgent}, p.Phase):
				f.come(p)
			}
		}
		if plan := f.pass(false); len(plan.Steps) > 0 {
			quiet = 0
		} else if quiet++; quiet > 8 {
			return
		}
	}
	f.fatalf("left alone, it never settles: %d data planes, %+v", len(f.Planes), scaling.Decide(f.Snapshot).Types)
}
