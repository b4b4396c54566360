package provision

import (
	"strings"
	"testing"
)

func TestAClusterWithoutAPlatformSaysHowItCanBeDestroyed(t *testing.T) {
	for platform, want := range map[string]string{
		"":    "spec.platform names no platform, so hotspare cannot destroy it: set spec.platform to its platform",
		"gcp": "this hub has no installer for platform gcp to destroy it",
	} {
		if got := (Needs{Platform: platform}).noDestroyerMessage([]string{"x-1"}); !strings.Contains(got, want) || !strings.HasPrefix(got, "x-1 is recorded, and ") {
			t.Errorf("%q: %s", platform, got)
		}
	}
}
