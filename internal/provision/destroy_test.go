package provision

import (
	"strings"
	"testing"
)

func TestAClusterWithoutAPlatformSaysHowItCanBeDestroyed(t *testing.T) {
	for platform, want := range map[string]string{
		"":    "spec.platform names no platform, so that nothing knows how to destroy it: write the platform that it is on",
		"gcp": "no installer for platform gcp is set up here",
	} {
		if got := (Needs{Platform: platform}).noDestroyerMessage([]string{"x-1"}); !strings.Contains(got, want) || !strings.HasPrefix(got, "x-1 is recorded, and ") {
			t.Errorf("%q: %s", platform, got)
		}
	}
}
