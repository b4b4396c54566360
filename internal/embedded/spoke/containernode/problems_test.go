//go:build linux

package containernode

import (
	"testing"

	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestTheProblemOfContainerdHidesThatOfImages(t *testing.T) {
	p := &problems{dir: t.TempDir()}
	for _, step := range []struct {
		set     func()
		problem string
	}{
		{func() { p.setRuntime(t.Context(), "") }, ""},
		{func() { p.setImages(t.Context(), "no image") }, "no image"},
		{func() { p.setRuntime(t.Context(), "it ended") }, "it ended"},
		{func() { p.setImages(t.Context(), "no image again") }, "it ended"},
		{func() { p.setRuntime(t.Context(), "") }, "no image again"},
		{func() { p.setImages(t.Context(), "") }, ""},
	} {
		step.set()
		if got := machine.ReadProblem(p.dir); got != step.problem {
			t.Errorf("the folder has %q, want %q", got, step.problem)
		}
	}
}
