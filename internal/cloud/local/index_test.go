package local

import (
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestANewWorkerGetsTheLowestFreeIndex(t *testing.T) {
	worker := func(index int) observedMachine {
		return observedMachine{Config: machine.Config{Role: machine.Worker, Index: index}}
	}
	leader := observedMachine{Config: machine.Config{Role: machine.ControlPlane}}
	for name, c := range map[string]struct {
		machines []observedMachine
		want     int
	}{
		"no worker":    {[]observedMachine{leader}, 0},
		"the next":     {[]observedMachine{leader, worker(0), worker(1)}, 2},
		"a gap":        {[]observedMachine{leader, worker(2), worker(0)}, 1},
		"no index yet": {[]observedMachine{leader, worker(0), worker(0)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lowestFreeIndex(c.machines)
			if err != nil || got != c.want {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	var all []observedMachine
	for index := range machine.MaxIndex + 1 {
		all = append(all, worker(index))
	}
	if _, err := lowestFreeIndex(all); err == nil || !strings.Contains(err.Error(), "250 workers") {
		t.Errorf("all indexes are used: %v", err)
	}
}
