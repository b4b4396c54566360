package facts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

func named(name string) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) { cd.Name = name }
}

// objects are a pool of size 1 with these clusters.
func objects(change func(*hivev1.ClusterPool), clusters ...*hivev1.ClusterDeployment) Objects {
	o := Objects{
		Pool: &hivev1.ClusterPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Generation: 7},
			Spec:       hivev1.ClusterPoolSpec{Size: 1, RunningCount: 1, Platform: hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte("{}")}}},
		},
		Clusters: map[string]*hivev1.ClusterDeployment{},
		Claims:   map[string]*hivev1.ClusterClaim{},
	}
	for _, cd := range clusters {
		o.Clusters[cd.Name] = cd
	}
	if change != nil {
		change(o.Pool)
	}
	return o
}

// tells are the conditions that say something, a line each.
func tells(t *testing.T, o Objects) string {
	t.Helper()
	s, err := o.PoolSnapshot(inventory.Plan{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range o.PoolStatus(pool.Decide(s).Report, inventory.Plan{}, s.Pending, noon).Conditions {
		if c.Reason != hivev1.ReasonInitialized && c.Type != hivev1.ConditionReconciling && c.Type != hivev1.ConditionStalled {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return strings.Join(lines, "\n")
}

func TestConditionsTellWhatIsTheMatter(t *testing.T) {
	version, err := pool.Version(objects(nil).Pool.Spec)
	if err != nil {
		t.Fatal(err)
	}
	current := annotated(hivev1.AnnotationPoolVersion, version)
	one, gone := int32(1), metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		o    Objects
		want string
	}{
		"all is well": {
			objects(nil, running(current)), `
AllClustersCurrent True ClusterDeploymentsCurrent: All unassigned ClusterDeployments match the pool configuration
CapacityAvailable True Available: There is capacity to add more clusters to the pool.
MissingDependencies False Verified: Dependencies verified
Progressing False Settled: The pool has the clusters that its spec asks for`,
		},
		"stale clusters are named in order": {
			objects(nil, running(named("b"), annotated(hivev1.AnnotationPoolVersion, "v0")), running(annotated(hivev1.AnnotationPoolVersion, "v0"))), `
AllClustersCurrent False SomeClusterDeploymentsStale: Some unassigned ClusterDeployments do not match the pool configuration: a, b
CapacityAvailable True Available: There is capacity to add more clusters to the pool.
MissingDependencies False Verified: Dependencies verified
Progressing True ClustersChanging: Clusters are being installed, resumed, hibernated or deleted: status.plan shows the numbers`,
		},
		"clusters of no version, in a full pool": {
			objects(func(p *hivev1.ClusterPool) { p.Spec.MaxSize = &one }, running()), `
AllClustersCurrent Unknown SomeClusterDeploymentsUnknown: Some unassigned ClusterDeployments are missing their pool spec hash annotation: a
CapacityAvailable False MaxCapacity: Pool is at maximum capacity of 1 waiting and claimed clusters.
MissingDependencies False Verified: Dependencies verified
Progressing True ClustersChanging: Clusters are being installed, resumed, hibernated or deleted: status.plan shows the numbers`,
		},
		"a pool that is about to be full is at its own limit, not at the platform's": {
			objects(func(p *hivev1.ClusterPool) { p.Spec.MaxSize = &one }), `
AllClustersCurrent True ClusterDeploymentsCurrent: All unassigned ClusterDeployments match the pool configuration
CapacityAvailable False MaxCapacity: Pool is at maximum capacity of 1 waiting and claimed clusters.
MissingDependencies False Verified: Dependencies verified
Progressing True ClustersChanging: Clusters are being installed, resumed, hibernated or deleted: status.plan shows the numbers`,
		},
		"a pool being deleted tells what holds it": {
			objects(func(p *hivev1.ClusterPool) { p.DeletionTimestamp = &gone }, running(named("b")), running()), `
DeletionPossible False ClusterDeploymentsPendingCleanup: The following ClusterDeployments are pending cleanup: a, b
Progressing True ClustersChanging: Clusters are being installed, resumed, hibernated or deleted: status.plan shows the numbers`,
		},
		"and that nothing does": {
			objects(func(p *hivev1.ClusterPool) { p.DeletionTimestamp = &gone }), `
DeletionPossible True DeletionPossible: No ClusterDeployments pending cleanup
Progressing True ClustersChanging: Clusters are being installed, resumed, hibernated or deleted: status.plan shows the numbers`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), tells(t, tc.o)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThePlatformsRoomIsTold(t *testing.T) {
	three, none := int32(3), 0
	o := objects(func(p *hivev1.ClusterPool) { p.Spec.MaxSize = &three })
	s, err := o.PoolSnapshot(inventory.Plan{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	s.Settings.Room, s.Settings.NoRoom = &none, "the memory of this machine is used up"
	for _, c := range o.PoolStatus(pool.Decide(s).Report, inventory.Plan{}, nil, noon).Conditions {
		if c.Type == hivev1.PoolCapacityAvailable && (c.Reason != hivev1.ReasonNoRoom || c.Message != s.Settings.NoRoom) {
			t.Errorf("got %s: %s", c.Reason, c.Message)
		}
	}
}

func TestStatusCountsAndForgetsNothing(t *testing.T) {
	o := objects(func(p *hivev1.ClusterPool) { p.Status.Pending = []string{"a", "z"} }, running(), running(named("b"), told(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "X")))
	s, err := o.PoolSnapshot(inventory.Plan{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"z"}, s.Pending); diff != "" {
		t.Errorf("a name is pending until its cluster is there: %s", diff)
	}
	st := o.PoolStatus(pool.Decide(s).Report, inventory.Plan{}, append(s.Pending, "new"), noon)
	got := fmt.Sprintln(st.Size, st.Standby, st.Ready, st.Pending, st.ObservedGeneration, st.Selector)
	if want := "2 0 1 [z new] 7 hive.openshift.io/clusterpool-namespace=n,hive.openshift.io/clusterpool-name=p\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"a", "z"}, o.Pool.Status.Pending); diff != "" {
		t.Errorf("the status before is left as it was: %s", diff)
	}
}

func TestAPoolListsEveryDependency(t *testing.T) {
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	o := objects(func(p *hivev1.ClusterPool) {
		p.Spec.ImageSetRef.Name = "v1"
		p.Spec.PullSecretRef, p.Spec.InstallConfigSecretTemplateRef, p.Spec.CustomizationRef = ref("pull"), ref("template"), ref("c")
		p.Spec.Platform.AWS.Raw = []byte(`{"credentialsSecretRef":{"name":"creds"},"certificatesSecretRef":{"name":"certs"}}`)
	})
	var asked []string
	got := InvalidFields(o.Pool, []string{"local"})
	for _, n := range ListDependencies(o.Pool) {
		asked = append(asked, fmt.Sprint(n.Kind, " ", n.Name))
		message := n.InvalidMessage(&corev1.Secret{})
		switch {
		case n.Kind != Secret:
			message = n.NotFoundMessage()
		case n.Name == "template":
			message = n.InvalidMessage(&corev1.Secret{Data: map[string][]byte{"install-config.yaml": []byte("[hush")}})
		}
		if message != "" {
			got = append(got, message)
		}
	}
	wantAsked := "ClusterImageSet v1, Secret pull, Secret template, Secret creds, Secret certs, ClusterDeploymentCustomization c"
	if text := strings.Join(asked, ", "); text != wantAsked {
		t.Errorf("asked for %s, want %s", text, wantAsked)
	}
	want := []string{
		"platform: no installer for spec.platform.aws is set up here, only for local: use such a platform, or the annotation hive.openshift.io/fake-cluster in spec.annotations",
		`cluster image set: ClusterImageSet "v1" does not exist: create it, or change spec.imageSetRef`,
		`pull secret: Secret "pull" has no key ".dockerconfigjson": add it, or change spec.pullSecretRef`,
		`install config template secret: Secret "template", key "install-config.yaml": `,
		`customization: ClusterDeploymentCustomization "c" does not exist: create it, or change spec.customizationRef`,
	}
	if !slices.EqualFunc(want, got, func(w, g string) bool { return strings.HasPrefix(g, w) }) || strings.Contains(strings.Join(got, ""), "hush") {
		t.Errorf("got %q", got)
	}
}

func TestAPoolWhoseClustersCannotBeNamedAfterItSaysSo(t *testing.T) {
	raw := &runtime.RawExtension{Raw: []byte(`{}`)}
	fakes := map[string]string{hivev1.AnnotationFake: "true"}
	for name, c := range map[string]struct {
		pool        string
		platform    hivev1.Platform
		annotations map[string]string
		want        string
	}{
		"a digit, on Azure":        {"4-20", hivev1.Platform{Azure: raw}, nil, `metadata.name: names of clusters begin with the pool's name, "4-20", and on spec.platform.azure they must begin with a letter: create the pool again with such a name`},
		"a digit, on Google Cloud": {"4-20", hivev1.Platform{GCP: raw}, nil, `metadata.name: names of clusters begin with the pool's name, "4-20", and on spec.platform.gcp they must begin with a letter: create the pool again with such a name`},
		"a letter":                 {"p4-20", hivev1.Platform{Azure: raw}, nil, ""},
		"a digit, elsewhere":       {"4-20", hivev1.Platform{AWS: raw}, nil, ""},
		"a digit, and fakes":       {"4-20", hivev1.Platform{Azure: raw}, fakes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &hivev1.ClusterPool{}
			p.Name, p.Spec.Platform, p.Spec.Annotations = c.pool, c.platform, c.annotations
			if text := strings.Join(InvalidFields(p, nil), "\n"); text != c.want {
				t.Errorf("got %q", text)
			}
		})
	}
}
