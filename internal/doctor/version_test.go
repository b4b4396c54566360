package doctor

import "testing"

func TestParseVersion(t *testing.T) {
	for line, want := range map[string]struct {
		version version
		text    string
	}{
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1": {version{1, 6, 20}, "1.6.20~ds1"},
		"containerd github.com/containerd/containerd v1.7.2 0cae528":                  {version{1, 7, 2}, "1.7.2"},
		"containerd github.com/containerd/containerd/v2 v2.3.0-beta.2 8a53373":        {version{2, 3, 0}, "2.3.0-beta.2"},
		"containerd github.com/k3s-io/containerd v1.7.11-k3s2":                        {version{1, 7, 11}, "1.7.11-k3s2"},
		"containerd github.com/containerd/containerd/v2 v2.0.0+unknown":               {version{2, 0, 0}, "2.0.0+unknown"},
		"runc version 1.1.5+ds1":                {version{1, 1, 5}, "1.1.5+ds1"},
		"iptables v1.8.9 (nf_tables)":           {version{1, 8, 9}, "1.8.9"},
		"nftables v1.0.6 (Lester Gooch #5)":     {version{1, 0, 6}, "1.0.6"},
		"6.18.44-fc-v669":                       {version{6, 18, 44}, "6.18.44-fc-v669"},
		"1.6":                                   {version{1, 6, 0}, "1.6"},
		"version 1.6.":                          {version{1, 6, 0}, "1.6"},
		"":                                      {},
		"containerd":                            {},
		"containerd github.com/x/containerd/v2": {},
		"v2":                                    {},
		"x1.6":                                  {},
		"99999999999999999999.1.2":              {},
		"1.99999999999999999999":                {version{1, 999999, 0}, "1.99999999999999999999"},
	} {
		v, text, found := parseVersion(line)
		if v != want.version || text != want.text || found != (want.text != "") {
			t.Errorf("%q: %v, %q, %t, want %v, %q", line, v, text, found, want.version, want.text)
		}
	}
}

func TestVersionsAreCompared(t *testing.T) {
	sorted := []version{{0, 9, 9}, {1, 0, 0}, {1, 0, 1}, {1, 2, 0}, {1, 10, 0}, {2, 0, 0}, {2, 0, 1}}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := a.isBefore(b); got != (i < j) {
				t.Errorf("%v is before %v: %t", a, b, got)
			}
		}
	}
}
