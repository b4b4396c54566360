//go:build !linux

package local

import "time"

// setTimerSlack does nothing.
func setTimerSlack(time.Duration) {}
