package poolpolicy_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
	"hotspare.io/hotspare/internal/sizing/pricetable"
)

const (
	templateName = "template"
	usualBasis   = "3 × m6i.xlarge and 3 × m6i.xlarge on aws, on-demand list prices of 2026-01 in USD: an estimate"
	oneNode      = "controlPlane: {replicas: 1, platform: {aws: {type: m5.2xlarge}}}\ncompute: [{replicas: 0}]\npullSecret: hunter2"
	oneNodeBasis = "1 × m5.2xlarge on aws, on-demand list prices of 2026-01 in USD: an estimate"
)

// newAWSPool returns a pool on AWS whose install-config has a template.
func newAWSPool(running, size int32) *hivev1.ClusterPool {
	p := newPool(running, size)
	p.Spec.Platform.AWS = &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1","credentialsSecretRef":{"name":"hunter2"}}`)}
	p.Spec.InstallConfigSecretTemplateRef = &corev1.LocalObjectReference{Name: templateName}
	return p
}

func newTemplate(text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: templateName}, Data: map[string][]byte{hivev1.SecretKeyInstallConfig: []byte(text)},
	}
}

func newPriceTable(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: pricetable.ConfigMapName}, Data: map[string]string{pricetable.ConfigMapKey: text},
	}
}

func withBudget(budget v1alpha1.Decimal) func(*v1alpha1.PoolPolicySpec) {
	return func(s *v1alpha1.PoolPolicySpec) { s.Budget = &budget }
}

// put creates an object, or overwrites it.
func (h *hub) put(o client.Object) {
	h.Helper()
	err := h.Update(h.Context(), o)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = h.Create(h.Context(), o)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// estimate returns status.estimatedPrices in a line.
func (h *hub) estimate() string {
	h.Helper()
	e := h.policy().Status.EstimatedPrices
	if e == nil {
		return "nothing"
	}
	return strings.TrimSpace(e.Running + " " + e.Hibernating + " " + e.Currency + " " + e.Basis)
}

func TestWithoutPricesThePoolHasEstimatedOnes(t *testing.T) {
	t.Parallel()
	h := newHub(t, newAWSPool(3, 8), newTemplate(oneNode), newPolicy(recommend), newCluster("a"))
	h.work(1)
	want(t, "the estimate", h.estimate(), "0.39715 0.01315 USD "+oneNodeBasis)
	m := h.policy().Status.Month
	if m == nil || m.Cost == "" || m.Cost == "0" || m.SavedByHibernating == "" {
		t.Errorf("month %+v", m)
	}
	h.edit(func(p *v1alpha1.PoolPolicy) { priced(&p.Spec) })
	h.run(time.Minute)
	want(t, "the estimate for a policy with prices", h.estimate(), "nothing")
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Spec.Prices = nil })
	h.run(time.Minute)
	want(t, "the estimate after that", h.estimate(), "0.39715 0.01315 USD "+oneNodeBasis)
}

func TestChangesOfTheMachinesAndTheTableTakeEffect(t *testing.T) {
	t.Parallel()
	pool := newAWSPool(3, 8)
	pool.Spec.InstallConfigSecretTemplateRef = nil
	h := newHub(t, pool, newPolicy(recommend), newCluster("a"))
	h.pass()
	want(t, "without a template", h.estimate(), "1.2309 0.0789 USD "+usualBasis)
	before := maps.Clone(h.writes)
	h.run(10 * time.Minute)
	want(t, "writes of ten idle minutes", h.writes["*v1alpha1.PoolPolicy"], before["*v1alpha1.PoolPolicy"])

	h.put(newPriceTable("platforms: {aws: {machines: {m6i.xlarge: 0.1}}}"))
	h.run(time.Minute)
	want(t, "with a table", h.estimate(), "0.6789 0.0789 USD 3 × m6i.xlarge and 3 × m6i.xlarge on aws,"+
		" on-demand list prices of 2026-01 and prices of ConfigMap hotspare-prices in USD: an estimate")
	h.put(newPriceTable("currency: EUR\nplatforms: {aws: {controlPlane: {disk: 0.01}, compute: {disk: 0.02}, machines: {m6i.xlarge: 0.1}}}"))
	h.run(time.Minute)
	want(t, "with another currency", h.estimate(), "0.69 0.09 EUR 3 × m6i.xlarge and 3 × m6i.xlarge on aws, prices of ConfigMap hotspare-prices in EUR: an estimate")
	if err := h.Delete(h.Context(), newPriceTable("")); err != nil {
		t.Fatal(err)
	}
	h.run(time.Minute)
	want(t, "without the table", h.estimate(), "1.2309 0.0789 USD "+usualBasis)
}

func TestWhyThereIsNoEstimate(t *testing.T) {
	t.Parallel()
	const remedy = "or change spec.installConfigSecretTemplateRef of the pool, or set spec.prices of the PoolPolicy"
	for name, c := range map[string]struct {
		template string
		change   func(*hivev1.ClusterPool)
		want     string
	}{
		"an unknown instance type": {
			"compute: [{platform: {aws: {type: c9.mega}}}]", nil,
			"the table lacks the price of instance type c9.mega on aws: add platforms.aws.machines, as c9.mega: PRICE" +
				" to key prices.yaml of ConfigMap hotspare-prices in the namespace of hotspare, or set spec.prices of the PoolPolicy",
		},
		"replicas that are text": {
			"controlPlane: {replicas: hunter2}", nil,
			"the install-config of the pool is not valid: controlPlane.replicas: is a string, want a whole number, 0 or more",
		},
		"a type that is none": {
			"controlPlane: {platform: {aws: {type: hunter2}}}", nil,
			"the install-config of the pool is not valid: controlPlane.platform.aws.type: is not the name of an instance type: write one such as m6i.xlarge",
		},
		"no YAML":     {"pullSecret: {hunter2", nil, "the install-config template of the pool is not valid: condition MissingDependencies of the pool says why"},
		"no template": {"-", nil, "Secret template, the install-config template of the pool, does not exist: create it, " + remedy},
		"an empty template": {
			"", nil, "Secret template, the install-config template of the pool, has no key install-config.yaml: add it, " + remedy,
		},
		"no list prices": {
			oneNode, func(p *hivev1.ClusterPool) { p.Spec.Platform = hivev1.Platform{VSphere: p.Spec.Platform.AWS} },
			"platform vsphere has no list prices: set spec.prices of the PoolPolicy",
		},
		"fake clusters": {
			oneNode, func(p *hivev1.ClusterPool) { p.Spec.Annotations = map[string]string{hivev1.AnnotationFake: "true"} },
			"the clusters of the pool are fake and have no machines: set spec.prices of the PoolPolicy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newAWSPool(3, 8)
			if c.change != nil {
				c.change(pool)
			}
			h := newHub(t, pool, newPolicy(), newCluster("a"))
			if c.template != "-" {
				h.put(newTemplate(c.template))
			}
			h.run(time.Minute)
			if diff := cmp.Diff("no estimate: "+c.want, h.estimate()); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(h.estimate(), "hunter2") {
				t.Error("it quotes a secret")
			}
			want(t, "Valid", h.says(v1alpha1.PolicyValid), "True Understood")
			want(t, "Applied", h.says(v1alpha1.PolicyApplied), "True Applied")
			want(t, "cost", h.policy().Status.Month.Cost, "")
		})
	}
}

func TestATableThatCannotBeUsedStopsNothing(t *testing.T) {
	t.Parallel()
	const notUsed = "; key prices.yaml of ConfigMap hotspare-system/hotspare-prices is not used: "
	for name, c := range map[string]struct{ text, want string }{
		"a negative price": {
			"platforms: {aws: {machines: {m6i.xlarge: -1}}}", "1.2309 0.0789 USD " + usualBasis + notUsed +
				`platforms.aws.machines: the price of m6i.xlarge, "-1" is not a number from 0.000001 to 1000000: write the price of one hour, such as 0.192`,
		},
		"an unknown key": {
			"aws: {}", "1.2309 0.0789 USD " + usualBasis + notUsed + `"aws" is not a key of the table: use date, currency and platforms;` +
				" in a platform controlPlane, compute and machines; and in controlPlane and compute type and disk",
		},
		"mistakes in another currency": {
			"currency: EUR\nplatforms: {aws: {compute: {disk: x}}}", "no estimate: key prices.yaml of ConfigMap hotspare-system/hotspare-prices," +
				` whose currency is EUR, cannot be used: platforms.aws.compute.disk "x" is not a number from 0 to 1000000: write the price of one hour,` +
				" such as 0.192; or set spec.prices of the PoolPolicy",
		},
		"no price in another currency": {
			"currency: EUR", "no estimate: the table lacks the price of instance type m6i.xlarge on aws in EUR: add platforms.aws.machines, as m6i.xlarge: PRICE" +
				" to key prices.yaml of ConfigMap hotspare-prices in the namespace of hotspare, or set spec.prices of the PoolPolicy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, newAWSPool(3, 30), newTemplate("baseDomain: a"), newPolicy(), newCluster("a"), newPriceTable(c.text))
			h.run(time.Minute)
			if diff := cmp.Diff(c.want, h.estimate()); diff != "" {
				t.Error(diff)
			}
			want(t, "Applied", h.says(v1alpha1.PolicyApplied), "True Applied")
			want(t, "the pool", h.counts(), "3 of 20")
		})
	}
}

func TestAConfigMapWithoutTheKeyOfPricesIsReported(t *testing.T) {
	cm := newPriceTable("")
	cm.Data = map[string]string{"price.yaml": "currency: EUR"}
	h := newHub(t, newAWSPool(3, 8), newTemplate("baseDomain: a"), newPolicy(), newCluster("a"), cm)
	h.pass()
	want(t, "the estimate", h.estimate(), "1.2309 0.0789 USD "+usualBasis+
		"; ConfigMap hotspare-system/hotspare-prices has no key prices.yaml, so it is not used: add the key, or delete the ConfigMap")
}

func TestABudgetCanUseTheEstimate(t *testing.T) {
	t.Parallel()
	// At 0.39715 and 0.01315 an hour, one cluster may run within the next hour, and the others hibernate.
	h := newHub(t, newAWSPool(3, 8), newTemplate(oneNode), newPolicy(withBudget("1")), newCluster("a"))
	h.run(time.Minute)
	want(t, "Valid", h.says(v1alpha1.PolicyValid), "True Understood")
	rec := h.policy().Status.Recommended
	want(t, "the cause", rec.Running.Cause, "budget")
	want(t, "the pool", h.counts(), "1 of 8")
}

func TestABudgetWithoutPricesSaysWhyThereIsNoEstimate(t *testing.T) {
	t.Parallel()
	h := newHub(t, newAWSPool(3, 30), newPolicy(withBudget("100000")), newCluster("a"))
	h.run(time.Minute)
	want(t, "Valid", h.says(v1alpha1.PolicyValid), "False InvalidBudget")
	want(t, "the message", h.message(v1alpha1.PolicyValid), `spec.budget "100000" needs prices: set prices, such as {running: "1.2", hibernating: "0.1"}; no estimate:`+
		" Secret template, the install-config template of the pool, does not exist: create it,"+
		" or change spec.installConfigSecretTemplateRef of the pool, or set spec.prices of the PoolPolicy")
	want(t, "the pool", h.counts(), "3 of 30")
	kstatustest.ExpectStatus(t, h.policy(), "Failed InvalidBudget")
	h.put(newTemplate(oneNode))
	h.run(2 * time.Minute)
	want(t, "Valid with the template", h.says(v1alpha1.PolicyValid), "True Understood")
	want(t, "the pool with the template", h.counts(), "3 of 20")
}

func TestAFailedReadIsRetriedAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t, newAWSPool(3, 8), newTemplate(oneNode), newPolicy(withBudget("100000")), newCluster("a"))
	h.pass()
	before := maps.Clone(h.writes)
	h.r.Live = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.Secret); is {
				return errors.New("the hub does not answer")
			}
			return c.Get(ctx, k, o, opts...)
		},
	})
	if _, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil {
		t.Error("the pass has no error")
	}
	want(t, "Valid", h.says(v1alpha1.PolicyValid), "True Understood")
	want(t, "writes", h.writes["*v1alpha1.PoolPolicy"], before["*v1alpha1.PoolPolicy"])
}
