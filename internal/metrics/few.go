package metrics

import "sync"

// most is how many values a label may have that others choose: an installer's
// word for why it failed, a cluster's version.
const most = 50

// few keeps a label's values few: after the first of them, the others are "other".
type few struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newFew() *few { return &few{seen: map[string]bool{}} }

func (f *few) value(v string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[v] && len(f.seen) >= most {
		return "other"
	}
	f.seen[v] = true
	return v
}
