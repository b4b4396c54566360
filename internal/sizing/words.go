package sizing

import (
	"fmt"
	"math"
	"time"
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

func formatWaiting(n int) string {
	if n == 1 {
		return "1 claim waits"
	}
	return fmt.Sprintf("%d claims wait", n)
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
