package clusterdns

import (
	"sync"
	"sync/atomic"
	"time"

	"hotspare.io/hotspare/internal/embedded/spoke/clusterdns/zone"
)

// zones provides the Zone of the current objects. It builds it when it is asked for, so that a
// cluster in which nobody resolves names costs nothing.
type zones struct {
	config zone.Config
	source Source
	now    func() time.Time
	empty  *zone.Zone

	building sync.Mutex
	latest   atomic.Pointer[builtZone]
}

type builtZone struct {
	*zone.Zone
	generation uint64
}

func newZones(o Options) *zones {
	config := zone.Config{Domain: o.Domain, CIDRs: o.CIDRs}
	return &zones{config: config, source: o.Source, now: o.Now, empty: zone.New(config, zone.Snapshot{})}
}

// get returns the current Zone, and false if the objects have not been read yet: then it is empty.
func (z *zones) get() (*zone.Zone, bool) {
	generation, synced := z.source.Generation()
	if !synced {
		return z.empty, false
	}
	if b := z.latest.Load(); b != nil && b.generation == generation {
		return b.Zone, true
	}
	return z.build(), true
}

func (z *zones) build() *zone.Zone {
	z.building.Lock()
	defer z.building.Unlock()
	// Read before the objects: if they change meanwhile, the next caller builds again.
	generation, _ := z.source.Generation()
	if b := z.latest.Load(); b != nil && b.generation == generation {
		return b.Zone // another caller has built it
	}
	objects := z.source.Objects()
	objects.Serial = uint32(z.now().Unix())
	b := &builtZone{zone.New(z.config, objects), generation}
	z.latest.Store(b)
	return b.Zone
}
