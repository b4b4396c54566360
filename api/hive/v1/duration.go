package v1

import (
	"fmt"
	"time"
)

// Duration is a duration in Go's notation: "90m", "1h30m", "20m0s".
//
// It is a string, so that decoding never fails: a stored object with a duration that cannot be
// parsed must not prevent clients from listing the other objects (known from the field as
// "lifetime: 1w froze all claims"). The schema rejects such a value. Code that reads one that was
// stored anyway handles Parse's error for that one object. The schema limits the number of digits,
// because CEL's duration() returns no useful error when a number overflows.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]{1,5}(\\\\.[0-9]+)?h|[0-9]{1,7}(\\\\.[0-9]+)?m|[0-9]{1,9}(\\\\.[0-9]+)?s|[0-9]{1,12}(\\\\.[0-9]+)?ms|[0-9]{1,15}(\\\\.[0-9]+)?(us|µs)|[0-9]{1,18}ns)+)$') && duration(self) <= duration('87600h')",messageExpression="'\"' + self + '\" is not a duration of at most ten years: write hours (h), minutes (m) and seconds (s), such as 8h or 1h30m; a day is 24h, a week 168h'"
type Duration string

// MaxDuration is the longest duration that Parse accepts: ten years.
const MaxDuration = 87600 * time.Hour

// Parse returns the duration; "" is 0. The error names the value and the remedy.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	span, err := time.ParseDuration(string(d))
	if err != nil || span < 0 {
		return 0, fmt.Errorf("%q is not a duration: write hours, minutes and seconds, such as 8h or 1h30m", string(d))
	}
	if span > MaxDuration {
		return 0, fmt.Errorf("%q is longer than ten years", string(d))
	}
	return span, nil
}

// DurationOf converts d to a Duration.
func DurationOf(d time.Duration) Duration { return Duration(d.String()) }
