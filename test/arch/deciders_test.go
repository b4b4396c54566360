package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// deciders is the list of the packages that make test tests without the race detector.
var deciders = regexp.MustCompile(`(?m)^DECIDERS := ((?:.*\\\n)*.*)\n`)

func TestOnlyDecidersAreTestedWithoutTheRaceDetector(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := deciders.FindSubmatch(raw)
	if list == nil {
		t.Fatal("the Makefile has no list DECIDERS")
	}
	pure := rules["a decider is pure"]
	names := strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " "))
	for _, name := range names {
		if name = strings.TrimPrefix(name, "./"); !anyMatch(pure.about, name) {
			t.Errorf("DECIDERS in the Makefile has %s, which need not be pure", name)
		}
	}
	if len(names) == 0 {
		t.Error("DECIDERS in the Makefile is empty")
	}
}
