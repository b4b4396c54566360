package resourcemetrics

import (
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/metrics-server/pkg/api"
)

// DescribeKinds adds the kinds of the API to the OpenAPI documents of a server that is configured with v2
// and v3, which contain their types already. kubectl explain looks for kinds.
func DescribeKinds(v2 *common.Config, v3 *common.OpenAPIV3Config) {
	v2.GetDefinitionName = addKinds(v2.GetDefinitionName)
	v3.GetDefinitionName = addKinds(v3.GetDefinitionName)
}

// addKinds returns a function that names types as others does, and knows the kinds of more types.
func addKinds(others func(string) (string, spec.Extensions)) func(string) (string, spec.Extensions) {
	namer := openapi.NewDefinitionNamer(api.Scheme)
	return func(name string) (string, spec.Extensions) {
		if described, kinds := others(name); kinds != nil {
			return described, kinds
		}
		return namer.GetDefinitionName(name)
	}
}
