package history

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

const home = "pools"

// maxPriority is the highest priority in these histories.
const maxPriority = 100

var (
	poolNames   = []string{"p", "q", "r"}
	users       = []string{"alice", "bob", "carol"}
	groups      = map[string]string{"alice": "devs", "bob": "devs"}
	policyNames = []string{"all", "devs", "one"}
	gateNames   = []string{"nodes", "pod", "token"}
	gateTypes   = map[string]v1alpha1.GateType{"nodes": v1alpha1.GateNodesReady, "pod": v1alpha1.GatePodRuns, "token": v1alpha1.GateServiceAccountToken}
	priorities  = []int{-100, -5, -1, 0, 0, 0, 1, 5, maxPriority}
)

// actAsUser does one thing that a user does.
func (h *history) actAsUser() {
	switch n := h.rand.IntN(40); {
	case h.mood.steady && n >= 30 && n < 37:
		h.create(h.newClaim())
		h.releaseClaim()
	case h.mood.restless && n%3 == 0:
		h.changePriority()
	case h.mood.foreignFinalizers && n%4 == 0:
		h.toggleFinalizer()
	case n < 10, h.mood.tight && n < 13:
		h.create(h.newClaim())
	case n < 17:
		h.create(h.newSet())
	case n < 26:
		h.releaseClaim()
	case n < 30:
		h.releaseSet()
	case n < 33:
		h.changePriority()
	case n < 35:
		h.editPool()
	case n < 36:
		h.togglePool()
	case n < 37 && h.mood.policies:
		h.changePolicy()
	case n < 39 && h.mood.gates:
		h.changeGates()
	default:
		h.beatHeart()
	}
}

// number is below most, rarely the least, and nil about every other time.
func (h *history) number(least, most int) *int32 {
	switch h.rand.IntN(12) {
	case 0:
		return new(int32(least))
	case 1, 2, 3, 4, 5:
		return nil
	default:
		return new(int32(least + 1 + h.rand.IntN(most-least-1)))
	}
}

func (h *history) newPool(name string) *hivev1.ClusterPool {
	p := &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name, Labels: map[string]string{"name": name}},
		Spec: hivev1.ClusterPoolSpec{
			Size: int32(1 + h.rand.IntN(4)), RunningCount: int32(h.rand.IntN(4)), BaseDomain: "example.com", MaxSize: h.number(0, 7), MaxConcurrent: h.number(0, 4),
			ImageSetRef: hivev1.ClusterImageSetReference{Name: "v1"}, Platform: hivev1.Platform{Local: &hivev1.LocalPlatform{}},
		},
	}
	if h.mood.tight {
		p.Spec.MaxSize = new(int32(1 + h.rand.IntN(4)))
	}
	if h.rand.IntN(2) == 0 {
		p.Spec.HibernationConfig = &hivev1.HibernationConfig{ResumeTimeout: "20m"}
	}
	return p
}

func newPoolPolicy(name string) *v1alpha1.PoolPolicy {
	return &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name},
		Spec:       v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "b"}},
	}
}

func (h *history) newBootstrap() *v1alpha1.ClusterBootstrap {
	b := &v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "b"}}
	h.setGates(b)
	return b
}

func (h *history) setGates(b *v1alpha1.ClusterBootstrap) {
	b.Spec = v1alpha1.ClusterBootstrapSpec{GateTimeout: []hivev1.Duration{"90s", "10m"}[h.rand.IntN(2)]}
	for _, name := range gateNames {
		if h.rand.IntN(2) == 0 || name == gateNames[0] {
			b.Spec.Gates = append(b.Spec.Gates, v1alpha1.Gate{Name: name, Type: gateTypes[name]})
		}
	}
}

// annotate sets the creator of a claim or a set, as the hub does; now and then it is not known.
func (h *history) annotate(m *metav1.ObjectMeta) {
	if h.rand.IntN(40) == 0 {
		return
	}
	user := users[h.rand.IntN(len(users))]
	metav1.SetMetaDataAnnotation(m, hivev1.AnnotationCreator, user)
	if group := groups[user]; group != "" {
		metav1.SetMetaDataAnnotation(m, hivev1.AnnotationCreatorGroups, "authenticated\n"+group)
	}
}

// poolName is a pool, now and then one that does not exist.
func (h *history) poolName() string {
	if h.rand.IntN(20) == 0 {
		return poolNames[len(poolNames)-1]
	}
	return poolNames[h.rand.IntN(h.mood.pools)]
}

func (h *history) priority() int { return priorities[h.rand.IntN(len(priorities))] }

func (h *history) newClaim() *hivev1.ClusterClaim {
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: fmt.Sprintf("x%d", h.rand.IntN(h.mood.names))},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: h.poolName()},
	}
	h.annotate(&c.ObjectMeta)
	if h.rand.IntN(2) == 0 {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, hivev1.AnnotationPriority, fmt.Sprint(h.priority()))
	}
	if h.rand.IntN(4) == 0 {
		c.Spec.Lifetime = new(hivev1.DurationOf(time.Duration(1+h.rand.IntN(60)) * time.Minute))
	}
	if h.rand.IntN(6) == 0 {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, hivev1.AnnotationHeartbeatTimeout, "5m")
	}
	return c
}

func (h *history) newSet() *v1alpha1.ClaimSet {
	s := &v1alpha1.ClaimSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: fmt.Sprintf("s%d", h.rand.IntN(8))},
		Spec:       v1alpha1.ClaimSetSpec{Size: int32(1 + h.rand.IntN(4)), Priority: int32(h.priority())},
	}
	h.annotate(&s.ObjectMeta)
	if h.rand.IntN(4) == 0 {
		s.Spec.Lifetime = new(hivev1.DurationOf(time.Duration(1+h.rand.IntN(60)) * time.Minute))
	}
	if h.rand.IntN(3) == 0 {
		s.Spec.ClusterPoolName = h.poolName()
		return s
	}
	s.Spec.PoolSelector = &v1alpha1.ClaimSetPoolSelector{}
	for _, i := range h.rand.Perm(len(poolNames))[:1+h.rand.IntN(len(poolNames))] {
		p := v1alpha1.PoolPreference{MatchLabels: map[string]string{"name": poolNames[i]}}
		if h.rand.IntN(2) == 0 {
			p.FallbackAfter = new(hivev1.DurationOf(time.Duration(1+h.rand.IntN(5)) * time.Minute))
		}
		s.Spec.PoolSelector.Preferences = append(s.Spec.PoolSelector.Preferences, p)
	}
	return s
}

// releaseClaim releases a claim, most often one that has a cluster.
func (h *history) releaseClaim() {
	for range 4 {
		c, ok := h.pick(&hivev1.ClusterClaim{}).(*hivev1.ClusterClaim)
		if !ok || c.Spec.Namespace != "" || h.rand.IntN(8) == 0 {
			if ok {
				h.delete(c)
			}
			return
		}
	}
}

// releaseSet releases a set, most often one that was served; restless users release others as often.
func (h *history) releaseSet() {
	s, ok := h.pick(&v1alpha1.ClaimSet{}).(*v1alpha1.ClaimSet)
	if ok && (s.Status.ServedTime != nil || h.mood.restless || h.rand.IntN(6) == 0) {
		h.delete(s)
	}
}

func (h *history) changePriority() {
	if h.rand.IntN(2) == 0 {
		if s, ok := h.pick(&v1alpha1.ClaimSet{}).(*v1alpha1.ClaimSet); ok {
			h.edit("user", s, "priority", func() { s.Spec.Priority = int32(h.priority()) })
		}
		return
	}
	if c, ok := h.pick(&hivev1.ClusterClaim{}).(*hivev1.ClusterClaim); ok {
		h.edit("user", c, "priority", func() {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, hivev1.AnnotationPriority, []string{fmt.Sprint(h.priority()), "high"}[h.rand.IntN(8)/7])
		})
	}
}

// foreignFinalizer is the finalizer of a program of a user.
const foreignFinalizer = "example.com/keep"

// toggleFinalizer sets or removes the finalizer of a user on a claim.
func (h *history) toggleFinalizer() {
	if c, ok := h.pick(&hivev1.ClusterClaim{}).(*hivev1.ClusterClaim); ok {
		h.edit("user", c, "finalizer", func() {
			if !controllerutil.RemoveFinalizer(c, foreignFinalizer) && c.DeletionTimestamp == nil {
				controllerutil.AddFinalizer(c, foreignFinalizer)
			}
		})
	}
}

// removeFinalizers removes the finalizers of users from all claims.
func (h *history) removeFinalizers() {
	for _, c := range list[*hivev1.ClusterClaim](h.judge) {
		if c = c.DeepCopy(); controllerutil.ContainsFinalizer(c, foreignFinalizer) {
			h.edit("user", c, "finalizer removed", func() { controllerutil.RemoveFinalizer(c, foreignFinalizer) })
		}
	}
}

func (h *history) beatHeart() {
	if c, ok := h.pick(&hivev1.ClusterClaim{}).(*hivev1.ClusterClaim); ok && c.Annotations[hivev1.AnnotationHeartbeatTimeout] != "" {
		h.edit("user", c, "heartbeat", func() {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, hivev1.AnnotationHeartbeat, h.clock.Now().Format(time.RFC3339))
		})
	}
}

func (h *history) editPool() {
	p, ok := h.pick(&hivev1.ClusterPool{}).(*hivev1.ClusterPool)
	if !ok {
		return
	}
	h.edit("user", p, "counts and limits", func() {
		switch h.rand.IntN(4) {
		case 0:
			p.Spec.Size = int32(h.rand.IntN(4))
		case 1:
			p.Spec.RunningCount = int32(h.rand.IntN(3))
		case 2:
			p.Spec.MaxSize = h.number(0, 7)
		default:
			p.Spec.MaxConcurrent = h.number(0, 4)
		}
	})
}

// togglePool deletes a pool, or creates one that does not exist.
func (h *history) togglePool() {
	name := poolNames[h.rand.IntN(h.mood.pools)]
	if h.rand.IntN(4) == 0 {
		h.delete(&hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}})
		return
	}
	h.create(h.newPool(name))
}

func (h *history) newPolicySpec(name string) v1alpha1.ClaimPolicySpec {
	s := v1alpha1.ClaimPolicySpec{MaxClaims: h.number(0, 6), MaxClaimsPerUser: h.number(0, 5), MaxPriority: h.number(-2, 12)}
	switch name {
	case "devs":
		s.Subjects = []v1alpha1.ClaimSubject{{Kind: "Group", Name: "devs"}}
	case "one":
		s.Subjects = []v1alpha1.ClaimSubject{{Kind: "User", Name: users[h.rand.IntN(len(users))]}}
	default:
		for _, user := range users {
			s.Subjects = append(s.Subjects, v1alpha1.ClaimSubject{Kind: "User", Name: user})
		}
	}
	if h.rand.IntN(3) < 1 && name != policyNames[0] || h.mood.narrow && h.rand.IntN(4) > 0 {
		s.Pools = []string{poolNames[h.rand.IntN(len(poolNames))]}
	}
	if h.rand.IntN(4) == 0 {
		s.Lifetime = &v1alpha1.ClaimPolicyLifetime{Maximum: new(hivev1.Duration("30m"))}
	}
	return s
}

// changePolicy creates, edits or deletes a ClaimPolicy.
func (h *history) changePolicy() {
	name := policyNames[h.rand.IntN(len(policyNames))]
	if len(list[*v1alpha1.ClaimPolicy](h.judge)) == 0 {
		name = policyNames[0]
	}
	p := &v1alpha1.ClaimPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}}
	switch h.rand.IntN(8) {
	case 0:
		h.delete(p)
	case 1, 2, 3:
		h.edit("user", p, "policy", func() { p.Spec = h.newPolicySpec(name) })
	default:
		p.Spec = h.newPolicySpec(name)
		h.create(p)
	}
}

// changeGates edits, removes or adds gates.
func (h *history) changeGates() {
	name := poolNames[h.rand.IntN(h.mood.pools)]
	switch h.rand.IntN(6) {
	case 0:
		h.delete(&v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}})
	case 1, 2:
		h.create(newPoolPolicy(name))
	case 3:
		h.delete(&v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "b"}})
	case 4:
		h.create(h.newBootstrap())
	default:
		b := &v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "b"}}
		h.edit("user", b, "gates", func() { h.setGates(b) })
	}
}
