package dataplane

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what this process has done for data planes that it need not do again soon.
// Nothing goes wrong without it: all of it bears to be done twice.
type memory struct {
	mu    sync.Mutex
	plane map[types.NamespacedName]done
}

type done struct {
	uid              types.UID
	installed        time.Time
	removed, revoked bool
}

// of returns what was done for the data plane with that UID.
func (m *memory) of(key types.NamespacedName, uid types.UID) done {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.plane[key]; d.uid == uid {
		return d
	}
	return done{uid: uid}
}

// note changes what was done for the data plane with that UID.
func (m *memory) note(key types.NamespacedName, uid types.UID, edit func(*done)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.plane[key]
	if d.uid != uid {
		d = done{uid: uid}
	}
	edit(&d)
	if m.plane == nil {
		m.plane = map[types.NamespacedName]done{}
	}
	m.plane[key] = d
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.plane, key)
}
