package crd

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// reachCase is a write that one right allows. With before, it is an update.
type reachCase struct {
	before, spec string
	// given are rights of the user that are not enough.
	given []string
	// right is what the user needs, in the form of authorize; "" if the policy demands nothing.
	right string
	// refused is what the refusal says to a user without the right.
	refused string
}

// checkReach tests that a policy refuses each write without its right, and accepts it with the right.
func checkReach(t *testing.T, p policy, cases map[string]reachCase) {
	t.Helper()
	parse := func(spec string) map[string]any {
		out := map[string]any{}
		if err := yaml.Unmarshal([]byte(spec), &out); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"metadata": map[string]any{"namespace": "somewhere", "name": "x"}, "spec": out}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old map[string]any
			if tc.before != "" {
				old = parse(tc.before)
			}
			without := strings.Join(p.judgeAs(t, authorize(tc.given...), parse(tc.spec), old), "\n")
			if !strings.Contains(without, tc.refused) || (without == "") != (tc.right == "") {
				t.Errorf("without the right: %q, want %q", without, tc.refused)
			}
			if with := p.judgeAs(t, authorize(append(tc.given, tc.right)...), parse(tc.spec), old); len(with) > 0 {
				t.Errorf("with the right to %s: %q", tc.right, with)
			}
		})
	}
}

func TestWhoMayWriteAFleetRegion(t *testing.T) {
	const (
		recipe = `{clusterSource: {deployment: {template: {platform: {exec: {recipe: r, with: {a: "1"}}}}}}}`
		other  = `{clusterSource: {deployment: {template: {platform: {exec: {recipe: r, with: {a: "2"}}}}}}}`
		use    = "use recipes.hotspare.io somewhere/r"
		ask    = `spec.clusterSource.deployment.template.platform.exec.recipe: the programs of recipe "r" would run with parameters of yours: ask an administrator`
	)
	checkReach(t, readPolicy(t, "fleet.yaml", "fleetregion-reach.hotspare.io"), map[string]reachCase{
		"a recipe":                             {"", recipe, nil, use, ask},
		"other parameters of a recipe":         {recipe, other, nil, use, ask},
		"a recipe instead of another platform": {`{clusterSource: {deployment: {template: {platform: {aws: {}}}}}}`, recipe, nil, use, ask},
		"another limit beside a recipe":        {recipe, strings.Replace(recipe, "{", "{instanceTypes: [{name: a, limit: 1}], ", 1), nil, "", ""},
	})
}
