package local

import (
	"time"

	"golang.org/x/sys/unix"
)

// setTimerSlack sets how late the kernel may fire the timers of the processes that this thread starts; 0 sets the
// default. Without the right to set it, the default remains: the slack only saves processor time.
func setTimerSlack(slack time.Duration) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
}
