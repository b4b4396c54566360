package clusterpool_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

const (
	// templateName is the Secret that pools may name as the template of install-configs.
	templateName = "template"
	// noImageSet names a ClusterImageSet that never exists.
	noImageSet = "v0"
	// follows begins the keys of the labels and annotations that pools give to their clusters.
	follows = "example.com/"
)

// timeouts are values of a pool's power timeouts. A resume that goes well takes less than
// the shortest.
var timeouts = []hivev1.Duration{"0s", "3m", "20m", "2h"}

func (h *history) timeout() *hivev1.Duration {
	if h.rand.IntN(3) == 0 {
		return nil
	}
	d := timeouts[h.rand.IntN(len(timeouts))]
	return &d
}

// poolEdits are the edits that a user can make to a ClusterPool, by the field that they change.
var poolEdits = []struct {
	field string
	// weight is how often the field is chosen, compared with others.
	weight int
	edit   func(h *history, p *hivev1.ClusterPool)
}{
	{"size", 4, func(h *history, p *hivev1.ClusterPool) { p.Spec.Size = int32(h.rand.IntN(5)) }},
	{"size between 0 and 1", 1, func(_ *history, p *hivev1.ClusterPool) {
		if p.Spec.Size++; p.Spec.Size > 1 {
			p.Spec.Size = 0
		}
	}},
	{"runningCount", 3, func(h *history, p *hivev1.ClusterPool) { p.Spec.RunningCount = int32(h.rand.IntN(5)) }},
	{"maxSize", 2, func(h *history, p *hivev1.ClusterPool) { p.Spec.MaxSize = h.number(8) }},
	{"maxConcurrent", 2, func(h *history, p *hivev1.ClusterPool) { p.Spec.MaxConcurrent = h.number(4) }},
	{"maxConcurrent between 0 and 1", 1, func(_ *history, p *hivev1.ClusterPool) {
		zero := p.Spec.MaxConcurrent != nil && *p.Spec.MaxConcurrent == 0
		p.Spec.MaxConcurrent = new(int32(0))
		if zero {
			p.Spec.MaxConcurrent = new(int32(1))
		}
	}},
	{"imageSetRef", 3, func(h *history, p *hivev1.ClusterPool) { p.Spec.ImageSetRef.Name = imageSets[h.rand.IntN(2)] }},
	{"imageSetRef to one that does not exist, or back", 1, func(_ *history, p *hivev1.ClusterPool) {
		p.Spec.ImageSetRef.Name = map[bool]string{true: imageSets[0], false: noImageSet}[p.Spec.ImageSetRef.Name == noImageSet]
	}},
	{"installConfigSecretTemplateRef", 1, func(_ *history, p *hivev1.ClusterPool) {
		if p.Spec.InstallConfigSecretTemplateRef != nil {
			p.Spec.InstallConfigSecretTemplateRef = nil
			return
		}
		p.Spec.InstallConfigSecretTemplateRef = &corev1.LocalObjectReference{Name: templateName}
	}},
	{"powerstateTransitionToRunningTimeout", 2, func(h *history, p *hivev1.ClusterPool) {
		p.Spec.PowerstateTransitionToRunningTimeout = h.timeout()
	}},
	{"powerstateTransitionToHibernatingTimeout", 1, func(h *history, p *hivev1.ClusterPool) {
		p.Spec.PowerstateTransitionToHibernatingTimeout = h.timeout()
	}},
	{"hibernationConfig.resumeTimeout", 2, func(h *history, p *hivev1.ClusterPool) {
		p.Spec.HibernationConfig = nil
		if d := h.timeout(); d != nil {
			p.Spec.HibernationConfig = &hivev1.HibernationConfig{ResumeTimeout: *d}
		}
	}},
	{"hibernateAfter", 1, func(h *history, p *hivev1.ClusterPool) { p.Spec.HibernateAfter = h.timeout() }},
	{"claimLifetime", 1, func(h *history, p *hivev1.ClusterPool) {
		p.Spec.ClaimLifetime = nil
		if h.rand.IntN(2) == 0 {
			p.Spec.ClaimLifetime = &hivev1.ClusterPoolClaimLifetime{Default: lifetime(h.rand.IntN(48)), Maximum: lifetime(24 + h.rand.IntN(48))}
		}
	}},
	{"labels", 1, func(h *history, p *hivev1.ClusterPool) {
		p.Spec.Labels = map[string]string{fmt.Sprint(follows, "label", h.rand.IntN(2)): fmt.Sprint(h.rand.IntN(3))}
	}},
	{"annotations", 1, func(h *history, p *hivev1.ClusterPool) {
		p.Spec.Annotations = map[string]string{fmt.Sprint(follows, "note", h.rand.IntN(2)): fmt.Sprint(h.rand.IntN(3))}
	}},
	{"baseDomain", 1, func(_ *history, p *hivev1.ClusterPool) {
		other := "other." + domain(p.Name)
		p.Spec.BaseDomain = map[bool]string{true: domain(p.Name), false: other}[p.Spec.BaseDomain == other]
	}},
	{"installAttemptsLimit", 1, func(h *history, p *hivev1.ClusterPool) { p.Spec.InstallAttemptsLimit = h.number(3) }},
	{"installerEnv", 1, func(h *history, p *hivev1.ClusterPool) {
		p.Spec.InstallerEnv = []corev1.EnvVar{{Name: "A", Value: fmt.Sprint(h.rand.IntN(3))}}
	}},
}

// editPool edits one field of some pool.
func (h *history) editPool() {
	o := h.any(&hivev1.ClusterPool{})
	if o == nil {
		return
	}
	p, sum := o.(*hivev1.ClusterPool), 0
	for _, e := range poolEdits {
		sum += e.weight
	}
	n := h.rand.IntN(sum)
	for _, e := range poolEdits {
		if n -= e.weight; n < 0 {
			h.edit("user", p, e.field, func() { e.edit(h, p) })
			return
		}
	}
}

// toggleTemplate breaks the Secret with the template of install-configs, mends it, deletes
// it, or creates it.
func (h *history) toggleTemplate() {
	old, _ := h.store.GetSharedObject(&corev1.Secret{}, types.NamespacedName{Namespace: "pools", Name: templateName}).(*corev1.Secret)
	if old != nil && h.rand.IntN(3) == 0 {
		h.delete(old)
		return
	}
	h.setTemplate(h.rand.IntN(2) == 0)
}

// setTemplate sees that the Secret with the template exists, and that installs can use it or not.
func (h *history) setTemplate(good bool) {
	content := map[bool]string{true: "compute: []", false: "a: [b"}[good]
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: templateName},
		Data:       map[string][]byte{hivev1.SecretKeyInstallConfig: []byte(content)},
	}
	old, _ := h.store.GetSharedObject(want, types.NamespacedName{Namespace: "pools", Name: templateName}).(*corev1.Secret)
	if old == nil {
		h.make(want)
		return
	}
	old = old.DeepCopy()
	h.edit("user", old, "content "+content, func() { old.Data = want.Data })
}

// templateFits reports whether installs of a pool can use the template.
func (h *history) templateFits(p *hivev1.ClusterPool) bool {
	secret, _ := h.store.GetSharedObject(&corev1.Secret{}, types.NamespacedName{Namespace: p.Namespace, Name: templateName}).(*corev1.Secret)
	if secret == nil {
		return false
	}
	_, err := facts.RenderInstallConfig(secret.Data[hivev1.SecretKeyInstallConfig], p, p.Name)
	return err == nil
}

// togglePause pauses a cluster, or ends its pause.
func (h *history) togglePause() {
	o := h.any(&hivev1.ClusterDeployment{})
	if o == nil {
		return
	}
	cd := o.(*hivev1.ClusterDeployment)
	annotation := pauses[h.rand.IntN(len(pauses))]
	h.edit("user", cd, "toggle "+annotation, func() {
		if cd.Annotations[annotation] == "true" {
			delete(cd.Annotations, annotation)
			return
		}
		metav1.SetMetaDataAnnotation(&cd.ObjectMeta, annotation, "true")
	})
}

// pauses are the annotations that keep everybody else from acting on a cluster.
var pauses = []string{hivev1.AnnotationReconcilePause, hivev1.AnnotationPowerPause}

func paused(cd *hivev1.ClusterDeployment) bool {
	return cd.Annotations[hivev1.AnnotationReconcilePause] == "true" ||
		cd.Annotations[hivev1.AnnotationPowerPause] == "true" && cd.Spec.Installed && cd.DeletionTimestamp == nil
}

// withoutFollowed is a map without what a cluster follows of its pool.
func withoutFollowed(m map[string]string) []string {
	var out []string
	for k, v := range m {
		if !strings.HasPrefix(k, follows) {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return out
}
