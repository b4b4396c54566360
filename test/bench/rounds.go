package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// round is one of the repetitions of a measurement. A computer is slower at some moments than at others: the median of several
// rounds says more than one.
type round struct {
	// bare is the loop of the same writes just before, without claims.
	bare, served cost
	waits        []time.Duration // sorted
}

// medianOf returns the median of a value of rounds; of an even number of them, the smaller one of the two in the middle.
func medianOf[T cmp.Ordered](rounds []round, value func(round) T) T {
	values := valuesOf(rounds, value)
	return values[(len(values)-1)/2]
}

// formatRange formats the median of a value of rounds, and its range if there are several.
func formatRange(rounds []round, format string, value func(round) float64) string {
	text := fmt.Sprintf(format, medianOf(rounds, value))
	if len(rounds) == 1 {
		return text
	}
	values := valuesOf(rounds, value)
	return fmt.Sprintf("%s (%s to %s)", text, fmt.Sprintf(format, values[0]), fmt.Sprintf(format, values[len(values)-1]))
}

func valuesOf[T cmp.Ordered](rounds []round, value func(round) T) []T {
	out := make([]T, 0, len(rounds))
	for _, r := range rounds {
		out = append(out, value(r))
	}
	slices.Sort(out)
	return out
}
