package local

import (
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/fault"
)

func TestParseRegistryAccess(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want registryAccess
	}{
		"nothing":        {valid, registryAccess{}},
		"a pull secret":  {valid + `pullSecret: '{"auths":{}}'`, registryAccess{PullSecret: `{"auths":{}}`}},
		"a trust bundle": {valid + "additionalTrustBundle: |\n  -----BEGIN\n  x\n", registryAccess{TrustBundle: "-----BEGIN\nx\n"}},
		"other types":    {valid + "pullSecret: {auths: {}}\nadditionalTrustBundle: 5", registryAccess{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseRegistryAccess([]byte(c.in)); got != c.want || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	_, err := parseRegistryAccess([]byte("pullSecret: hush: hush"))
	if fault.KindOf(err) != fault.Denied || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}
