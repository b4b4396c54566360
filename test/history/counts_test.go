package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts are how often things happened, so that a reader sees whether the histories reach what they are for.
type counts map[string]int

func (c counts) add(other counts) {
	for what, n := range other {
		if strings.HasPrefix(what, "most ") {
			c[what] = max(c[what], n)
			continue
		}
		c[what] += n
	}
}

func (c counts) String() string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		out = append(out, fmt.Sprintf("%s %d", what, c[what]))
	}
	return strings.Join(out, ", ")
}
