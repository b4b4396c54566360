package metrics

import "sync"

// maxLabelValues is how many values a label may have that others choose: an installer's
// word for why it failed, a cluster's version.
const maxLabelValues = 50

// boundedLabel keeps a label's values few: after the first of them, the others are "other".
type boundedLabel struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newBoundedLabel() *boundedLabel { return &boundedLabel{seen: map[string]bool{}} }

func (f *boundedLabel) limitValue(v string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[v] && len(f.seen) >= maxLabelValues {
		return "other"
	}
	f.seen[v] = true
	return v
}
