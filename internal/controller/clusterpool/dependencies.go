package clusterpool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// verdictAge is how long it is believed that a pool's Secrets are there, or are
// not. They are read from the API server, since caching every Secret of a hub
// would cost more memory than everything else.
const verdictAge = 5 * time.Second

// verdicts remembers what was missing, by pool.
type verdicts struct {
	mu sync.Mutex
	by map[types.UID]verdict
}

type verdict struct {
	at         time.Time
	generation int64
	missing    []string
}

func (v *verdicts) forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.by, uid)
}

func (v *verdicts) recall(p *hivev1.ClusterPool, now time.Time) ([]string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, ok := v.by[p.UID]
	return old.missing, ok && old.generation == p.Generation && now.Sub(old.at) < verdictAge
}

func (v *verdicts) keep(p *hivev1.ClusterPool, missing []string, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = map[types.UID]verdict{}
	}
	v.by[p.UID] = verdict{now, p.Generation, missing}
}

// missing tells what the pool refers to and does not exist, each in words.
func (r *Reconciler) missing(ctx context.Context, p *hivev1.ClusterPool) ([]string, error) {
	if p.DeletionTimestamp != nil {
		r.verdicts.forget(p.UID)
		return nil, nil
	}
	if old, ok := r.verdicts.recall(p, r.Clock.Now()); ok {
		return old, nil
	}
	var out []string
	if words := r.noInstaller(p); words != "" {
		out = append(out, words)
	}
	for _, need := range needs(p) {
		words, err := r.lacks(ctx, p.Namespace, need)
		if err != nil {
			return nil, err
		}
		if words != "" {
			out = append(out, need.role+": "+words)
		}
	}
	r.verdicts.keep(p, out, r.Clock.Now())
	return out, nil
}

// noInstaller says that clusters of the pool's platform cannot be made here; ""
// when they can, or need not be.
func (r *Reconciler) noInstaller(p *hivev1.ClusterPool) string {
	platform := p.Spec.Platform.Name()
	if fake(p) || len(r.Installers) == 0 || slices.Contains(r.Installers, platform) {
		return ""
	}
	return fmt.Sprintf("platform: no installer for spec.platform.%s is set up here, only for %s: use such a platform, or the annotation %s in spec.annotations",
		platform, strings.Join(r.Installers, ", "), hivev1.AnnotationFake)
}

// need is one thing that a pool refers to.
type need struct {
	role, field, name string
	obj               client.Object
	key               string // of a Secret; "" when any will do
	// wrong says what is wrong with what stands at the key; nil when anything will do.
	wrong func(value []byte) error
}

func needs(p *hivev1.ClusterPool) []need {
	out := []need{{role: "cluster image set", field: "spec.imageSetRef", name: p.Spec.ImageSetRef.Name, obj: &hivev1.ClusterImageSet{}}}
	secret := func(n need, ref *corev1.LocalObjectReference) {
		if ref != nil && ref.Name != "" {
			n.name, n.obj = ref.Name, &corev1.Secret{}
			out = append(out, n)
		}
	}
	secret(need{role: "pull secret", field: "spec.pullSecretRef", key: hivev1.SecretKeyPullSecret}, p.Spec.PullSecretRef)
	secret(need{
		role: "install config template secret", field: "spec.installConfigSecretTemplateRef", key: hivev1.SecretKeyInstallConfig,
		wrong: func(template []byte) error { _, err := render(template, p, p.Name); return err },
	}, p.Spec.InstallConfigSecretTemplateRef)
	set, platform := p.Spec.Platform.Settings(), "spec.platform."+p.Spec.Platform.Name()
	secret(need{role: "credentials secret", field: platform + ".credentialsSecretRef"}, set.CredentialsSecretRef)
	secret(need{role: "certificates secret", field: platform + ".certificatesSecretRef"}, set.CertificatesSecretRef)
	if ref := p.Spec.CustomizationRef; ref != nil {
		out = append(out, need{role: "customization", field: "spec.customizationRef", name: ref.Name, obj: &hivev1.ClusterDeploymentCustomization{}})
	}
	return out
}

// lacks says in words what is wrong with what is needed; "" when nothing is.
func (r *Reconciler) lacks(ctx context.Context, namespace string, n need) (string, error) {
	key := types.NamespacedName{Namespace: namespace, Name: n.name}
	reader := client.Reader(r.Client)
	secret, isSecret := n.obj.(*corev1.Secret)
	if isSecret {
		reader = r.Live
	}
	if _, clusterScoped := n.obj.(*hivev1.ClusterImageSet); clusterScoped {
		key.Namespace = ""
	}
	switch err := reader.Get(ctx, key, n.obj); {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s %q does not exist: create it, or change %s", kindOf(n.obj), n.name, n.field), nil
	case err != nil:
		return "", fmt.Errorf("reading %s %s: %w", n.role, n.name, err)
	case isSecret && n.key != "" && len(secret.Data[n.key]) == 0:
		return fmt.Sprintf("Secret %q has no key %q: add it, or change %s", n.name, n.key, n.field), nil
	case isSecret && n.wrong != nil:
		if err := n.wrong(secret.Data[n.key]); err != nil {
			return fmt.Sprintf("Secret %q, key %q: %v: correct it, or change %s", n.name, n.key, err, n.field), nil
		}
	}
	return "", nil
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *hivev1.ClusterImageSet:
		return "ClusterImageSet"
	case *corev1.Secret:
		return "Secret"
	default:
		return "ClusterDeploymentCustomization"
	}
}

// inWords joins problems as Hive does: one as it is, several in brackets.
func inWords(problems []string) string {
	if len(problems) == 1 {
		return problems[0]
	}
	return "[" + strings.Join(problems, ", ") + "]"
}
