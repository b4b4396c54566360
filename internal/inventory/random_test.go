package inventory

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var (
	seed  = flag.Uint64("inventory.seed", 0, "seed of the random books; 0 takes one from the clock")
	books = flag.Int("inventory.books", 5000, "how many random books are made")
)

// one is one of those.
func one(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// some are a few of those, in any order, and none of them twice.
func some(r *rand.Rand, of ...string) []string {
	out := slices.Clone(of)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:r.IntN(len(out)+1)]
}

// anything is a snapshot of whatever may be there, though it makes no sense.
func anything(r *rand.Rand) Snapshot {
	names := []string{"a", "b", "c", "d"}
	s := Snapshot{Listed: some(r, names...), Recorded: map[string]Entry{}, Customizations: map[string]Customization{}, Pending: some(r, "n1", "n2", "n3")}
	holders := []string{"", "", "p1", "p2", "n1", "n2", "n3", "q1"}
	for _, name := range some(r, names...) {
		s.Customizations[name] = Customization{
			Version: one(r, "1", "2"), Holder: one(r, holders...), Deleting: r.IntN(6) == 0, Fault: one(r, "", "", "", "it does not apply"),
		}
	}
	for _, name := range some(r, append(names, "gone")...) {
		s.Recorded[name] = Entry{
			Version: one(r, "", "1", "2"), Attempts: r.IntN(MaxAttempts + 1), Cluster: one(r, holders...), Failed: one(r, "", "p1", "p0"),
			Status: hivev1.InventoryStatus(one(r, string(hivev1.InventoryAvailable), string(hivev1.InventoryReserved), string(hivev1.InventoryMissing))),
		}
	}
	for _, name := range some(r, "p1", "p2", "p3") {
		c := Cluster{Name: name, Customization: one(r, append(names, "")...), Version: one(r, "", "1", "2"), Claimed: r.IntN(3) == 0}
		c.Installed = r.IntN(2) == 0
		c.Failed = !c.Installed && r.IntN(2) == 0
		s.Clusters = append(s.Clusters, c)
	}
	return s
}

// shuffled is the same, in another order where the order says nothing. Which of the
// recorded names came first does say something.
func shuffled(r *rand.Rand, s Snapshot) Snapshot {
	s.Clusters = slices.Clone(s.Clusters)
	r.Shuffle(len(s.Clusters), func(i, j int) { s.Clusters[i], s.Clusters[j] = s.Clusters[j], s.Clusters[i] })
	s.Recorded, s.Customizations = maps.Clone(s.Recorded), maps.Clone(s.Customizations)
	return s
}

func TestRandomBooks(t *testing.T) {
	from := *seed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("-inventory.seed=%d", from)
	for n := range uint64(*books) {
		r := rand.New(rand.NewPCG(from+n, 1))
		s := anything(r)
		b := Decide(s)
		again := s
		again.Recorded = b.Entries
		for what, wrong := range map[string]string{
			"the order of its lists":      cmp.Diff(b, Decide(shuffled(r, s)), cmpopts.EquateEmpty()),
			"that they were kept already": cmp.Diff(b, Decide(again), cmpopts.EquateEmpty()),
			"":                            s.wrong(b),
		} {
			if wrong != "" {
				t.Fatalf("seed %d, %s: %s\n%+v\n%+v", from+n, what, wrong, s, b)
			}
		}
	}
}

// wrong says what is wrong with the books of s; "" when nothing is.
func (s Snapshot) wrong(b Plan) string {
	for _, check := range []func(Plan) string{s.wrongEntries, s.wrongFree, s.wrongHomes, s.wrongVerdicts} {
		if wrong := check(b); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (s Snapshot) wrongEntries(b Plan) string {
	for _, name := range s.Listed {
		if _, ok := b.Entries[name]; !ok {
			return name + " is listed, and not in the books"
		}
	}
	user := map[string]string{}
	for name, e := range b.Entries {
		was, known := s.Recorded[name]
		switch {
		case e.Attempts < 0 || e.Attempts > MaxAttempts:
			return fmt.Sprintf("%s has %d attempts left", name, e.Attempts)
		case known && e.Attempts < was.Attempts-1 || !known && e.Attempts < MaxAttempts-1:
			return fmt.Sprintf("%s has %d attempts left after %d", name, e.Attempts, was.Attempts)
		case e.Status == hivev1.InventoryBrokenByCloud && e.Attempts > 0:
			return fmt.Sprintf("%s counts as broken and has %d attempts left", name, e.Attempts)
		case e.Cluster != "" && user[e.Cluster] != "":
			return fmt.Sprintf("%s uses both %s and %s", e.Cluster, name, user[e.Cluster])
		case !slices.Contains(s.Listed, name) && e.Status != hivev1.InventoryToBeDeleted:
			return fmt.Sprintf("%s is not listed, and %s", name, e.Status)
		case !slices.Contains(s.Listed, name) && e.Cluster == "":
			return fmt.Sprintf("%s is neither listed nor used", name)
		}
		user[e.Cluster] = name
		delete(user, "")
	}
	return ""
}

// wrongFree checks Free: its customizations are listed, exist, have no holder and apply. Those with
// the fewest failures come first, then those first in the list.
func (s Snapshot) wrongFree(b Plan) string {
	for i, name := range b.Free {
		c, exists := s.Customizations[name]
		e := b.Entries[name]
		used := slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return c.Customization == name })
		if !exists || c.Deleting || c.Fault != "" || c.Holder != "" || used || !slices.Contains(s.Listed, name) ||
			e.Status != hivev1.InventoryAvailable || e.Cluster != "" || e.Attempts == 0 || slices.Contains(b.Free[:i], name) {
			return name + " is said to be free"
		}
		if i == 0 {
			continue
		}
		last := b.Free[i-1]
		if more := b.Entries[last].Attempts - e.Attempts; more < 0 || more == 0 && slices.Index(s.Listed, last) > slices.Index(s.Listed, name) {
			return fmt.Sprintf("%s is taken before %s", last, name)
		}
	}
	for name, e := range b.Entries {
		if e.Status == hivev1.InventoryAvailable && !slices.Contains(b.Free, name) {
			return name + " is available, and cannot be taken"
		}
	}
	return ""
}

// wrongHomes: each recorded name has a customization to itself, or is dropped, and that
// only if none is free.
func (s Snapshot) wrongHomes(b Plan) string {
	for _, name := range s.Pending {
		home := b.Assigned[name]
		switch {
		case (home == "") != slices.Contains(b.Unassigned, name):
			return fmt.Sprintf("%s has %q, homeless are %v", name, home, b.Unassigned)
		case home == "" && len(b.Free) > 0:
			return fmt.Sprintf("%s is dropped, and %v are free", name, b.Free)
		case home != "" && (b.Entries[home].Cluster != name || slices.Contains(b.Free, home)):
			return fmt.Sprintf("%s has %s, which is %+v", name, home, b.Entries[home])
		case home != "" && s.Customizations[home].Holder != "" && s.Customizations[home].Holder != name:
			return fmt.Sprintf("%s has %s, which another cluster has", name, home)
		}
	}
	if len(b.Assigned)+len(b.Unassigned) != len(s.Pending) {
		return fmt.Sprintf("%d names, of which %d have a home and %d have none", len(s.Pending), len(b.Assigned), len(b.Unassigned))
	}
	return ""
}

// wrongVerdicts: only unclaimed clusters are replaced, for what is wrong with theirs.
func (s Snapshot) wrongVerdicts(b Plan) string {
	for _, c := range s.Clusters {
		with := s.Customizations[c.Customization]
		other := with.Holder != "" && with.Holder != c.Name
		if displaced := b.Displaced[c.Name] != ""; displaced != (other && !c.Claimed) {
			return fmt.Sprintf("%s is displaced: %t", c.Name, displaced)
		}
		if b.Outdated[c.Name] != "" && (c.Claimed || c.Customization == "" || b.Displaced[c.Name] != "") {
			return c.Name + " is outdated"
		}
	}
	return ""
}
