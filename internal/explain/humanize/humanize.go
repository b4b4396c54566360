// Package humanize says lists and numbers as people do. It is pure.
package humanize

import (
	"fmt"
	"strconv"
	"strings"
)

// FormatCount is "1 claim", "2 claims".
func FormatCount(n int, what string) string { return FormatPlural(n, what, what+"s") }

// FormatPlural is n with the first word for one, and the second for any other number.
func FormatPlural(n int, single, several string) string {
	if n == 1 {
		return "1 " + single
	}
	return strconv.Itoa(n) + " " + several
}

// JoinWords joins words: a, b and c.
func JoinWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// JoinFirstWords is List for the first five words, and counts those after them.
func JoinFirstWords(words []string) string {
	const most = 5
	if len(words) <= most+1 {
		return JoinWords(words)
	}
	return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
}
