package machine

import (
	"os"
	"strings"
	"testing"
)

func TestAProblemIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"", "containerd ended (exit status 1): no such plugin", "containerd ended (signal: killed): it printed nothing", "", ""} {
		if err := WriteProblem(dir, want); err != nil {
			t.Fatal(err)
		}
		if got := ReadProblem(dir); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAProblemIsALineOfLimitedLength(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(ProblemPath(dir), []byte(strings.Repeat("a\nb ", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ReadProblem(dir); len(got) > maxProblem || !strings.HasPrefix(got, "a b a b") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
