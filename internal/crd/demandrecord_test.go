package crd

import (
	"strings"
	"testing"
)

// The counts of a pool follow from its record, so it takes the right to change the pool to write one.
func TestWhoMayWriteTheRecordOfAPool(t *testing.T) {
	p := readPolicy(t, "poolpolicies.yaml", "demand-record.hotspare.io")
	newMap := func(pool string) map[string]any {
		labels := map[string]any{}
		if pool != "-" {
			labels["hotspare.io/demand-record"] = pool
		}
		return map[string]any{"metadata": map[string]any{"namespace": "somewhere", "name": "dev.demand", "labels": labels}}
	}
	const dev, other = "patch clusterpools.hive.openshift.io somewhere/dev", "patch clusterpools.hive.openshift.io somewhere/other"
	const refused = `ConfigMap "dev.demand" has the record of claims of ClusterPool "dev", from which its counts are computed: ask somebody who may patch the pool to write it`
	for name, tc := range map[string]struct {
		before, after string // the pool of the label; "-" is a ConfigMap without it, "" none
		rights        []string
		want          string
	}{
		"a new record":                          {"", "dev", nil, refused},
		"a new record, by who may patch a pool": {"", "dev", []string{dev}, ""},
		"a record that is written again":        {"dev", "dev", []string{other}, refused},
		"a ConfigMap that becomes a record":     {"-", "dev", []string{other}, refused},
		"a record that becomes a ConfigMap":     {"dev", "-", []string{other}, refused},
		"the record of another pool":            {"other", "dev", []string{other}, refused},
		"the record of two own pools":           {"other", "dev", []string{other, dev}, ""},
		"the record of a pool that is taken":    {"dev", "other", []string{other}, refused},
		"a label without a pool":                {"", "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var old map[string]any
			if tc.before != "" {
				old = newMap(tc.before)
			}
			got := strings.Join(p.judgeAs(t, authorize(tc.rights...), newMap(tc.after), old), "\n")
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
