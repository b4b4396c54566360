package clusterpool

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

// reservedAnnotationPrefix begins the annotations that say how a cluster was made, or how to treat it:
// they stay as they are when the pool is edited.
const reservedAnnotationPrefix = "hive.openshift.io/"

// syncTemplate brings an unclaimed cluster up to what its pool says by now, as far as it
// can still follow: edits that make no cluster stale are not without effect (Hive
// B22). It is for a cluster that is written anyway, and so costs no call. What an
// API server would refuse is left out: it must not keep the cluster from its claim.
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

// setValidDuration sets a duration to another that can be read.
func setValidDuration(to **hivev1.Duration, from *hivev1.Duration) {
	if from != nil {
		if _, err := from.Parse(); err != nil {
			return
		}
	}
	*to = from
}
