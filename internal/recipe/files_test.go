package recipe

import "testing"

func TestFilesThatBeginWithAnInterpreterAreExecutable(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]uint32{"#!/bin/sh\n": 0o755, "#!/usr/bin/env python3": 0o755, "# not a program\n": 0o644, "kind: Recipe\n": 0o644, "": 0o644, "#": 0o644} {
		if got := FileMode([]byte(content)); uint32(got) != want {
			t.Errorf("%q has mode %s", content, got)
		}
	}
}
