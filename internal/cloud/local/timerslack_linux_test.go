package local

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTheTimersOfAMachineMayBeLate(t *testing.T) {
	inherited := timerSlackOfProcess(t, 0)
	if slack := timerSlackOfProcess(t, idleTimerSlack); slack != idleTimerSlack {
		t.Errorf("the slack is %s", slack)
	}
	if slack := timerSlackOfProcess(t, 0); slack != inherited {
		t.Errorf("the slack of the next process is %s, want the default, %s", slack, inherited)
	}
}

// timerSlackOfProcess starts a process that prints its slack.
func timerSlackOfProcess(t *testing.T, slack time.Duration) time.Duration {
	t.Helper()
	var out strings.Builder
	cmd := exec.CommandContext(t.Context(), "cat", "/proc/self/timerslack_ns")
	cmd.Stdout = &out
	if err := startFromLastingThread(cmd, slack); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Skipf("this kernel does not show the slack: %v", err)
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(nanoseconds)
}
