package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/capacity"
)

// decide measures one look at a large fleet: no hub, one core.
func (b *bench) decide(context.Context) ([]row, error) {
	const planes, types, waiting = 10_000, 10, 100
	s := crowd(planes, types, waiting)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	took := make([]time.Duration, 20)
	for n := range took {
		began := time.Now()
		if p := capacity.Decide(s); len(p.Types) != types {
			return nil, fmt.Errorf("deciding about %d types: got %d", types, len(p.Types))
		}
		took[n] = time.Since(began)
	}
	slices.Sort(took)
	return []row{{
		fmt.Sprintf("decisions about %d data planes of %d types, one core: median, worst of %d", planes, types, len(took)),
		millis(quantile(took, 0.5)) + ", " + millis(took[len(took)-1]), "100 ms",
	}}, nil
}

// crowd is a region: some data planes are empty, most in use, one in a hundred on its way.
func crowd(planes, types, waiting int) capacity.Snapshot {
	s := capacity.Snapshot{Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.Region.Up = capacity.Up{Mode: capacity.Auto, MaxInFlight: planes, Timeout: 24 * time.Hour}
	s.Region.Down = capacity.Down{Mode: capacity.Auto}
	for n := range types {
		s.Region.Types = append(s.Region.Types, capacity.Type{Name: fmt.Sprintf("t%d", n), Sizes: []int{1, 2}, Slack: 3, Expected: 6})
	}
	for n := range planes {
		p := capacity.Plane{Name: fmt.Sprintf("dp-%d", n), Created: s.Now.Add(time.Duration(-n) * time.Second), Phase: capacity.Ready, Managed: true}
		if n%100 == 7 {
			p.Phase = capacity.Provisioning
		}
		for _, t := range s.Region.Types {
			p.Rooms = append(p.Rooms, capacity.Room{Type: t.Name, Max: 6})
		}
		for m := range n % 5 {
			s.Instances = append(s.Instances, capacity.Instance{
				Name: fmt.Sprintf("team/i-%d-%d", n, m), Type: s.Region.Types[m%types].Name, Units: 2, Plane: p.Name, Created: p.Created,
			})
		}
		s.Planes = append(s.Planes, p)
	}
	for n := range waiting {
		s.Instances = append(s.Instances, capacity.Instance{Name: fmt.Sprintf("team/w-%d", n), Type: s.Region.Types[n%types].Name, Units: 1, Created: s.Now})
	}
	return s
}
