package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
)

// invalidFieldMessages describes the values of a pool with which no cluster can be created. The API
// refuses such values; stored ones come from a version that did not, or from another schema.
func invalidFieldMessages(p *hivev1.ClusterPool) []string {
	var out []string
	if strings.Contains(p.Name, ".") {
		out = append(out, fmt.Sprintf("metadata.name: %q has a dot, which the namespaces of clusters cannot have: create a pool with another name, and delete this one", p.Name))
	}
	domain := p.Spec.BaseDomain
	if domain != "" && !IsFake(p) && len(validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, "."))) > 0 {
		out = append(out, fmt.Sprintf("spec.baseDomain: %.64q is not a DNS domain: write one, such as ci.example.com", domain))
	}
	for _, k := range slices.Sorted(maps.Keys(p.Spec.Labels)) {
		switch v := p.Spec.Labels[k]; {
		case len(validation.IsQualifiedName(k)) > 0:
			out = append(out, fmt.Sprintf("spec.labels: %.64q cannot be the key of a label: change or remove it", k))
		case len(validation.IsValidLabelValue(v)) > 0:
			out = append(out, fmt.Sprintf("spec.labels[%.64q]: %.64q cannot be the value of a label: change or remove it", k, v))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(p.Spec.Annotations)) {
		if len(validation.IsQualifiedName(strings.ToLower(k))) > 0 {
			out = append(out, fmt.Sprintf("spec.annotations: %.64q cannot be the key of an annotation: change or remove it", k))
		}
	}
	if _, err := pool.ParseLadder(p.Annotations[hivev1.AnnotationSleepLadder]); err != nil {
		out = append(out, fmt.Sprintf("metadata.annotations[%s]: %v", hivev1.AnnotationSleepLadder, err))
	}
	return out
}
