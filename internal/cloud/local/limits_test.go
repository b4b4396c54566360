package local

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

func TestFits(t *testing.T) {
	for name, c := range map[string]struct {
		left Resources
		want int
		says string
	}{
		"memory is the limit":       {Resources{1000 * megabyte, 10000 * megabyte}, 4, "230 MB of memory are needed for each and about 1 GB"},
		"disk is the limit":         {Resources{10000 * megabyte, 450 * megabyte}, 2, "200 MB of disk space are needed for each and about 400 MB"},
		"nothing is left":           {Resources{}, 0, "hibernate or delete"},
		"less than nothing is left": {Resources{-1, -1}, 0, "about 0 MB"},
		"nobody knows the memory":   {Resources{Unlimited, 400 * megabyte}, 2, "disk"},
		"nobody knows anything":     {Resources{Unlimited, Unlimited}, math.MaxInt, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, why := countNeedFits(c.left, needOfCluster(ClusterSize{Workers: 2}))
			if n != c.want || !strings.Contains(why, c.says) {
				t.Errorf("%d, %s", n, why)
			}
		})
	}
}

// storeWith opens a store on a computer with room for the given number of clusters without workers.
func storeWith(t *testing.T, clusters int64) *Store {
	t.Helper()
	return open(t, t.TempDir(), WithResources(func(string) (Resources, error) {
		return Resources{Memory: clusters * controlPlaneMemory, Disk: Unlimited}, nil
	}))
}

func TestReserve(t *testing.T) {
	s := storeWith(t, 2)
	for _, id := range []string{"a", "b", "a"} {
		if err := s.ReserveResources(id, ClusterSize{}); err != nil {
			t.Fatalf("reserving for %s: %v", id, err)
		}
	}
	if n, _ := s.CountClusterFits(ClusterSize{}); n != 0 {
		t.Errorf("%d more fit", n)
	}
	err := s.ReserveResources("c", ClusterSize{})
	if fault.KindOf(err) != fault.Capacity || fault.RetryAfter(err) == 0 {
		t.Errorf("a third one: %v", err)
	}
	s.ReleaseResources("a")
	if err := s.ReserveResources("c", ClusterSize{}); err != nil {
		t.Errorf("after a release: %v", err)
	}
	if err := s.DestroyCluster(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if n, _ := s.CountClusterFits(ClusterSize{}); n != 1 {
		t.Errorf("after a destroy %d fit", n)
	}
}

func TestStartNeedsRoom(t *testing.T) {
	s := storeWith(t, 1)
	create(t, s, "a-12345", 0)
	create(t, s, "b-12345", 0)
	create(t, s, "big-12345", 1)
	run(t, s)
	if err := s.StartCluster("big-12345"); fault.KindOf(err) != fault.Capacity {
		t.Errorf("one that does not fit: %v", err)
	}
	s.await(t, "big-12345", "big-12345-master-0 Stopped, big-12345-worker-0 Stopped")
	s.mustStart(t, "a-12345")
	s.await(t, "a-12345", "a-12345-master-0 Running")
	if err := s.StartCluster("b-12345"); fault.KindOf(err) != fault.Capacity {
		t.Errorf("while another is starting and has not taken its memory yet: %v", err)
	}
	s.mustStart(t, "a-12345") // needs no additional memory
}

func TestUnknownResourcesAreAnError(t *testing.T) {
	blind := errors.New("blind")
	s := open(t, t.TempDir(), WithResources(func(string) (Resources, error) { return Resources{}, blind }))
	if n, why := s.CountClusterFits(ClusterSize{Workers: 1}); n != 0 || !strings.Contains(why, "blind") {
		t.Errorf("%d, %s", n, why)
	}
	if err := s.ReserveResources("a", ClusterSize{Workers: 1}); !errors.Is(err, blind) {
		t.Error(err)
	}
}

func TestMeasure(t *testing.T) {
	got, err := MeasureResources(t.TempDir())
	if err != nil || got.Memory < megabyte || got.Disk < 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := MeasureResources("/nowhere"); err == nil {
		t.Error("measured nowhere")
	}
}

func TestDefaultsAreGenerous(t *testing.T) {
	s, err := Open(t.TempDir(), []string{"x"})
	if err != nil || s.grace < time.Second {
		t.Errorf("%v, %v", s.grace, err)
	}
	if _, err := Open(t.TempDir(), nil); err == nil {
		t.Error("opened a store that cannot start machines")
	}
}
