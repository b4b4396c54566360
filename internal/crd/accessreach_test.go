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
		"a class of another name":                {`{platform: {capi: {classRef: {name: p, namespace: classes}}}}`, class, nil, get, ask},
		"a class that moves":                     {`{platform: {capi: {classRef: {name: q}}}}`, class, nil, get, ask},
		"the same class, and another size":       {class, `{size: 2, platform: {capi: {classRef: {name: q, namespace: classes}}}}`, nil, "", ""},
		"a class of its namespace":               {"", `{platform: {capi: {classRef: {name: q}}}}`, nil, "", ""},
		"a class of its namespace by name":       {"", `{platform: {capi: {classRef: {name: q, namespace: somewhere}}}}`, nil, "", ""},
		"a template":                             {"", `{platform: {capi: {templateRef: {name: x}}}}`, nil, "", ""},
		"another platform":                       {"", `{platform: {capi: null, aws: {}}}`, nil, "", ""},
		"no platform, as from another installer": {"", `{}`, nil, "", ""},
	})
}

func TestWhoMayPutValuesOfSecretsIntoTheEnvironmentOfTheInstaller(t *testing.T) {
	const (
		plain  = `{size: 1, installerEnv: [{name: A, value: a}, {name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}]}`
		secret = `{size: 1, installerEnv: [{name: A, value: a}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`
		moved  = `{size: 1, installerEnv: [{name: A, value: b}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`
		bigger = `{size: 2, installerEnv: [{name: A, value: a}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`

		get = "get secrets somewhere/*"
		ask = `spec.installerEnv: variable "B" can contain a value of a Secret, by valueFrom.secretKeyRef or $(NAME): write the value itself, or ask somebody who may read all Secrets`
	)
	checkReach(t, readPolicy(t, "access.yaml", "clusterpool-installer-env.hotspare.io"), map[string]reachCase{
		"a value of a Secret":                    {"", secret, nil, get, ask},
		"a value of a Secret instead of another": {plain, secret, nil, get, ask},
		"a variable beside a value of a Secret":  {secret, moved, nil, get, ask},
		"the credentials of the pool by name":    {`{size: 1}`, `{installerEnv: [{name: B, value: "http://x:$(AWS_SECRET_ACCESS_KEY)@proxy"}]}`, nil, get, ask},
		"plain values":                           {"", plain, nil, "", ""},
		"no value of a Secret any more":          {secret, plain, nil, "", ""},
		"another size":                           {secret, bigger, nil, "", ""},
		"no environment any more":                {secret, `{installerEnv: null}`, nil, "", ""},
	})
}
