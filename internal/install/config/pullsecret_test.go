package config

import (
	"strings"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

func TestMergePullSecrets(t *testing.T) {
	const global, own = `{"auths":{"a":{"auth":"g"},"b":{"auth":"g"}}}`, `{"auths":{"b":{"auth":"o","email":"e"},"c":{"auth":"o"}}}`
	for name, tc := range map[string]struct{ global, own, want string }{
		"the cluster's wins":              {global, own, `{"auths":{"a":{"auth":"g"},"b":{"auth":"o","email":"e"},"c":{"auth":"o"}}}`},
		"without one of the cluster":      {global, "", global},
		"without a global one":            {"", own, own},
		"one of the cluster that is none": {global, "name-of-a-secret", "name-of-a-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := MergePullSecrets(tc.global, tc.own); err != nil || got != tc.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	for _, bad := range []string{"not-json-secret", `{}`, `{"auths":{}}`} {
		if _, err := MergePullSecrets(bad, own); fault.KindOf(err) != fault.Denied || strings.Contains(err.Error(), "not-json-secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestTheGlobalPullSecretIsAddedToThatOfTheTemplate(t *testing.T) {
	p := Params{ClusterName: "c", BaseDomain: "example.com", Platform: hivev1.Platform{Local: &hivev1.LocalPlatform{}}, GlobalPullSecret: `{"auths":{"a":{"auth":"g"}}}`}
	out, err := FillFromSecrets([]byte("pullSecret: '{\"auths\":{\"b\":{\"auth\":\"o\"}}}'\n"), p)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); !strings.Contains(text, `"a":{"auth":"g"}`) || !strings.Contains(text, `"b":{"auth":"o"}`) {
		t.Errorf("got\n%s", text)
	}
	again, err := FillFromSecrets(out, p)
	if err != nil || string(again) != string(out) {
		t.Errorf("filled again it differs: %v\n%s", err, again)
	}
}
