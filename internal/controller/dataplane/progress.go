package dataplane

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progressCache records what this process has done for data planes and need not do again soon. It
// is a cache only: every step is idempotent.
type progressCache struct {
	mu    sync.Mutex
	plane map[types.NamespacedName]progress
}

type progress struct {
	uid              types.UID
	installed        time.Time
	removed, revoked bool
}

// getProgress returns what was done for the data plane with that UID.
func (c *progressCache) getProgress(key types.NamespacedName, uid types.UID) progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.plane[key]; d.uid == uid {
		return d
	}
	return progress{uid: uid}
}

// updateProgress changes the record of what was done for the data plane with that UID.
func (c *progressCache) updateProgress(key types.NamespacedName, uid types.UID, edit func(*progress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.plane[key]
	if d.uid != uid {
		d = progress{uid: uid}
	}
	edit(&d)
	if c.plane == nil {
		c.plane = map[types.NamespacedName]progress{}
	}
	c.plane[key] = d
}

func (c *progressCache) deleteProgress(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.plane, key)
}
