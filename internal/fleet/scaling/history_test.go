package scaling_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fleet/scaling"
)

var (
	seed  = flag.Uint64("scaling.seed", 0, "seed of the random histories; 0 takes one from the clock")
	steps = flag.Int("scaling.steps", 20000, "how many passes the random histories have in all")
)

// fleet is a region as its controllers would run it: its users, its clusters and its agents are
// random events. Data planes have versions, as in the API.
type fleet struct {
	*testing.T
	rand *rand.Rand
	scaling.Snapshot
	version map[string]int
	serial  int
	log     []string
	// meagre creates data planes with fewer units than expected.
	meagre bool
	// on are the instances on each data plane, whatever the hub knows; told are those that its
	// agent last reported. backup is an earlier state of the hub.
	on, told map[string][]scaling.Instance
	backup   *scaling.Snapshot
	// foreign is the number of units of its first type that each agent reports above (or below)
	// what is on its data plane. picky are the UIDs of instances that every data plane refuses.
	foreign map[string]int
	picky   map[string]bool
	// off are the types that are temporarily removed from the region.
	off []scaling.Type
	// rounds is the number of passes until it settled.
	rounds int
}

func newFleet(t *testing.T, r *rand.Rand) *fleet {
	t.Helper()
	f := &fleet{T: t, rand: r, version: map[string]int{}, meagre: r.IntN(4) == 0}
	f.foreign, f.picky = map[string]int{}, map[string]bool{}
	f.on, f.told = map[string][]scaling.Instance{}, map[string][]scaling.Instance{}
	f.Now = noon
	f.Region.Up = scaling.ScaleUp{
		Mode: scaling.Auto, MaxInFlight: 1 + r.IntN(3)*r.IntN(2), Timeout: time.Duration(r.IntN(3)) * time.Hour, Backoff: time.Duration(r.IntN(3)) * 10 * time.Minute,
	}
	f.Region.Down = scaling.ScaleDown{
		Mode: scaling.Auto, EmptyFor: time.Duration(r.IntN(2)*r.IntN(60)) * time.Minute, Cooldown: time.Duration(r.IntN(2)*r.IntN(60)) * time.Minute,
	}
	if f.one(3) {
		f.Region.Down.MaxConcurrent = ptr(1 + r.IntN(2))
	}
	for _, name := range []string{"std", "dev", "big"}[:1+r.IntN(3)] {
		f.Region.Types = append(f.Region.Types, f.kind(name))
	}
	return f
}

func (f *fleet) kind(name string) scaling.Type {
	t := scaling.Type{Name: name, Slack: f.rand.IntN(8), Expected: f.rand.IntN(10), MultiZone: f.one(4)}
	for range 1 + f.rand.IntN(3) {
		t.Sizes = append(t.Sizes, 1+f.rand.IntN(5))
	}
	if f.one(3) {
		t.Limit = ptr(t.Slack + f.rand.IntN(30))
	}
	if f.one(4) {
		t.MinPlanes = f.rand.IntN(3)
	}
	if f.one(4) {
		t.MaxPlanes = ptr(t.MinPlanes + f.rand.IntN(5))
	}
	return t
}

// one reports true once in n times.
func (f *fleet) one(n int) bool { return f.rand.IntN(n) == 0 }

func (f *fleet) say(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

func (f *fleet) story() string { return strings.Join(f.log[max(0, len(f.log)-60):], "\n") }

func (f *fleet) fatalf(format string, args ...any) {
	f.Helper()
	f.Fatalf("%s\nlast:\n%s", fmt.Sprintf(format, args...), f.story())
}

func (f *fleet) plane(name string) *scaling.Plane {
	i := slices.IndexFunc(f.Planes, func(p scaling.Plane) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Planes[i]
}

// happen runs one random event that the region does not cause.
func (f *fleet) happen() {
	f.Now = f.Now.Add(time.Duration(f.rand.IntN(600)) * time.Second)
	for n := range f.Planes {
		if f.one(2) {
			f.report(&f.Planes[n])
		}
	}
	switch f.rand.IntN(15) {
	case 0, 1, 2:
		f.order()
	case 12:
		f.lose()
	case 13:
		f.restore()
	case 14:
		f.giveUp()
	case 3:
		if n := len(f.Instances); n > 0 {
			f.Instances[f.rand.IntN(n)].Deleting = true
		}
	case 4:
		f.cancelled()
	case 5:
		f.whim()
	case 6:
		t := &f.Region.Types[f.rand.IntN(len(f.Region.Types))]
		*t = f.kind(t.Name)
	case 7:
		f.refuse()
	default:
		for range 3 {
			f.progress(f.one(8))
		}
	}
}

// cancelled makes data planes delete the instances that are being deleted, and then the hub delete
// their objects.
func (f *fleet) cancelled() {
	dying := func(i scaling.Instance) bool { return i.Deleting }
	for _, i := range f.Instances {
		if p := f.plane(i.Plane); dying(i) && p != nil {
			f.on[p.Name] = slices.DeleteFunc(f.on[p.Name], func(o scaling.Instance) bool { return o.UID == i.UID })
			f.report(p)
		}
	}
	f.Instances = slices.DeleteFunc(f.Instances, dying)
}

// report makes the agent of a data plane create what is listed, and report what is there.
func (f *fleet) report(p *scaling.Plane) {
	if p.Gone || p.Silent || p.Phase != scaling.Ready && p.Phase != scaling.Deprovisioning {
		return
	}
	for n := range f.Instances {
		i := &f.Instances[n]
		there := slices.ContainsFunc(f.on[p.Name], func(o scaling.Instance) bool { return o.UID == i.UID })
		r := slices.IndexFunc(p.Rooms, func(r scaling.Room) bool { return r.Type == i.Type })
		switch {
		case i.Plane != p.Name || there || i.Deleting:
		case f.picky[i.UID] || r >= 0 && f.says(p, r) < i.Units:
			f.refuseBy(i, p, r)
		default:
			f.on[p.Name] = append(f.on[p.Name], *i)
		}
	}
	f.told[p.Name] = slices.Clone(f.on[p.Name])
	p.Confirmed = p.Phase == scaling.Deprovisioning
	f.version[p.Name]++
	f.compare(p)
}

// compare updates the data plane from the last report, as its controller does.
func (f *fleet) compare(p *scaling.Plane) {
	if _, reported := f.told[p.Name]; !reported {
		return
	}
	p.Unlisted = nil
	known := map[string]int{}
	for _, o := range f.told[p.Name] {
		if !slices.ContainsFunc(f.Instances, func(i scaling.Instance) bool { return i.UID == o.UID && i.Plane == p.Name }) {
			p.Unlisted = append(p.Unlisted, o.Name)
			continue
		}
		known[o.Type] += o.Units
	}
	for n := range p.Rooms {
		r := &p.Rooms[n]
		r.Reported, r.Known, r.Remaining = true, known[r.Type], f.says(p, n)
		r.Used = r.Max - r.Remaining
	}
}

// says returns the number of remaining units of a type that the agent reports.
func (f *fleet) says(p *scaling.Plane, room int) int {
	r := p.Rooms[room]
	left := r.Max
	for _, o := range f.on[p.Name] {
		if o.Type == r.Type {
			left -= o.Units
		}
	}
	if room == 0 {
		left -= f.foreign[p.Name]
	}
	return min(max(left, 0), r.Max)
}

// rebuffed reports whether a data plane has refused an instance: a booking for it there may count
// or not, depending on what the data plane reports.
func (f *fleet) rebuffed(uid, plane string) bool {
	n := slices.IndexFunc(f.Instances, func(i scaling.Instance) bool { return i.UID == uid })
	return n >= 0 && slices.ContainsFunc(f.Instances[n].Refusals, func(r scaling.Refusal) bool { return r.Plane == plane })
}

// free returns the number of free units of a type on a data plane, as docs/fleet.md defines it.
func (f *fleet) free(p *scaling.Plane, kind string, placed int) int {
	r := p.Rooms[slices.IndexFunc(p.Rooms, func(r scaling.Room) bool { return r.Type == kind })]
	used := f.used(p.Name, kind) + placed
	if !r.Reported {
		return r.Max - used
	}
	return min(r.Max-used, r.Remaining-(used-min(r.Known, used-placed)))
}

// lose makes the hub lose an instance, as when somebody removes its finalizer by force.
func (f *fleet) lose() {
	if len(f.Instances) == 0 {
		return
	}
	n := f.rand.IntN(len(f.Instances))
	f.say("the hub loses %s, on %q", f.Instances[n].Name, f.Instances[n].Plane)
	f.Instances = slices.Delete(f.Instances, n, n+1)
}

// restore takes a backup of the hub, or restores one. The clusters keep their contents; data planes
// whose cluster was deleted or created since the backup are out of scope. Answers of agents from
// before the restore do not count.
func (f *fleet) restore() {
	if f.backup == nil || f.one(4) {
		s := f.Snapshot
		s.Planes, s.Instances = clonePlanes(s.Planes), slices.Clone(s.Instances)
		f.backup = &s
		return
	}
	f.say("the hub is restored")
	here := map[string]bool{}
	for _, p := range f.Planes {
		here[p.Name] = !p.Released && !p.Deleting
	}
	f.Planes = slices.DeleteFunc(clonePlanes(f.backup.Planes), func(p scaling.Plane) bool { return !here[p.Name] })
	f.Instances = slices.DeleteFunc(slices.Clone(f.backup.Instances), func(i scaling.Instance) bool { return i.Plane != "" && !here[i.Plane] })
	for n := range f.Planes {
		f.Planes[n].Confirmed = false
		f.version[f.Planes[n].Name]++
	}
}

func clonePlanes(all []scaling.Plane) []scaling.Plane {
	out := slices.Clone(all)
	for n := range out {
		out[n].Rooms, out[n].Bookings = slices.Clone(out[n].Rooms), slices.Clone(out[n].Bookings)
	}
	return out
}

// giveUp makes a person delete unknown instances on a data plane, or give them up.
func (f *fleet) giveUp() {
	for n := range f.Planes {
		p := &f.Planes[n]
		if len(p.Unlisted) == 0 {
			continue
		}
		if p.Discard = f.one(3); !p.Discard {
			f.on[p.Name] = slices.DeleteFunc(f.on[p.Name], func(o scaling.Instance) bool { return slices.Contains(p.Unlisted, o.Name) })
			f.report(p)
		}
		f.say("a person ends what is unlisted on %s, or gives it up: %t", p.Name, p.Discard)
		return
	}
}

// order adds a new instance.
func (f *fleet) order() {
	f.serial++
	t := f.Region.Types[f.rand.IntN(len(f.Region.Types))]
	f.picky[fmt.Sprint(f.serial)] = f.one(8)
	i := scaling.Instance{Name: fmt.Sprintf("t/i%d", f.serial), UID: fmt.Sprint(f.serial), Created: f.Now, Type: t.Name, Units: t.Sizes[f.rand.IntN(len(t.Sizes))]}
	if f.one(12) && len(f.Planes) > 0 {
		i.Pin = f.Planes[f.rand.IntN(len(f.Planes))].Name
	}
	f.Instances = append(f.Instances, i)
}

// whim is a random action of an administrator, or of an agent, on a data plane.
func (f *fleet) whim() {
	if len(f.Planes) == 0 {
		return
	}
	p := &f.Planes[f.rand.IntN(len(f.Planes))]
	f.version[p.Name]++
	switch f.rand.IntN(8) {
	case 7:
		if p.Phase == scaling.Ready {
			f.say("the cluster of %s is gone", p.Name)
			p.Gone, f.on[p.Name] = true, nil
		}
	case 6:
		f.foreign[p.Name] = f.rand.IntN(5) - 2
	case 0:
		p.Silent = !p.Silent
	case 1:
		p.Cordoned = !p.Cordoned
	case 2:
		p.Protected = !p.Protected
	case 3:
		p.Unreadable = map[bool]string{true: "x"}[p.Unreadable == ""]
	case 4:
		p.Deleting = f.one(4) || p.Deleting
	case 5:
		f.serial++
		name := fmt.Sprintf("hand%d", f.serial)
		made := scaling.Plane{Name: name, Created: f.Now, Since: f.Now, Phase: scaling.Ready, Managed: f.one(2), MultiZone: f.one(3)}
		for _, t := range f.Region.Types {
			if f.one(2) {
				made.Rooms = append(made.Rooms, scaling.Room{Type: t.Name, Max: f.rand.IntN(10)})
			}
		}
		f.Planes = append(f.Planes, made)
	}
}

// refuse makes a data plane refuse an instance.
func (f *fleet) refuse() {
	for n := range f.Instances {
		i := &f.Instances[n]
		if i.Plane == "" || i.Deleting {
			continue
		}
		p := f.plane(i.Plane)
		if p == nil {
			return
		}
		f.refuseBy(i, p, slices.IndexFunc(p.Rooms, func(r scaling.Room) bool { return r.Type == i.Type }))
		return
	}
}

// refuseBy makes p refuse i, with or without lack of room, and report it to the hub.
func (f *fleet) refuseBy(i *scaling.Instance, p *scaling.Plane, room int) {
	f.say("%s refuses %s", p.Name, i.Name)
	f.on[p.Name] = slices.DeleteFunc(f.on[p.Name], func(o scaling.Instance) bool { return o.UID == i.UID })
	r := scaling.Refusal{Plane: p.Name, Until: f.Now.Add(10 * time.Minute), Vacant: len(f.on[p.Name]) == 0}
	if room >= 0 {
		r.Remaining = f.says(p, room)
	}
	for _, before := range i.Refusals {
		if before.Plane == p.Name {
			r.Remaining, r.Vacant = max(r.Remaining, before.Remaining), r.Vacant || before.Vacant
		}
	}
	i.Refusals = append(slices.DeleteFunc(slices.Clone(i.Refusals), func(b scaling.Refusal) bool { return b.Plane == p.Name }), r)
	i.Plane = ""
}

// progress advances one data plane.
func (f *fleet) progress(bad bool) {
	if len(f.Planes) == 0 {
		return
	}
	n := f.rand.IntN(len(f.Planes))
	p := &f.Planes[n]
	f.version[p.Name]++
	switch {
	case p.Released || p.Deleting || p.Phase == scaling.Cleanup:
		f.gone(n)
	case p.Phase == scaling.Ready, p.Phase == scaling.Deprovisioning, p.Phase == scaling.Failed:
	case bad:
		p.Phase, p.Since = scaling.Failed, f.Now
	default:
		f.come(p)
	}
}

func (f *fleet) come(p *scaling.Plane) {
	p.Phase, p.Since = scaling.Ready, f.Now
	for i := range p.Rooms {
		switch r := &p.Rooms[i]; {
		case f.meagre:
			r.Max = f.rand.IntN(4)
		case r.Max == 0:
			r.Max = 1 + f.rand.IntN(9)
		}
	}
	f.say("%s is Ready: %v", p.Name, p.Rooms)
}

// gone deletes a data plane with everything on it: only a person who deletes it by hand loses
// instances.
func (f *fleet) gone(n int) {
	p := f.Planes[n]
	for i := range f.Instances {
		if f.Instances[i].Plane == p.Name && !p.Deleting {
			f.fatalf("%s goes, and %s is on it", p.Name, f.Instances[i].Name)
		}
	}
	if len(f.on[p.Name]) > 0 && !p.Discard && !p.Deleting {
		f.fatalf("%s goes, and %+v is on it", p.Name, f.on[p.Name])
	}
	delete(f.on, p.Name)
	delete(f.told, p.Name)
	f.Instances = slices.DeleteFunc(f.Instances, func(i scaling.Instance) bool { return i.Plane == p.Name })
	f.Planes = slices.Delete(f.Planes, n, n+1)
	f.say("%s is gone", p.Name)
}

// do executes a plan that was computed for these versions of the data planes. Sometimes a step is
// lost, as in a crash; a step for a data plane that has changed is refused.
func (f *fleet) do(p scaling.Plan, seen map[string]int, lossy bool) {
	for _, s := range p.Steps {
		switch {
		case lossy && f.one(15):
			f.say("lost: %s", s)
		case s.DataPlane != "" && f.version[s.DataPlane] != seen[s.DataPlane]:
			f.say("refused: %s", s)
		default:
			f.say("%s", s)
			f.step(s, lossy)
			if s.DataPlane != "" {
				f.version[s.DataPlane]++
				seen[s.DataPlane] = f.version[s.DataPlane]
			}
		}
	}
}

func (f *fleet) step(s scaling.Step, lossy bool) {
	p := f.plane(s.DataPlane)
	if s.Verb != scaling.Create && p == nil {
		f.fatalf("%s: there is no such data plane", s)
	}
	switch s.Verb {
	case scaling.Create:
		f.serial++
		name := fmt.Sprintf("dp%d", f.serial)
		room := scaling.Room{Type: s.Type, Max: f.typed(s.Type).Expected}
		f.Planes = append(f.Planes, scaling.Plane{Name: name, Created: f.Now, Managed: true, MultiZone: s.MultiZone, Rooms: []scaling.Room{room}})
	case scaling.Fail:
		p.Phase, p.Since = scaling.Failed, f.Now
	case scaling.Forget:
		f.Planes = slices.DeleteFunc(f.Planes, func(p scaling.Plane) bool { return p.Name == s.DataPlane })
	case scaling.Remove:
		p.Phase, p.Since, p.Confirmed = scaling.Deprovisioning, f.Now, false
	case scaling.Restore:
		p.Phase = scaling.Ready
	case scaling.Release:
		if used := f.used(p.Name, ""); used > 0 {
			f.fatalf("%s, and %d units of it are used", s, used)
		}
		if len(f.on[p.Name]) > 0 && !p.Discard {
			f.fatalf("%s, and %+v is on it", s, f.on[p.Name])
		}
		p.Released = true
	case scaling.Unbook:
		p.Bookings = slices.DeleteFunc(p.Bookings, func(b scaling.Booking) bool { return b.Instance == s.Instance })
	case scaling.Place:
		f.bind(s, p, lossy)
	}
}

func (f *fleet) typed(name string) scaling.Type {
	return f.Region.Types[slices.IndexFunc(f.Region.Types, func(t scaling.Type) bool { return t.Name == name })]
}

// bind books a place, then writes it to the instance.
func (f *fleet) bind(s scaling.Step, p *scaling.Plane, lossy bool) {
	n := slices.IndexFunc(f.Instances, func(i scaling.Instance) bool { return i.Name == s.Instance })
	if n < 0 {
		return // it was deleted, and the write is refused
	}
	i := &f.Instances[n]
	if p.Gone {
		f.fatalf("%s: its cluster is gone", s)
	}
	if p.Phase != scaling.Ready || p.Released || p.Deleting {
		f.fatalf("%s: it is %s", s, p.Phase)
	}
	if !slices.ContainsFunc(p.Bookings, func(b scaling.Booking) bool { return b.UID == i.UID }) {
		p.Bookings = append(p.Bookings, scaling.Booking{Instance: i.Name, UID: i.UID, Type: s.Type, Units: s.Units})
		r := slices.IndexFunc(p.Rooms, func(r scaling.Room) bool { return r.Type == s.Type })
		if r < 0 || f.used(p.Name, s.Type) > p.Rooms[r].Max {
			f.fatalf("%s: that makes %d units of %v", s, f.used(p.Name, s.Type), p.Rooms)
		}
	}
	if lossy && f.one(8) || i.Plane != "" {
		return // interrupted between the two writes, or another writer was faster
	}
	i.Plane = p.Name
}

// used returns the number of bound or booked units of a data plane; of all types if kind is "".
func (f *fleet) used(name, kind string) int {
	sum := 0
	for _, i := range f.Instances {
		if i.Plane == name && (kind == "" || i.Type == kind) {
			sum += i.Units
		}
	}
	for _, b := range f.plane(name).Bookings {
		alive := slices.ContainsFunc(f.Instances, func(i scaling.Instance) bool { return i.UID == b.UID && i.Plane == "" })
		if alive && !f.plane(name).Gone && !f.rebuffed(b.UID, name) && (kind == "" || b.Type == kind) {
			sum += b.Units
		}
	}
	return sum
}

func TestHistories(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-scaling.seed=%d", s)
	r := rand.New(rand.NewPCG(s, 1))
	histories, longest := 0, 0
	defer func() { t.Logf("%d histories; the longest took %d passes to settle", histories, longest) }()
	for done := 0; done < *steps && !t.Failed(); {
		f := newFleet(t, r)
		for range 80 {
			done++
			f.happen()
			if f.one(4) {
				f.editRegion()
			}
			f.pass(true)
		}
		if f.one(2) {
			f.leaveAlone()
		}
		f.mendRegion()
		f.converge()
		histories, longest = histories+1, max(longest, f.rounds)
	}
}

// pass decides and acts; sometimes a second process has decided at the same time.
func (f *fleet) pass(lossy bool) scaling.Plan {
	plan := scaling.Decide(f.Snapshot)
	f.check(plan)
	seen := map[string]int{}
	for _, p := range f.Planes {
		seen[p.Name] = f.version[p.Name]
	}
	stale := map[string]int{}
	for k, v := range seen {
		stale[k] = v
	}
	f.do(plan, seen, lossy)
	if lossy && f.one(5) {
		f.say("a second process:")
		second := plan
		// Creations and deletions are recorded in the FleetRegion first, which refuses the second
		// process.
		second.Steps = slices.DeleteFunc(slices.Clone(plan.Steps), func(s scaling.Step) bool {
			return s.Verb == scaling.Create || s.Verb == scaling.Forget
		})
		f.do(second, stale, lossy)
	}
	f.noteEmpty()
	return plan
}

// noteEmpty records since when each data plane is empty, as its controller does.
func (f *fleet) noteEmpty() {
	for n := range f.Planes {
		p := &f.Planes[n]
		switch {
		case f.used(p.Name, "") > 0:
			p.EmptySince = time.Time{}
		case p.EmptySince.IsZero():
			p.EmptySince = f.Now
		}
		if f.one(2) {
			f.compare(p)
		}
	}
}

// converge lets everything succeed from now on, without random events. The region settles, and does
// not create again what it removes.
func (f *fleet) converge() {
	f.say("from here on all goes well")
	removed := map[string]string{}
	quiet := 0
	for f.rounds = range 400 {
		f.Now = f.Now.Add(30 * time.Minute)
		f.giveUp()
		for n := range f.Planes {
			f.Planes[n].Unreadable, f.Planes[n].Silent = "", false
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
		plan := f.pass(false)
		for _, s := range plan.Steps {
			switch s.Verb {
			case scaling.Remove:
				if f.plane(s.DataPlane).Gone {
					continue
				}
				for _, r := range f.plane(s.DataPlane).Rooms {
					removed[r.Type] = s.DataPlane
				}
			case scaling.Place, scaling.Fail, scaling.Restore:
				clear(removed) // something else has changed
			case scaling.Create:
				if dp := removed[s.Type]; dp != "" {
					f.fatalf("%s, and %s was removed before", s, dp)
				}
			}
		}
		if len(plan.Steps) > 0 || f.waiting() {
			quiet = 0
			continue
		}
		if quiet++; quiet > 8 { // longer than any backoff, emptyFor or cooldown
			return
		}
	}
	f.fatalf("it never settles: %d data planes, %+v", len(f.Planes), scaling.Decide(f.Snapshot).Types)
}

// waiting reports whether a data plane is on its way, or is being removed.
func (f *fleet) waiting() bool {
	return slices.ContainsFunc(f.Planes, func(p scaling.Plane) bool {
		return p.Released || p.Deleting || !slices.Contains([]scaling.Phase{scaling.Ready, scaling.Failed}, p.Phase)
	})
}

// check checks what must hold for every plan.
func (f *fleet) check(p scaling.Plan) {
	f.checkOrder(p)
	f.checkExplained(p)
	f.checkLimits(p)
	f.checkFlight(p)
	f.checkRest(p)
	f.checkFlapping(p)
}

func (f *fleet) checkOrder(p scaling.Plan) {
	s := f.Snapshot
	s.Planes, s.Instances, s.Region.Types = slices.Clone(s.Planes), slices.Clone(s.Instances), slices.Clone(s.Region.Types)
	f.rand.Shuffle(len(s.Planes), func(i, j int) { s.Planes[i], s.Planes[j] = s.Planes[j], s.Planes[i] })
	f.rand.Shuffle(len(s.Instances), func(i, j int) { s.Instances[i], s.Instances[j] = s.Instances[j], s.Instances[i] })
	f.rand.Shuffle(len(s.Region.Types), func(i, j int) { s.Region.Types[i], s.Region.Types[j] = s.Region.Types[j], s.Region.Types[i] })
	if again := scaling.Decide(s); !reflect.DeepEqual(p, again) {
		f.fatalf("the order of the lists matters:\n%+v\n%+v", p, again)
	}
}

// checkExplained checks that each object has exactly one decision, with a reason and a message.
func (f *fleet) checkExplained(p scaling.Plan) {
	if len(p.Types) != len(f.Region.Types) {
		f.fatalf("%d types have a decision, of %d", len(p.Types), len(f.Region.Types))
	}
	told := map[string]scaling.Decision{}
	tell := func(what string, d scaling.Decision) {
		if _, twice := told[what]; twice || d.Action == "" || d.Reason == "" || d.Message == "" {
			f.fatalf("%s is not told of once and in full: %+v", what, d)
		}
		told[what] = d
	}
	for _, t := range p.Types {
		tell("type "+t.Name, t.Decision)
	}
	for _, r := range p.Planes {
		tell(r.Name, r.Decision)
	}
	for _, l := range p.Placements {
		tell(l.Instance, l.Decision)
	}
	for _, dp := range f.Planes {
		judged := dp.Managed && !dp.Deleting && !dp.Released && dp.Unreadable == "" && (dp.Phase == scaling.Ready || dp.Phase == scaling.Deprovisioning)
		if _, is := told[dp.Name]; is != judged {
			f.fatalf("%s is told of: %t, want %t", dp.Name, is, judged)
		}
	}
	for _, i := range f.Instances {
		if _, is := told[i.Name]; is != (i.Plane == "" && !i.Deleting) {
			f.fatalf("%+v is told of: %t", i, is)
		}
	}
	for _, s := range p.Steps {
		if s.Reason == "" || s.Message == "" {
			f.fatalf("%+v does not say why", s)
		}
		if d, is := told[s.DataPlane]; is && slices.Contains([]scaling.Verb{scaling.Remove, scaling.Restore, scaling.Release}, s.Verb) && d.Action != s.Verb {
			f.fatalf("%s, and what is told of it is %+v", s, d)
		}
	}
}

// checkLimits checks that placements stay within the limit and within each data plane.
func (f *fleet) checkLimits(p scaling.Plan) {
	committed, more := map[string]int{}, map[string]int{}
	free := map[string]int{}
	counted := map[string]bool{}
	for _, dp := range f.Planes {
		for _, r := range dp.Rooms {
			free[dp.Name+" "+r.Type] = f.free(&dp, r.Type, 0)
		}
		for _, b := range dp.Bookings {
			if dp.Managed && !dp.Deleting && !dp.Released && dp.Phase != scaling.Failed && !dp.Gone && !f.rebuffed(b.UID, dp.Name) {
				counted[b.UID] = true
			}
		}
	}
	for _, i := range f.Instances {
		at := f.plane(i.Plane)
		if i.Plane != "" && (at == nil || at.Managed) || i.Plane == "" && counted[i.UID] {
			committed[i.Type] += i.Units
		}
	}
	for _, s := range p.StepsOf(scaling.Place) {
		if s.Reason == scaling.Booked {
			continue
		}
		if free[s.DataPlane+" "+s.Type] -= s.Units; free[s.DataPlane+" "+s.Type] < 0 {
			f.fatalf("%s: it is overfilled by %d: %+v, used %d, %+v", s, -free[s.DataPlane+" "+s.Type], f.plane(s.DataPlane), f.used(s.DataPlane, s.Type), p.StepsOf(scaling.Place))
		}
		if f.plane(s.DataPlane).Managed {
			more[s.Type] += s.Units
		}
	}
	for _, t := range f.Region.Types {
		if t.Limit != nil && more[t.Name] > 0 && committed[t.Name]+more[t.Name] > *t.Limit {
			f.fatalf("%s: %d units are used, %d more are placed, and the limit is %d", t.Name, committed[t.Name], more[t.Name], *t.Limit)
		}
	}
}

// checkFlight checks that no more data planes than allowed are on their way, and that none is
// created during a backoff.
func (f *fleet) checkFlight(p scaling.Plan) {
	made := map[string]int{}
	for _, s := range p.StepsOf(scaling.Create) {
		made[s.Type]++
	}
	for name, n := range made {
		t := f.typed(name)
		var onWay, all int
		for _, dp := range f.Planes {
			if !dp.Managed || dp.Deleting || dp.Released || dp.Unreadable != "" || !takes(dp, name) {
				continue
			}
			late := f.Region.Up.Timeout > 0 && !f.Now.Before(dp.Created.Add(f.Region.Up.Timeout))
			switch dp.Phase {
			case "", scaling.Accepted, scaling.Provisioning, scaling.Provisioned, scaling.WaitingForAgent:
				if !late {
					onWay, all = onWay+1, all+1
				}
			case scaling.Ready:
				if !dp.Gone {
					all++
				}
			}
		}
		if onWay+n > f.Region.Up.MaxInFlight {
			f.fatalf("%d of %s are on their way, %d are made, and there may be %d", onWay, name, n, f.Region.Up.MaxInFlight)
		}
		if t.MaxPlanes != nil && all+n > *t.MaxPlanes {
			f.fatalf("%d of %s are there, %d are made, and there may be %d", all, name, n, *t.MaxPlanes)
		}
		f.checkBackoff(name)
	}
}

func takes(p scaling.Plane, kind string) bool {
	return slices.ContainsFunc(p.Rooms, func(r scaling.Room) bool { return r.Type == kind })
}

// checkBackoff checks that a data plane marked for removal, which has been Ready, ends a series of
// failures as others do.
func (f *fleet) checkBackoff(kind string) {
	var success time.Time
	for _, dp := range f.Planes {
		came := dp.Phase == scaling.Ready || dp.Phase == scaling.Deprovisioning
		if dp.Managed && takes(dp, kind) && came && !dp.Deleting && !dp.Released && dp.Unreadable == "" && dp.Created.After(success) {
			success = dp.Created
		}
	}
	wait := f.Region.Up.Backoff
	for _, dp := range f.Planes {
		if !dp.Managed || !takes(dp, kind) || !dp.Created.After(success) || dp.Deleting || dp.Released || dp.Unreadable != "" {
			continue
		}
		late := f.Region.Up.Timeout > 0 && !f.Now.Before(dp.Created.Add(f.Region.Up.Timeout))
		if dp.Phase == scaling.Failed && f.Now.Before(dp.Since.Add(wait)) || late && dp.Phase != scaling.Failed && dp.Phase != scaling.Deprovisioning && wait > 0 {
			f.fatalf("one more of %s is made, though %s failed at %s", kind, dp.Name, dp.Since)
		}
	}
}

// checkRest checks that the region has what the documentation promises without the data planes that
// are removed. It implements the text of the documentation independently, and is slow.
func (f *fleet) checkRest(p scaling.Plan) {
	going := map[string]bool{}
	for _, s := range append(p.StepsOf(scaling.Remove), p.StepsOf(scaling.Release)...) {
		if !f.plane(s.DataPlane).Gone { // nothing is lost with these
			going[s.DataPlane] = true
		}
	}
	if len(going) == 0 {
		return
	}
	placed := map[string]int{}
	for _, s := range p.StepsOf(scaling.Place) {
		if s.Reason != scaling.Booked {
			placed[s.DataPlane+" "+s.Type] += s.Units
		}
		if going[s.DataPlane] {
			f.fatalf("%s, and it goes", s)
		}
	}
	restored := map[string]bool{}
	for _, s := range p.StepsOf(scaling.Restore) {
		restored[s.DataPlane] = true
	}
	for _, t := range f.Region.Types {
		if !slices.ContainsFunc(f.Planes, func(dp scaling.Plane) bool { return going[dp.Name] && takes(dp, t.Name) }) {
			continue
		}
		var planes, free, most, committed int
		var newest time.Time
		var last string
		dwarf := false
		biggest := slices.Max(t.Sizes)
		for _, dp := range f.Planes {
			here := dp.Phase == scaling.Ready || restored[dp.Name]
			if dp.Gone || going[dp.Name] || !dp.Managed || !here || dp.Deleting || dp.Released || dp.Unreadable != "" || !takes(dp, t.Name) {
				continue
			}
			planes++
			if dp.Silent || dp.Cordoned || dp.MultiZone != t.MultiZone {
				continue
			}
			has := dp.Rooms[slices.IndexFunc(dp.Rooms, func(r scaling.Room) bool { return r.Type == t.Name })].Max
			used := f.used(dp.Name, t.Name) + placed[dp.Name+" "+t.Name]
			left := f.free(&dp, t.Name, placed[dp.Name+" "+t.Name])
			free, most = free+left, max(most, left)
			if !dp.Created.Before(newest) && (dp.Created.After(newest) || dp.Name > last) {
				newest, last, dwarf = dp.Created, dp.Name, used == 0 && has < biggest
			}
		}
		for _, i := range f.Instances {
			if at := f.plane(i.Plane); i.Type == t.Name && i.Plane != "" && (at == nil || at.Managed) {
				committed += i.Units
			}
		}
		for key, units := range placed {
			if name, kind, _ := strings.Cut(key, " "); kind == t.Name && f.plane(name).Managed {
				committed += units
			}
		}
		if planes < t.MinPlanes {
			f.fatalf("%d of %s are left, and minDataPlanes is %d: %s", planes, t.Name, t.MinPlanes, p)
		}
		if t.Limit != nil && committed >= *t.Limit {
			continue
		}
		left := 1 << 30
		if t.Limit != nil {
			left = *t.Limit - committed
		}
		admitted := 0
		for _, units := range t.Sizes {
			if units <= left {
				admitted = max(admitted, units)
			}
		}
		tooBig := t.Expected > 0 && t.Expected < biggest || dwarf
		switch {
		case admitted == 0, most >= admitted && free >= left:
		case most < biggest && !tooBig, free <= t.Slack:
			// Bookings that are not in a status yet count, too, and so do those that name a
			// restored data plane; they are rare enough to be ignored.
			named := slices.ContainsFunc(f.Instances, func(i scaling.Instance) bool { return i.Plane == "" && restored[i.Pin] })
			if !f.booked(t.Name) && !named {
				f.fatalf("of %s %d units would be free, %d in one, the slack is %d and the biggest size %d: %s", t.Name, free, most, t.Slack, biggest, p)
			}
		}
	}
}

func (f *fleet) booked(kind string) bool {
	return slices.ContainsFunc(f.Planes, func(p scaling.Plane) bool {
		return slices.ContainsFunc(p.Bookings, func(b scaling.Booking) bool { return b.Type == kind })
	})
}

// checkFlapping checks that, if all removed data planes were deleted at once, nothing would be
// created that is not created now.
func (f *fleet) checkFlapping(p scaling.Plan) {
	made := map[string]bool{}
	for _, s := range p.StepsOf(scaling.Create) {
		made[s.Type] = true
	}
	gone := map[string]bool{} // the types of removed data planes: others lose nothing
	after := f.Snapshot
	after.Planes, after.Instances = slices.Clone(f.Planes), slices.Clone(f.Instances)
	for _, s := range p.StepsOf(scaling.Place) {
		n := slices.IndexFunc(after.Instances, func(i scaling.Instance) bool { return i.Name == s.Instance })
		after.Instances[n].Plane = s.DataPlane
	}
	for _, s := range append(p.StepsOf(scaling.Remove), p.StepsOf(scaling.Release)...) {
		dp := *f.plane(s.DataPlane)
		for _, r := range dp.Rooms {
			if dp.Gone {
				continue
			}
			gone[r.Type] = true
			if made[r.Type] && s.Verb == scaling.Remove {
				f.fatalf("one of %s is made, and %s removed: %s\n%+v\n%+v", r.Type, dp.Name, p, f.Planes, p.Types)
			}
		}
		after.Planes = slices.DeleteFunc(after.Planes, func(p scaling.Plane) bool { return p.Name == dp.Name })
	}
	kept := after
	kept.Planes = slices.Clone(f.Planes)
	for _, s := range p.StepsOf(scaling.Restore) {
		kept.Planes[slices.IndexFunc(kept.Planes, func(p scaling.Plane) bool { return p.Name == s.DataPlane })].Phase = scaling.Ready
		after.Planes[slices.IndexFunc(after.Planes, func(p scaling.Plane) bool { return p.Name == s.DataPlane })].Phase = scaling.Ready
	}
	if len(p.StepsOf(scaling.Remove))+len(p.StepsOf(scaling.Release)) == 0 {
		return
	}
	was := map[string]scaling.Decision{}
	comesBack := len(p.StepsOf(scaling.Restore))+len(p.StepsOf(scaling.Unbook)) > 0
	for _, t := range p.Types {
		if comesBack && t.PendingUnits > 0 {
			continue // waiting instances find a place on a restored data plane
		}
		was[t.Name] = t.Decision
	}
	// A data plane may be created whatever is removed: because of what is restored, or of what is
	// placed.
	anyway := map[string]bool{}
	for _, s := range scaling.Decide(kept).StepsOf(scaling.Create) {
		anyway[s.Type] = true
	}
	for _, s := range scaling.Decide(after).StepsOf(scaling.Create) {
		enough := []scaling.Reason{scaling.Sufficient, scaling.LimitReached, scaling.LimitCovered, scaling.BiggestFitsNowhere}
		if gone[s.Type] && !anyway[s.Type] && slices.Contains(enough, was[s.Type].Reason) {
			f.fatalf("%s, which was not needed before %s", s, p)
		}
	}
}
