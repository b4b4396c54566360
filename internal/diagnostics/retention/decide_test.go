package retention_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/diagnostics/retention"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bundles parses "name cluster age size" entries; ages are in hours.
func bundles(entries ...string) []retention.Bundle {
	var out []retention.Bundle
	for _, e := range entries {
		var b retention.Bundle
		var hours int
		if _, err := fmt.Sscanf(e, "%s %s %d %d", &b.Name, &b.Cluster, &hours, &b.Size); err != nil {
			panic(err)
		}
		b.OnRequest = strings.HasPrefix(b.Name, "r")
		b.At = noon.Add(-time.Duration(hours) * time.Hour)
		out = append(out, b)
	}
	return out
}

func names(list []retention.Bundle) string {
	var out []string
	for _, b := range list {
		out = append(out, b.Name)
	}
	return strings.Join(out, " ")
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		in   []retention.Bundle
		want string
	}{
		"nothing of nothing":                        {nil, ""},
		"what is old goes":                          {bundles("a x 25 1", "b x 24 1"), "a"},
		"also the last of its cluster":              {bundles("a x 25 1"), "a"},
		"the oldest go when there is too much":      {bundles("a x 3 40", "b x 2 40", "c x 1 40"), "a"},
		"the last of each cluster goes last":        {bundles("a y 9 40", "b x 2 40", "c x 1 40"), "b"},
		"but it goes if there is too much of them":  {bundles("a y 9 60", "b x 2 40", "c x 1 60"), "b a"},
		"even a single one that is too large":       {bundles("a y 9 101"), "a"},
		"requests have at most half":                {bundles("ra x 3 30", "rb y 2 30", "c z 9 30"), "ra"},
		"also if there is room":                     {bundles("ra x 3 30", "rb y 2 30"), "ra"},
		"failures may have all":                     {bundles("a x 3 60", "b y 2 40"), ""},
		"what is left of requests is as the others": {bundles("ra x 3 40", "b y 2 40", "c z 1 40"), "ra"},
	} {
		t.Run(name, func(t *testing.T) {
			p := retention.Decide(retention.Snapshot{Now: noon, Bundles: c.in, Limits: retention.Limits{MaxAge: 24 * time.Hour, MaxSize: 100}})
			if got := names(p.Delete); got != c.want {
				t.Errorf("deletes %q, want %q", got, c.want)
			}
		})
	}
}

// What remains is within the limits; nothing more than necessary is deleted; a cluster loses its newest bundle to
// the limit of size only if every cluster has one bundle at most; and the order of the list does not matter.
func TestRetentionKeepsItsPromises(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 2000 {
		onRequest := i%2 == 0
		s := retention.Snapshot{Now: noon, Limits: retention.Limits{MaxAge: time.Duration(r.IntN(50)) * time.Hour, MaxSize: int64(r.IntN(300))}}
		for i := range r.IntN(20) {
			s.Bundles = append(s.Bundles, retention.Bundle{
				Name: fmt.Sprint("b", i), Cluster: fmt.Sprint(r.IntN(4)), At: noon.Add(-time.Duration(r.IntN(60)) * time.Hour), Size: int64(r.IntN(50)),
				OnRequest: onRequest && r.IntN(3) == 0,
			})
		}
		p := retention.Decide(s)
		shuffled := s
		shuffled.Bundles = slices.Clone(s.Bundles)
		r.Shuffle(len(shuffled.Bundles), func(i, j int) {
			shuffled.Bundles[i], shuffled.Bundles[j] = shuffled.Bundles[j], shuffled.Bundles[i]
		})
		if got := names(retention.Decide(shuffled).Delete); got != names(p.Delete) {
			t.Fatalf("%+v: the order matters: %s, %s", s, got, names(p.Delete))
		}
		checkRequests(t, s, p)
		if !onRequest {
			check(t, s, p)
		}
	}
}

func check(t *testing.T, s retention.Snapshot, p retention.Plan) {
	t.Helper()
	old := func(b retention.Bundle) bool { return s.Limits.MaxAge > 0 && noon.Sub(b.At) > s.Limits.MaxAge }
	var total, smallest int64
	perCluster := map[string]int{}
	var bySize []retention.Bundle
	for _, b := range s.Bundles {
		gone := slices.Contains(p.Delete, b)
		switch {
		case old(b) && !gone:
			t.Fatalf("%+v: %s is old and stays", s, b.Name)
		case gone && !old(b):
			bySize = append(bySize, b)
		case !gone:
			total += b.Size
			perCluster[b.Cluster]++
		}
	}
	if s.Limits.MaxSize > 0 && total > s.Limits.MaxSize || s.Limits.MaxSize == 0 && len(bySize) > 0 {
		t.Fatalf("%+v: %d bytes remain, %d were deleted for their size", s, total, len(bySize))
	}
	if len(bySize) == 0 {
		return
	}
	last := p.Delete[len(p.Delete)-1]
	if smallest = last.Size; total+smallest <= s.Limits.MaxSize {
		t.Fatalf("%+v: %s need not be deleted", s, last.Name)
	}
	for _, b := range bySize {
		if perCluster[b.Cluster] > 0 {
			continue
		}
		for cluster, n := range perCluster {
			if n > 1 {
				t.Fatalf("%+v: cluster %s has none, and %s has %d", s, b.Cluster, cluster, n)
			}
		}
	}
}

// checkRequests checks that requests have at most half of the space, and push out no bundle of a failure that would
// fit into the other half.
func checkRequests(t *testing.T, s retention.Snapshot, p retention.Plan) {
	t.Helper()
	if s.Limits.MaxSize == 0 {
		return
	}
	var requested, failures, all int64
	lost := false
	for _, b := range s.Bundles {
		old, gone := s.Limits.MaxAge > 0 && noon.Sub(b.At) > s.Limits.MaxAge, slices.Contains(p.Delete, b)
		if !gone {
			all += b.Size
		}
		switch {
		case b.OnRequest && !gone:
			requested += b.Size
		case !b.OnRequest && !old:
			failures += b.Size
			lost = lost || gone
		}
	}
	if requested > s.Limits.MaxSize/2 || all > s.Limits.MaxSize {
		t.Fatalf("%+v: requests keep %d bytes, all %d", s, requested, all)
	}
	if lost && failures <= s.Limits.MaxSize/2 {
		t.Fatalf("%+v: requests pushed out a failure", s)
	}
}

func TestNamesOfBundles(t *testing.T) {
	for name, want := range map[string]string{
		"c-release-20260301T120000Z-0a1b2c3d.tar.gz":    "0a1b2c3d on request",
		"c-gate-20260301T120000Z-0a1b2c3d.tar.gz":       "0a1b2c3d",
		"my-release-gate-20260301T120000Z-0a1b2.tar.gz": "0a1b2",
		"release-a.tar.gz":                              "a",
	} {
		b := retention.NewBundle(name, noon, 1)
		got := b.Cluster
		if b.OnRequest {
			got += " on request"
		}
		if !retention.IsBundleName(name) || got != want || b.Name != name {
			t.Errorf("%s: %q, %+v", name, got, b)
		}
	}
	for _, name := range []string{"", "a.tar.gz", "../c-a.tar.gz", "x/c-a.tar.gz", ".c-a.tar.gz", "c-a.tar", "c-a.tar.gz.old"} {
		if retention.IsBundleName(name) {
			t.Errorf("%q is no name of a bundle", name)
		}
	}
}
