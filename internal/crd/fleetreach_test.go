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
		claim  = `{clusterSource: {claim: {pools: [{poolRef: {name: p}}]}}}`
		aws    = `{clusterSource: {deployment: {template: {platform: {aws: {}}}}}}`
		recipe = `{clusterSource: {deployment: {template: {platform: {exec: {recipe: r, with: {a: "1"}}}}}}}`
		class  = `{clusterSource: {deployment: {template: {platform: {capi: {classRef: {name: q, namespace: classes}}}}}}}`
		other  = `{clusterSource: {deployment: {template: {platform: {exec: {recipe: r, with: {a: "2"}}}}}}}`

		createClaims, createClusters = "create clusterclaims.hive.openshift.io somewhere/*", "create clusterdeployments.hive.openshift.io somewhere/*"

		use       = "use recipes.hotspare.io somewhere/r"
		readClass = "get clusterclasses.cluster.x-k8s.io classes/q"
		askClass  = `template.platform.capi.classRef: you may not read ClusterClass "q" in namespace "classes"`
		askUse    = `spec.clusterSource.deployment.template.platform.exec.recipe: the programs of recipe "r" would run with parameters of yours: ask an administrator`
		askClaim  = `spec.clusterSource.claim creates ClusterClaims in namespace "somewhere": ask somebody who may create them there`
		askCreate = `spec.clusterSource.deployment creates ClusterDeployments in namespace "somewhere": ask somebody who may create them there`
	)
	more := func(spec string) string {
		return strings.Replace(spec, "{", "{instanceTypes: [{name: a, minDataPlanes: 1}], ", 1)
	}
	checkReach(t, readPolicy(t, "fleet.yaml", "fleetregion-reach.hotspare.io"), map[string]reachCase{
		"pools to claim from":                  {"", claim, []string{createClusters}, createClaims, askClaim},
		"more data planes from pools":          {claim, more(claim), []string{createClusters}, createClaims, askClaim},
		"clusters to create":                   {"", aws, []string{createClaims}, createClusters, askCreate},
		"clusters to create instead of claims": {claim, aws, []string{createClaims}, createClusters, askCreate},
		"more data planes":                     {aws, more(aws), []string{createClaims}, createClusters, askCreate},
		"more data planes of a recipe":         {recipe, more(recipe), []string{use}, createClusters, askCreate},
		"nothing but the metadata":             {recipe, recipe, nil, "", ""},
		"a recipe":                             {"", recipe, []string{createClusters}, use, askUse},
		"other parameters of a recipe":         {recipe, other, []string{createClusters}, use, askUse},
		"a recipe instead of another platform": {aws, recipe, []string{createClusters}, use, askUse},
		"a class":                              {aws, class, []string{createClusters}, readClass, askClass},
		"a class of its own namespace":         {aws, strings.Replace(class, "classes", "somewhere", 1), []string{createClusters}, "", ""},
		"more data planes of a class":          {class, more(class), []string{createClaims}, createClusters, askCreate},
	})
}

func TestWhoMayNameTheClusterOfADataPlane(t *testing.T) {
	const (
		none       = `{region: r}`
		claim      = `{region: r, clusterRef: {claim: {name: c}}}`
		cluster    = `{region: r, clusterRef: {deployment: {name: c}}}`
		kubeconfig = `{region: r, clusterRef: {kubeconfigSecret: {name: c}}}`
	)
	checkReach(t, readPolicy(t, "fleet.yaml", "dataplane-reach.hotspare.io"), map[string]reachCase{
		"none":                  {"", none, nil, "", ""},
		"a claim":               {"", claim, nil, "patch clusterclaims.hive.openshift.io somewhere/c", `spec.clusterRef.claim: hotspare would use the cluster of ClusterClaim "c"`},
		"a claim later":         {none, claim, nil, "patch clusterclaims.hive.openshift.io somewhere/c", `ask somebody who may patch the claim`},
		"another kind":          {claim, cluster, nil, "patch clusterdeployments.hive.openshift.io somewhere/c", `ask somebody who may patch the ClusterDeployment`},
		"a cluster":             {"", cluster, nil, "patch clusterdeployments.hive.openshift.io somewhere/c", `hotspare would use the cluster of ClusterDeployment "c"`},
		"a kubeconfig":          {"", kubeconfig, nil, "get secrets somewhere/c", `hotspare would use the kubeconfig in Secret "c": ask somebody who may read the Secret`},
		"the same, and a field": {kubeconfig, `{protected: true, region: r, clusterRef: {kubeconfigSecret: {name: c}}}`, nil, "", ""},
	})
}
