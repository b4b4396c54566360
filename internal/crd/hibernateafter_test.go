package crd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestAHibernateAfterShorterThanAResumeIsWarnedOf(t *testing.T) {
	const (
		cloud  = "platform: {aws: {region: a}}"
		pool   = ": a claimed cluster may spend more time resuming than running"
		alone  = ": the cluster may spend more time resuming than running"
		minute = "warning: spec.hibernateAfter 1m is shorter than 10m: a resume takes minutes, so a claimed cluster may spend more time resuming than running"
	)
	for name, tc := range map[string]struct {
		kind, spec string
		want       string
	}{
		"none":                        {"ClusterPool", cloud, ""},
		"long":                        {"ClusterPool", cloud + "\nhibernateAfter: 8h", ""},
		"never":                       {"ClusterPool", cloud + "\nhibernateAfter: 0s", ""},
		"null":                        {"ClusterPool", cloud + "\nhibernateAfter: null\nhibernationConfig: null", ""},
		"a minute":                    {"ClusterPool", cloud + "\nhibernateAfter: 1m", minute},
		"a minute of local clusters":  {"ClusterPool", "platform: {local: {}}\nhibernateAfter: 1m", ""},
		"a minute of fake clusters":   {"ClusterPool", cloud + "\nhibernateAfter: 1m\nannotations: {hive.openshift.io/fake-cluster: 'true'}", ""},
		"a minute with annotations":   {"ClusterPool", cloud + "\nhibernateAfter: 1m\nannotations: {a: b}", minute},
		"below Hive's resume timeout": {"ClusterPool", cloud + "\nhibernateAfter: 15m\nhibernationConfig: {resumeTimeout: 20m}", "warning: spec.hibernateAfter 15m is shorter than a resume may take (spec.hibernationConfig.resumeTimeout 20m)" + pool},
		"below the seed's, which wins": {
			"ClusterPool", cloud + "\nhibernateAfter: 15m\nhibernationConfig: {resumeTimeout: 5m}\npowerstateTransitionToRunningTimeout: 1h",
			"warning: spec.hibernateAfter 15m is shorter than a resume may take (spec.powerstateTransitionToRunningTimeout 1h)" + pool,
		},
		"as long as a resume may take":     {"ClusterPool", cloud + "\nhibernateAfter: 5m\nhibernationConfig: {resumeTimeout: 5m}", ""},
		"of a local pool below its own":    {"ClusterPool", "platform: {local: {}}\nhibernateAfter: 1m\nhibernationConfig: {resumeTimeout: 5m}", "warning: spec.hibernateAfter 1m is shorter than a resume may take (spec.hibernationConfig.resumeTimeout 5m)" + pool},
		"of a cluster":                     {"ClusterDeployment", cloud + "\nhibernateAfter: 1m", "warning: spec.hibernateAfter 1m is shorter than 10m: a resume takes minutes, so the cluster may spend more time resuming than running"},
		"of a cluster below its timeout":   {"ClusterDeployment", cloud + "\nhibernateAfter: 15m\npowerstateTransitionToRunningTimeout: 1h", "warning: spec.hibernateAfter 15m is shorter than a resume may take (spec.powerstateTransitionToRunningTimeout 1h)" + alone},
		"of a cluster, long":               {"ClusterDeployment", cloud + "\nhibernateAfter: 8h", ""},
		"of a cluster that a pool creates": {"ClusterDeployment", cloud + "\nhibernateAfter: 1m\nclusterPoolRef: {poolName: a, namespace: b}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"size": int64(1)}
			if err := yaml.Unmarshal([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			object := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": spec}
			if diff := cmp.Diff(tc.want, limitsOf(t, tc.kind, object, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAClusterIsWarnedOfItsHibernateAfterWhenThatChanges(t *testing.T) {
	cluster := func(after string) map[string]any {
		return map[string]any{"metadata": map[string]any{}, "spec": map[string]any{
			"hibernateAfter": after, "clusterPoolRef": map[string]any{"poolName": "a"}, "platform": map[string]any{"aws": map[string]any{}},
		}}
	}
	for name, tc := range map[string]struct {
		before, after string
		warns         bool
	}{
		"a user shortens it":         {"8h", "1m", true},
		"another write leaves it so": {"1m", "1m", false},
		"a user lengthens it":        {"1m", "8h", false},
	} {
		t.Run(name, func(t *testing.T) {
			if said := limitsOf(t, "ClusterDeployment", cluster(tc.after), cluster(tc.before)); (said != "") != tc.warns {
				t.Errorf("said %q", said)
			}
		})
	}
}

// limitsOf returns what the policies on limits report for an object.
func limitsOf(t *testing.T, kind string, object, old map[string]any) string {
	t.Helper()
	name := map[string]string{"ClusterPool": "clusterpool-limits.hotspare.io", "ClusterDeployment": "clusterdeployment-limits.hotspare.io"}[kind]
	said := ""
	for _, p := range policiesOf(t, kind) {
		if p.Name != name {
			continue
		}
		for _, words := range p.judge(t, object, old) {
			said += words
		}
	}
	return said
}
