package sizing

import (
	"fmt"
	"math"
	"time"

	"hotspare.io/hotspare/internal/sizing/calendar"
)

// describeHour returns an hour of the week as people write it: "Mon 9-10".
func describeHour(local time.Time) string {
	return fmt.Sprintf("%s %d-%d", local.Weekday().String()[:3], local.Hour(), local.Hour()+1)
}

func formatRate(perHour float64) string {
	if perHour < 0.095 {
		return fmt.Sprintf("%s a day", formatClaims(perHour*hoursOfDay))
	}
	return formatClaims(perHour) + " an hour"
}

func formatClaims(n float64) string {
	if text := formatNumber(n); text != "1" {
		return text + " claims"
	}
	return "1 claim"
}

// formatNumber writes a number with at most two digits after the point.
func formatNumber(n float64) string {
	if n >= 10 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%g", math.Round(n*100)/100)
}

// describeExtra explains a count that is far higher than the expected claims need if they come independently
// of each other; empty if it is not.
func describeExtra(n int, mean, share float64) string {
	need := countForRandom(mean, share)
	if n-need < 2 || 2*n < 3*need {
		return ""
	}
	return fmt.Sprintf(", %d of them because claims have exceeded the forecast before", n-need)
}

// describeFactor names the entry of the calendar that multiplies the expected claims; empty if none does.
func describeFactor(e calendar.Entry) string {
	if e.Demand.By == nil || *e.Demand.By == 1 {
		return ""
	}
	return fmt.Sprintf(" (%s: times %g)", e.Demand.Entry, *e.Demand.By)
}

func formatWaiting(n int) string {
	if n == 1 {
		return "1 claim waits"
	}
	return fmt.Sprintf("%d claims wait", n)
}

// describeSleepers says how long the clusters take to resume that do not sleep at stop: ", that of 1 at depth freeze 2 s".
func describeSleepers(asleep []sleeper) string {
	text := ""
	for _, a := range asleep {
		text += fmt.Sprintf(", that of %d at depth %s %s", a.count, a.depth, formatDuration(a.wake))
	}
	return text
}

// formatDuration writes a duration in its largest units: "4 min", "1 h 30 min".
func formatDuration(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, sec := d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second
	switch {
	case h > 0 && m > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case h > 0:
		return fmt.Sprintf("%d h", h)
	case m > 0 && sec > 0:
		return fmt.Sprintf("%d min %d s", m, sec)
	case m > 0:
		return fmt.Sprintf("%d min", m)
	default:
		return fmt.Sprintf("%d s", sec)
	}
}
