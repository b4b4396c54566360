package base

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// None is printed in place of an empty value.
const None = "-"

// ValueOrNone returns s, or None if s is empty.
func ValueOrNone(s string) string {
	if s == "" {
		return None
	}
	return s
}

// FormatNumber formats a count for tables.
func FormatNumber[T ~int | ~int32](n T) string { return strconv.Itoa(int(n)) }

// FormatAge returns the time since a moment in the form that kubectl uses for ages.
func (a *App) FormatAge(since time.Time) string {
	if since.IsZero() {
		return None
	}
	return duration.HumanDuration(a.Clock.Since(since))
}

// FormatDuration formats a duration of the API in the form that kubectl uses for ages.
func FormatDuration(d *hivev1.Duration) string {
	if d == nil || *d == "" {
		return None
	}
	parsed, err := d.Parse()
	if err != nil {
		return string(*d)
	}
	return duration.HumanDuration(parsed)
}

// ToAPIDuration converts the value of a flag for the API, without the zeros that Go prints: 4h
// instead of 4h0m0s.
func ToAPIDuration(d time.Duration) *hivev1.Duration {
	if d == 0 {
		return nil
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	out := hivev1.Duration(text)
	return &out
}
