package manager

import "testing"

func TestParseSecretName(t *testing.T) {
	for value, want := range map[string]string{"": "/", "hotspare-system/pull": "hotspare-system/pull", "n/a.b": "n/a.b"} {
		if got, err := ParseSecretName(value); err != nil || got.String() != want {
			t.Errorf("%q: got %s, %v", value, got, err)
		}
	}
	for _, value := range []string{"pull", "/pull", "n/", "n/a/b", "N/a", "n/A"} {
		if got, err := ParseSecretName(value); err == nil {
			t.Errorf("%q: got %s", value, got)
		}
	}
}
