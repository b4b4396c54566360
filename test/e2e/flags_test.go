package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFlagsOfTheLastStartAreUsedAgain(t *testing.T) {
	recipes := filepath.Join(t.TempDir(), "my recipes")
	if err := os.Mkdir(recipes, 0o700); err != nil {
		t.Fatal(err)
	}
	invalid := filepath.Join(t.TempDir(), "authentication.yaml")
	write(t, invalid, "jwt: none\n", 0o600)
	h := own(t, "--hub-only", "--recipes", recipes, "--insecure-registries", "localhost:5000,localhost:5001")
	const using = "using the flags of an earlier start: "
	if said := h.said.String(); strings.Contains(said, using) {
		t.Errorf("the first start uses flags of another one:\n%s", said)
	}
	const registries = "--insecure-registries=localhost:5000 --insecure-registries=localhost:5001"
	for i, start := range []struct {
		what  string
		flags []string
		want  string // the flags that are used again
	}{
		{"without flags", nil, registries + " '--recipes=" + recipes + "'"},
		{"with another value and one that is reset", []string{"--insecure-registries", "localhost:6000", "--recipes="}, ""},
		{"after that", nil, "--insecure-registries=localhost:6000"},
	} {
		if err := h.down(); err != nil {
			t.Fatal(err)
		}
		refused(t, h.run(t, "", "up", "--hub-only", "--authentication-config", invalid), "authentication.yaml") // keeps no flag
		if i == 1 {                                                                                             // a flag of the last start is not valid any more, and is named
			if err := os.Remove(recipes); err != nil {
				t.Fatal(err)
			}
			refused(t, h.run(t, "", "up", "--hub-only"), using+registries+" '--recipes="+recipes+"'",
				`to reset a flag, give it its default, as in --insecure-registries=""`, "--recipes: stat "+recipes)
		}
		h.flags = append([]string{"--hub-only"}, start.flags...)
		h.restart(t)
		got := ""
		for line := range strings.Lines(h.said.String()) {
			if flags, found := strings.CutPrefix(line, using); found {
				got = strings.TrimSpace(flags)
			}
		}
		if got != start.want {
			t.Errorf("a start %s uses %q again, want %q", start.what, got, start.want)
		}
	}
}
