package clusterpool

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/pool"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const everything = `
metadata: {namespace: pools, name: p}
spec:
  platform: {aws: {region: us-east-1, credentialsSecretRef: {name: creds}, privateLink: {enabled: true}}}
  baseDomain: example.com
  imageSetRef: {name: v1}
  size: 1
  labels: {team: a, hive.openshift.io/clusterpool-name: another}
  annotations: {note: b}
  pullSecretRef: {name: pull}
  installConfigSecretTemplateRef: {name: template}
  hibernateAfter: 8h
  installAttemptsLimit: 2
  hibernationConfig: {resumeTimeout: 15m}
  powerstateTransitionToHibernatingTimeout: 5m
  installerEnv: [{name: A, value: b}]
`

func readPool(t *testing.T, text string) *hivev1.ClusterPool {
	t.Helper()
	var p hivev1.ClusterPool
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestAClusterIsWhatItsPoolSays(t *testing.T) {
	const want = `
metadata:
  name: p-1
  namespace: p-1
  labels: {team: a, hive.openshift.io/clusterpool-name: p, hive.openshift.io/clusterpool-namespace: pools}
  annotations: {note: b, hive.openshift.io/cluster-pool-spec-hash: v9}
spec:
  clusterName: p-1
  baseDomain: example.com
  platform: {aws: {region: us-east-1, credentialsSecretRef: {name: creds}, privateLink: {enabled: true}}}
  pullSecretRef: {name: pull}
  clusterPoolRef: {namespace: pools, poolName: p}
  provisioning:
    imageSetRef: {name: v1}
    installConfigSecretRef: {name: p-1-install-config}
    installerEnv: [{name: A, value: b}]
  hibernateAfter: 8h
  installAttemptsLimit: 2
  powerstateTransitionToRunningTimeout: 15m
  powerstateTransitionToHibernatingTimeout: 5m
`
	var expected hivev1.ClusterDeployment
	if err := yaml.UnmarshalStrict([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	p := readPool(t, everything)
	got := clusterBuilder{pool: p, version: "v9"}.newClusterDeployment("p-1")
	if diff := cmp.Diff(asYAML(t, &expected), asYAML(t, got)); diff != "" {
		t.Error(diff)
	}
	if got.Spec.PowerState != "" {
		t.Error("a new cluster's power is not set: that is decided apart")
	}
}

func TestAClusterIsCreatedWithItsFinalizerAndItsLabels(t *testing.T) {
	m := clusterBuilder{pool: readPool(t, everything), template: []byte("metadata: {name: mine}\nbaseDomain: mine.example\n")}
	_, cd, err := m.buildObjects("p-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !controllerutil.ContainsFinalizer(cd, hivev1.FinalizerDeprovision) {
		t.Errorf("the finalizers are %v", cd.Finalizers)
	}
	for label, want := range map[string]string{
		hivev1.LabelPlatform: "aws", hivev1.LabelRegion: "us-east-1", hivev1.LabelType: "unmanaged", hivev1.LabelPoolName: "p", "team": "a",
	} {
		if cd.Labels[label] != want {
			t.Errorf("label %s is %q, not %q", label, cd.Labels[label], want)
		}
	}
}

// B21: what is installed bears the name of the cluster, whatever the template says.
func TestTheInstallConfigNamesTheCluster(t *testing.T) {
	m := clusterBuilder{pool: readPool(t, everything), template: []byte("metadata: {name: mine}\nbaseDomain: mine.example\n")}
	objects, cd, err := m.buildObjects("p-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		made, ok := o.(*corev1.Secret)
		if !ok || made.Name != cd.Spec.Provisioning.InstallConfigSecretRef.Name {
			continue
		}
		var got struct {
			Metadata   struct{ Name string }
			BaseDomain string
		}
		if err := yaml.Unmarshal(made.Data[hivev1.SecretKeyInstallConfig], &got); err != nil {
			t.Fatal(err)
		}
		if got.Metadata.Name != cd.Spec.ClusterName || got.BaseDomain != cd.Spec.BaseDomain {
			t.Errorf("it is %+v, the cluster %s.%s", got, cd.Spec.ClusterName, cd.Spec.BaseDomain)
		}
		return
	}
	t.Error("the cluster has no install-config")
}

func asYAML(t *testing.T, o any) string {
	t.Helper()
	raw, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestNamesFit(t *testing.T) {
	fakes := map[string]string{hivev1.AnnotationFake: "true"}
	for platform, c := range map[string]struct {
		platform    hivev1.Platform
		annotations map[string]string
		most        int
	}{
		"aws":         {hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{}`)}}, nil, 54},
		"none":        {hivev1.Platform{None: &runtime.RawExtension{Raw: []byte(`{}`)}}, nil, 54},
		"fake on aws": {hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{}`)}}, fakes, 63},
		"local":       {hivev1.Platform{Local: &hivev1.LocalPlatform{}}, nil, 63},
	} {
		for _, n := range []int{1, 48, 49, 57, 58, 63, 200, 253} {
			p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", n)}}
			p.Spec.Platform, p.Spec.Annotations = c.platform, c.annotations
			got := (&observation{pool: p}).generateNames(1, func() string { return "abcde" })[0]
			whole := p.Name + "-abcde"
			if len(got) > c.most || (got == whole) != (len(whole) <= c.most) || !strings.HasSuffix(got, "-abcde") {
				t.Errorf("%s: a pool name of %d characters makes %q", platform, n, got)
			}
			if other := clusterName(p.Name+"b", "abcde", c.most); other == got {
				t.Errorf("%s: two pools make %q", platform, got)
			}
		}
	}
}

func reconciler(t *testing.T, objects ...client.Object) (*Reconciler, client.Client, *clocktesting.FakePassiveClock) {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	c := fakeclient.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	now := clocktesting.NewFakePassiveClock(noon)
	return &Reconciler{Client: c, Live: c, Clock: now}, c, now
}

func secret(name, key string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name}, Data: map[string][]byte{key: []byte("x")}}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	r, c, now := reconciler(t, secret("template", "wrong-key"))
	s := &observation{pool: readPool(t, everything), cache: &poolCache{}}
	want := []string{
		`cluster image set: ClusterImageSet "v1" does not exist: create it, or change spec.imageSetRef`,
		`pull secret: Secret "pull" does not exist: create it, or change spec.pullSecretRef`,
		`install config template secret: Secret "template" has no key "install-config.yaml": add it, or change spec.installConfigSecretTemplateRef`,
		`credentials secret: Secret "creds" does not exist: create it, or change spec.platform.aws.credentialsSecretRef`,
	}
	check := func(ctx context.Context, want []string) {
		t.Helper()
		found, err := r.findDependencies(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found.missing); diff != "" {
			t.Error(diff)
		}
	}
	check(t.Context(), want)
	set := &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "v1"}}
	for _, o := range []client.Object{set, secret("pull", ".dockerconfigjson"), secret("creds", "any")} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	check(t.Context(), want) // believed for a while
	now.SetTime(noon.Add(dependenciesTTL + time.Second))
	check(t.Context(), want[2:3])

	template := secret("template", "install-config.yaml")
	template.Data["install-config.yaml"] = []byte("a: [never closed, pullSecret: hush")
	if err := c.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	r.Installers = []string{"local", "none"}
	now.SetTime(noon.Add(2*dependenciesTTL + 2*time.Second))
	found, err := r.findDependencies(t.Context(), s)
	text := strings.Join(found.missing, "\n")
	if err != nil || len(found.missing) != 2 || !strings.Contains(text, "no installer for spec.platform.aws is set up here, only for local, none") ||
		!strings.Contains(text, `Secret "template", key "install-config.yaml"`) || strings.Contains(text, "hush") {
		t.Errorf("got %v, %v", text, err)
	}
}

func TestAnObstacleOfThePlatformIsMissingUntilItIsGone(t *testing.T) {
	r, _, now := reconciler(t)
	obstacle := "containerd is missing: install it"
	r.Obstacles = map[string]Obstacle{"local": func(hivev1.Platform) string { return obstacle }}
	of := func(platform hivev1.Platform, annotations map[string]string) *observation {
		p := &hivev1.ClusterPool{}
		p.Spec.Platform, p.Spec.Annotations = platform, annotations
		return &observation{pool: p, cache: &poolCache{}}
	}
	has := func(s *observation) bool {
		t.Helper()
		found, err := r.findDependencies(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(found.missing, "containerd is missing: install it")
	}
	local := of(hivev1.Platform{Local: &hivev1.LocalPlatform{}}, nil)
	if !has(local) {
		t.Error("the obstacle is not among what is missing")
	}
	if has(of(hivev1.Platform{AWS: &runtime.RawExtension{}}, nil)) {
		t.Error("it hinders clusters of another platform")
	}
	if has(of(hivev1.Platform{Local: &hivev1.LocalPlatform{}}, map[string]string{hivev1.AnnotationFake: "true"})) {
		t.Error("it hinders fake clusters")
	}
	obstacle = ""
	now.SetTime(now.Now().Add(dependenciesTTL + time.Second))
	if has(local) {
		t.Error("it stays when it is gone")
	}
}

func TestAPoolThatIsBeingDeletedNeedsNothing(t *testing.T) {
	r, _, now := reconciler(t)
	deleted := readPool(t, everything)
	deleted.DeletionTimestamp = &metav1.Time{Time: now.Now()}
	found, err := r.findDependencies(t.Context(), &observation{pool: deleted, cache: &poolCache{}})
	if err != nil || len(found.missing) > 0 {
		t.Errorf("got %q, %v", found.missing, err)
	}
}

func TestErrorsOfDependenciesArePassedOn(t *testing.T) {
	r, _, _ := reconciler(t)
	broken := errors.New("no network")
	r.Live = interceptor.NewClient(r.Live.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
	})
	if _, err := r.findDependencies(t.Context(), &observation{pool: readPool(t, everything), cache: &poolCache{}}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// A process that follows a crash, and whose cache is behind, creates again what is there.
func TestWhatExistsIsNotToldAsCreated(t *testing.T) {
	first, api, _ := reconciler(t)
	told := events.NewFakeRecorder(10)
	first.Events = told
	p := readPool(t, everything)
	second := &Reconciler{Client: api, Live: api, Clock: first.Clock, Events: told}
	for _, r := range []*Reconciler{first, second} {
		x := newExecution(r, &observation{pool: p})
		x.builder = clusterBuilder{pool: p, version: "v9"}
		if err := x.createCluster(t.Context(), pool.Step{Verb: pool.Create, Cluster: "p-1"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(told.Events); n != 1 {
		t.Errorf("%d events tell of one cluster", n)
	}
}
