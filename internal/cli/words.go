package cli

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// none stands where there is nothing to say.
const none = "-"

func valueOrNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// formatNumber is how tables show a count.
func formatNumber[T ~int | ~int32](n T) string { return strconv.Itoa(int(n)) }

// formatAge is how long ago something was, as kubectl says it.
func (a *app) formatAge(since time.Time) string {
	if since.IsZero() {
		return none
	}
	return duration.HumanDuration(a.Clock.Since(since))
}

// formatDuration is a duration of the API, as kubectl says ages.
func formatDuration(d *hivev1.Duration) string {
	if d == nil || *d == "" {
		return none
	}
	parsed, err := d.Parse()
	if err != nil {
		return string(*d)
	}
	return duration.HumanDuration(parsed)
}

// toAPIDuration is a flag's value for the API, without the zeros that Go prints: 4h, not 4h0m0s.
func toAPIDuration(d time.Duration) *hivev1.Duration {
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
