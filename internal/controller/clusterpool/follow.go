package clusterpool

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

// reservedAnnotationPrefix is the prefix of the annotations that record how a cluster was made, or
// control how hotspare treats it: edits of the pool do not change them.
const reservedAnnotationPrefix = "hive.openshift.io/"

// syncTemplate updates an unclaimed cluster to the pool's current spec, as far as an existing
// cluster can still follow, so that edits that make no cluster stale take effect (Hive B22). It is
// for a cluster that is written anyway, and so costs no request. It leaves out values that the API
// server would refuse: they must not keep the cluster from its claim.
func syncTemplate(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
	spec := p.Spec.DeepCopy()
	for k, v := range spec.Labels {
		if len(validation.IsQualifiedName(k)) == 0 && len(validation.IsValidLabelValue(v)) == 0 {
			metav1.SetMetaDataLabel(&cd.ObjectMeta, k, v)
		}
	}
	cd.Labels = clusterBuilder{pool: p}.withPoolLabels(cd.Labels)
	for k, v := range spec.Annotations {
		if !strings.HasPrefix(k, reservedAnnotationPrefix) && len(validation.IsQualifiedName(strings.ToLower(k))) == 0 {
			metav1.SetMetaDataAnnotation(&cd.ObjectMeta, k, v)
		}
	}
	setValidDuration(&cd.Spec.HibernateAfter, spec.HibernateAfter)
	setValidDuration(&cd.Spec.PowerstateTransitionToRunningTimeout, facts.ResumeTimeout(p))
	setValidDuration(&cd.Spec.PowerstateTransitionToHibernatingTimeout, spec.PowerstateTransitionToHibernatingTimeout)
}

// setValidDuration sets *to to from if from can be parsed.
func setValidDuration(to **hivev1.Duration, from *hivev1.Duration) {
	if from != nil {
		if _, err := from.Parse(); err != nil {
			return
		}
	}
	*to = from
}
