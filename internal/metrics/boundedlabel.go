package metrics

import "sync"

// maxLabelValues is the maximum number of values of a label that hotspare does not control, such as
// an installer's failure reason or a cluster's version.
const maxLabelValues = 50

// boundedLabel caps the cardinality of a label: it keeps the first maxLabelValues values and
// reports all others as "other".
type boundedLabel struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newBoundedLabel() *boundedLabel { return &boundedLabel{seen: map[string]bool{}} }

func (l *boundedLabel) limitValue(v string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[v] && len(l.seen) >= maxLabelValues {
		return "other"
	}
	l.seen[v] = true
	return v
}
