package local

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestHowAProcessEnded(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		ran    bool
		age    time.Duration
		want   cloud.State
	}{
		"it gave up at once":                  {"exit 1", true, 0, cloud.Failed},
		"it gave up before it ran":            {"exit 1", false, 0, cloud.Failed},
		"it gave up later":                    {"exit 1", true, startupPeriod, cloud.Stopped},
		"it was killed at once":               {"kill -9 $$", true, 0, cloud.Stopped},
		"it crashed in a namespace at once":   {fmt.Sprintf("exit %d", machine.CrashExitCode), true, 0, cloud.Stopped},
		"it crashed in a namespace, unlocked": {fmt.Sprintf("exit %d", machine.CrashExitCode), false, 0, cloud.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{startedAt: time.Now().Add(-c.age)}
			err := exec.CommandContext(t.Context(), "sh", "-c", c.script).Run()
			if got := p.classifyExit(c.ran, err, "").state; got != c.want {
				t.Errorf("%v: %s, want %s", err, got, c.want)
			}
		})
	}
}
