package scaling_test

import (
	"fmt"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fleet/scaling"
)

// crowd returns a region with the given number of data planes, each with the given number of types:
// some empty, most in use, one in a hundred on its way, and the given number of waiting instances.
func crowd(planes, types, waiting int) scaling.Snapshot {
	s := scaling.Snapshot{Now: noon, Region: scaling.Region{
		Up: scaling.ScaleUp{Mode: scaling.Auto, MaxInFlight: 1000, Timeout: 2 * time.Hour}, Down: scaling.ScaleDown{Mode: scaling.Auto},
	}}
	for n := range types {
		s.Region.Types = append(s.Region.Types, scaling.Type{Name: fmt.Sprintf("t%d", n), Sizes: []int{1, 2}, Slack: 3, Expected: 6})
	}
	for n := range planes {
		p := scaling.Plane{Name: fmt.Sprintf("dp-%d", n), Created: noon.Add(time.Duration(-n) * time.Second), Phase: scaling.Ready, Managed: true}
		for m := range types {
			p.Rooms = append(p.Rooms, scaling.Room{Type: s.Region.Types[m].Name, Max: 6})
		}
		if n%100 == 7 {
			p.Phase = scaling.Provisioning
		}
		for m := range n % 5 {
			s.Instances = append(s.Instances, scaling.Instance{
				Name: fmt.Sprintf("team/i-%d-%d", n, m), Type: s.Region.Types[m%types].Name, Units: 2, Plane: p.Name, Created: p.Created,
			})
		}
		s.Planes = append(s.Planes, p)
	}
	for n := range waiting {
		s.Instances = append(s.Instances, scaling.Instance{Name: fmt.Sprintf("team/w-%d", n), Type: s.Region.Types[n%types].Name, Units: 1, Created: noon})
	}
	return s
}

// BenchmarkDecide measures the figure in docs/fleet.md: 10,000 data planes of ten types, on one
// core.
func BenchmarkDecide(b *testing.B) {
	s := crowd(10_000, 10, 100)
	b.ReportAllocs()
	for b.Loop() {
		if p := scaling.Decide(s); len(p.Types) != 10 {
			b.Fatal(p)
		}
	}
}
