package manager

import (
	"fmt"
	"strings"
	"testing"
)

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

func TestParseSecretNames(t *testing.T) {
	for values, want := range map[string]string{"": "[]", "n/a": "[n/a]", "n/b,n/a,n/b": "[n/b n/a]"} {
		var list []string
		if values != "" {
			list = strings.Split(values, ",")
		}
		if got, err := ParseSecretNames(list); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: got %s, %v; want %s", values, got, err, want)
		}
	}
	for _, values := range [][]string{{""}, {"n/a", ""}, {"n/a", "b"}} {
		if got, err := ParseSecretNames(values); err == nil {
			t.Errorf("%q: got %s", values, got)
		}
	}
}
