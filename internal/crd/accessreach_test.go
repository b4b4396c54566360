package crd

import "testing"

func TestWhoMayUseAClusterClassOfAnotherNamespace(t *testing.T) {
	const (
		get = "get clusterclasses.cluster.x-k8s.io classes/q"
		ask = `spec.platform.capi.classRef: you may not read ClusterClass "q" in namespace "classes": use a ClusterClass of namespace "somewhere", or ask an administrator`

		class = `{size: 1, platform: {capi: {classRef: {name: q, namespace: classes}}}}`
	)
	checkReach(t, readPolicy(t, "access.yaml", "clusterclass-use.hotspare.io"), map[string]reachCase{
		"a class":                                {"", class, nil, get, ask},
		"a class instead of another platform":    {`{platform: {capi: null, aws: {}}}`, class, nil, get, ask},
		"a class instead of a template":          {`{platform: {capi: {templateRef: {name: x}}}}`, class, nil, get, ask},
		"a class of another name":                {`{platform: {capi: {classRef: {name: p, namespace: classes}}}}`, class, []string{"get clusterclasses.cluster.x-k8s.io classes/p"}, get, ask},
		"a class that moves":                     {`{platform: {capi: {classRef: {name: q}}}}`, class, nil, get, ask},
		"the same class, and another size":       {class, `{size: 2, platform: {capi: {classRef: {name: q, namespace: classes}}}}`, nil, "", ""},
		"a class of its namespace":               {"", `{platform: {capi: {classRef: {name: q}}}}`, nil, "", ""},
		"a class of its namespace by name":       {"", `{platform: {capi: {classRef: {name: q, namespace: somewhere}}}}`, nil, "", ""},
		"a template":                             {"", `{platform: {capi: {templateRef: {name: x}}}}`, nil, "", ""},
		"another platform":                       {"", `{platform: {capi: null, aws: {}}}`, nil, "", ""},
		"no platform, as from another installer": {"", `{}`, nil, "", ""},
	})
}
