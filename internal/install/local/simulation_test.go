package local

import (
	"strings"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

func TestWorkersRunContainersWhereTheyCan(t *testing.T) {
	const missing = "runc is missing: install it"
	for name, c := range map[string]struct {
		wanted   hivev1.LocalContainers
		workers  int
		obstacle string
		want     simulation
	}{
		"auto, and possible":       {hivev1.LocalContainersAuto, 1, "", simulation{}},
		"auto, and impossible":     {hivev1.LocalContainersAuto, 1, missing, simulation{true, missing}},
		"auto, without workers":    {hivev1.LocalContainersAuto, 0, "", simulation{true, "the cluster has no workers: create one with workers"}},
		"never, although possible": {hivev1.LocalContainersNever, 1, "", simulation{true, ""}},
		"always, and possible":     {hivev1.LocalContainersAlways, 1, "", simulation{}},
	} {
		t.Run(name, func(t *testing.T) {
			i := &Installer{containersObstacle: func() string { return c.obstacle }}
			got, err := i.decideSimulation(config{containers: c.wanted, workers: c.workers})
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAnInstallationThatNeedsContainersWaitsForThem(t *testing.T) {
	l := newLab(t)
	f := l.folder(t, strings.Replace(twoWorkers, "local: {", "local: {containers: Always, ", 1))
	i := NewInstaller(l.store, 0)
	obstacle := "runc is missing: install it"
	i.containersObstacle = func() string { return obstacle }
	c, err := f.readConfig()
	if err != nil {
		t.Fatal(err)
	}
	md := newMetadata(c)
	_, err = i.reserveCapacity(c, md)
	if fault.KindOf(err) != fault.Capacity || !strings.Contains(err.Error(), md.InfraID) || !strings.Contains(err.Error(), obstacle) {
		t.Fatalf("the error is %v", err)
	}
	obstacle = ""
	if pods, err := i.reserveCapacity(c, md); err != nil || pods.simulated {
		t.Errorf("%+v, %v", pods, err)
	}
}

func TestAClusterKeepsItsDecisionAboutContainers(t *testing.T) {
	l := newLab(t)
	f := l.folder(t, twoWorkers)
	c, err := f.readConfig()
	if err != nil {
		t.Fatal(err)
	}
	md := newMetadata(c)
	i := NewInstaller(l.store, 0)
	i.containersObstacle = func() string { return "runc is missing: install it" }
	first, err := i.reserveCapacity(c, md)
	if err != nil || !first.simulated {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := i.createMachines(machineConfigs(c, md, first)); err != nil {
		t.Fatal(err)
	}
	i.containersObstacle = func() string { return "" } // and hotspare was restarted
	if again, err := i.reserveCapacity(c, md); err != nil || again != first {
		t.Errorf("%+v, then %+v, %v", first, again, err)
	}
}
