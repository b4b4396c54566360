package up

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/up/containersrecord"
)

func TestOnlyAPoolThatRequiresContainersNeedsThem(t *testing.T) {
	obstacle := "containerd is missing"
	missing := newContainersRequirement(func() string { return obstacle })
	local := func(c hivev1.LocalContainers, workers *int32) hivev1.Platform {
		return hivev1.Platform{Local: &hivev1.LocalPlatform{Containers: c, Workers: workers}}
	}
	if got := missing(local(hivev1.LocalContainersAlways, nil)); !strings.HasSuffix(got, ": containerd is missing") {
		t.Errorf("a pool that requires containers lacks %q", got)
	}
	for title, p := range map[string]hivev1.Platform{
		"containers where they can run": local(hivev1.LocalContainersAuto, nil),
		"no preference":                 local("", nil),
		"no containers":                 local(hivev1.LocalContainersNever, nil),
		"no workers":                    local(hivev1.LocalContainersAlways, ptr.To[int32](0)),
		"another platform":              {},
	} {
		if got := missing(p); got != "" {
			t.Errorf("%s: it lacks %q", title, got)
		}
	}
	obstacle = ""
	if got := missing(local(hivev1.LocalContainersAlways, nil)); got != "" {
		t.Errorf("when nothing is missing, it lacks %q", got)
	}
}

func TestTheRecordOfContainersFollowsTheComputer(t *testing.T) {
	dir := t.TempDir()
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	obstacles := make(chan string, 1)
	recorded := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- recordContainers(ctx, c, dir, func() string { return <-obstacles }, func() { recorded <- struct{}{} })
	}()
	for i, obstacle := range []string{"runc is missing: install it", "", "", "runc is missing: install it"} {
		if i > 0 {
			c.Step(recordInterval)
		}
		obstacles <- obstacle
		<-recorded
		if got, found := containersrecord.Read(dir); !found || got.Obstacle != obstacle {
			t.Errorf("the record is %+v, %t, want %q", got, found, obstacle)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(containersrecord.Path(dir)); !os.IsNotExist(err) {
		t.Errorf("the record is left when the hub has stopped: %v", err)
	}
}

func TestAHubStartsAlthoughContainersCannotBeRecorded(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(containersrecord.Path(dir), 0o700); err != nil { // a folder cannot be replaced
		t.Fatal(err)
	}
	recorded := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- recordContainers(ctx, clocktesting.NewFakeClock(time.Unix(0, 0)), dir, func() string { return "" }, func() { recorded <- struct{}{} })
	}()
	<-recorded
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestARecordOfAKilledHubIsRemovedAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	if err := (containersrecord.Record{}).Write(dir); err != nil {
		t.Fatal(err)
	}
	lock, err := acquireDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, found := containersrecord.Read(dir); found {
		t.Error("the record is left")
	}
}
