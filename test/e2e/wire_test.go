package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// TestClientsOfHiveFindWhatTheyRead reads a pool, a claim and its cluster the way
// existing clients do. Each case names a client that breaks when it fails.
func TestClientsOfHiveFindWhatTheyRead(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 2, 1)
	pool.Labels = map[string]string{"product": "ocp", "owner": "wire"}
	claim := claimOn(pool, "mine")
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	h.settled(t, pool)
	get(t, h, claim)
	get(t, h, cd)

	for name, check := range map[string]func(*testing.T){
		"cm and ck use the short names": func(t *testing.T) {
			for short, kind := range map[string]string{"cp": "clusterpools", "cd": "clusterdeployments", "cdc": "clusterdeploymentcustomizations"} {
				h.kubectl(t, "get", short, "-A")
				says(t, h.kubectl(t, "api-resources", "--api-group=hive.openshift.io", "--no-headers"), fmt.Sprintf("%s ", kind))
			}
		},
		"ck cuts columns by their headers": func(t *testing.T) {
			for args, want := range map[string]string{
				"cp":              "NAME SIZE STANDBY READY BASEDOMAIN IMAGESET",
				"clusterclaim":    "NAME POOL PENDING CLUSTERNAMESPACE CLUSTERRUNNING AGE",
				"cd":              "NAME INFRAID PLATFORM REGION VERSION CLUSTERTYPE PROVISIONSTATUS POWERSTATE AGE",
				"cd -L hibernate": "NAME INFRAID PLATFORM REGION VERSION CLUSTERTYPE PROVISIONSTATUS POWERSTATE AGE HIBERNATE",
				"clusterimageset": "NAME RELEASE",
			} {
				namespace := pool.Namespace
				if strings.HasPrefix(args, "cd") {
					namespace = cd.Namespace
				}
				out := h.kubectl(t, append([]string{"get", "-n", namespace}, strings.Fields(args)...)...)
				header, _, _ := strings.Cut(out, "\n")
				if got := strings.Join(strings.Fields(header), " "); got != want {
					t.Errorf("columns of get %s:\n got %s\nwant %s", args, got, want)
				}
			}
		},
		"ck reads POWERSTATE at its header's offset": func(t *testing.T) {
			lines := strings.Split(h.kubectl(t, "get", "cd", cd.Name, "-n", cd.Namespace), "\n")
			at := strings.Index(lines[0], "POWERSTATE")
			if value := strings.Fields(lines[1][at:])[0]; value != hivev1.StatusRunning {
				t.Errorf("POWERSTATE is %q, want Running", value)
			}
		},
		"KEDA finds the clusters by the scale's selector": func(t *testing.T) {
			var scale struct {
				Spec   struct{ Replicas int32 }
				Status struct {
					Replicas int32
					Selector string
				}
			}
			raw := h.kubectl(t, "get", "--raw", "/apis/hive.openshift.io/v1/namespaces/"+pool.Namespace+"/clusterpools/ci/scale")
			if err := json.Unmarshal([]byte(raw), &scale); err != nil {
				t.Fatal(err)
			}
			if scale.Spec.Replicas != 2 || scale.Status.Replicas != 2 {
				t.Errorf("scale %s, want 2 of 2", raw)
			}
			names := strings.Fields(h.kubectl(t, "get", "cd", "-A", "-l", scale.Status.Selector, "-o", "name"))
			if len(names) != 3 {
				t.Errorf("selector %q selects %v, want the pool's three clusters", scale.Status.Selector, names)
			}
		},
		"acm-aap-aas-ops waits for condition ClusterRunning": func(t *testing.T) {
			h.kubectl(t, "wait", "--for=condition=ClusterRunning", "clusterclaim.hive/mine", "-n", pool.Namespace, "--timeout=60s")
		},
		"ci-framework waits for Pending=False": func(t *testing.T) {
			h.kubectl(t, "wait", "--for=condition=Pending=False", "clusterclaim/mine", "-n", pool.Namespace, "--timeout=60s")
		},
		"rhoai-cluster-pool waits for condition Provisioned by the pool's label": func(t *testing.T) {
			h.kubectl(t, "wait", "--for=condition=Provisioned", "clusterdeployments", "-l", "hive.openshift.io/clusterpool-name=ci,hive.openshift.io/clusterpool-namespace="+pool.Namespace, "-A", "--timeout=60s")
		},
		"ci-operator finds pools of all namespaces by labels": func(t *testing.T) {
			var pools hivev1.ClusterPoolList
			if err := h.List(t.Context(), &pools, client.MatchingLabels{"product": "ocp", "owner": "wire"}); err != nil || len(pools.Items) != 1 {
				t.Errorf("found %d, %v", len(pools.Items), err)
			}
		},
		"ci-operator follows a claim by its name": func(t *testing.T) {
			byName := []client.ListOption{client.InNamespace(pool.Namespace), client.MatchingFields{"metadata.name": "mine"}}
			var list hivev1.ClusterClaimList
			if err := h.List(t.Context(), &list, byName...); err != nil || len(list.Items) != 1 {
				t.Fatalf("listed %d, %v", len(list.Items), err)
			}
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			w, err := h.Watch(ctx, &hivev1.ClusterClaimList{}, byName...)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if e := <-w.ResultChan(); e.Type != watch.Added || e.Object.(client.Object).GetName() != "mine" {
				t.Errorf("the watch began with %v", e)
			}
		},
		"ci-operator reads the cluster and its Secrets": func(t *testing.T) {
			if cd.Name != claim.Spec.Namespace || cd.Namespace != claim.Spec.Namespace {
				t.Errorf("cluster %s/%s, claim's spec.namespace %s", cd.Namespace, cd.Name, claim.Spec.Namespace)
			}
			kubeconfig, password := h.adminSecrets(t, cd)
			if _, err := clientcmd.Load(kubeconfig.Data["kubeconfig"]); err != nil || len(kubeconfig.Data["kubeconfig"]) == 0 {
				t.Errorf("key kubeconfig holds no kubeconfig: %v", err)
			}
			if len(password.Data["password"]) == 0 {
				t.Error("key password is empty")
			}
		},
		"lifeguard reads username, domain and URLs": func(t *testing.T) {
			_, password := h.adminSecrets(t, cd)
			for what, value := range map[string]string{
				"username": string(password.Data["username"]), "spec.baseDomain": cd.Spec.BaseDomain,
				"status.apiURL": cd.Status.APIURL, "status.webConsoleURL": cd.Status.WebConsoleURL,
			} {
				if value == "" {
					t.Errorf("%s is empty", what)
				}
			}
		},
		"managedcluster-import-controller waits for claimedTimestamp": func(t *testing.T) {
			ref := cd.Spec.ClusterPoolRef
			if !cd.Spec.Installed || ref.ClaimedTimestamp.IsZero() || ref.ClaimName != "mine" {
				t.Errorf("installed %v, clusterPoolRef %+v", cd.Spec.Installed, ref)
			}
		},
		"ods-ci reads the reasons of a claim's conditions": func(t *testing.T) {
			want := map[string]string{"Pending": "False ClusterClaimed", "ClusterRunning": "True Running"}
			got := map[string]string{}
			for _, c := range claim.Status.Conditions {
				got[c.Type] = fmt.Sprintf("%s %s", c.Status, c.Reason)
				if c.LastProbeTime.IsZero() || c.LastTransitionTime.IsZero() || c.Message == "" {
					t.Errorf("condition %s lacks a time or a message: %+v", c.Type, c)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		},
		"ck takes a cluster for running by Hibernating and Unreachable": func(t *testing.T) {
			for typ, want := range map[string]string{"Hibernating": "False", "Unreachable": "False", "Ready": "True"} {
				if got := statusOf(cd, typ); string(got) != want {
					t.Errorf("%s is %q, want %s", typ, got, want)
				}
			}
		},
		"the console shows platform, region and pool by labels": func(t *testing.T) {
			for label, want := range map[string]string{
				"hive.openshift.io/cluster-platform": "aws", "hive.openshift.io/cluster-region": "us-east-1",
				"hive.openshift.io/clusterpool-name": "ci", "hive.openshift.io/clusterpool-namespace": pool.Namespace,
			} {
				if got := cd.Labels[label]; got != want {
					t.Errorf("label %s is %q, want %q", label, got, want)
				}
			}
		},
		"the console lists every kind in pages": func(t *testing.T) {
			for _, kind := range []string{"clusterclaims", "clusterdeployments", "clusterimagesets", "clusterpools", "clusterprovisions", "machinepools"} {
				h.kubectl(t, "get", "--raw", "/apis/hive.openshift.io/v1/"+kind+"?limit=1")
			}
		},
		"Helm parses the version": func(t *testing.T) {
			var v struct {
				ServerVersion, ClientVersion struct{ GitVersion, Major, Minor string }
			}
			if err := json.Unmarshal([]byte(h.kubectl(t, "version", "-o", "json")), &v); err != nil {
				t.Fatal(err)
			}
			if s := v.ServerVersion; s.GitVersion != "v1.36.3" || s.Major != "1" || s.Minor != "36" {
				t.Errorf("the server's version is %+v", s)
			}
			if v.ClientVersion.GitVersion != "v1.36.3" {
				t.Errorf("kubectl's version is %+v", v.ClientVersion)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallelSubtest(t)
			check(t)
		})
	}
}

// lifeguard, ci-operator and others read the cluster once, as soon as the claim
// says that it runs. The pool keeps none ready: each cluster comes from its install.
func TestAClusterIsCompleteWhenItsClaimSaysThatItRuns(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 0, 0)
	h.create(t, pool)
	for i := range 10 {
		claim := claimOn(pool, fmt.Sprintf("claim-%d", i))
		h.create(t, claim)
		cd := h.served(t, claim)
		for what, value := range map[string]string{"status.apiURL": cd.Status.APIURL, "status.webConsoleURL": cd.Status.WebConsoleURL} {
			if value == "" {
				t.Errorf("%s of cluster %s is empty while its claim says Running", what, cd.Name)
			}
		}
		h.adminSecrets(t, cd)
	}
}

// statusOf is the status of a condition; "" when there is none.
func statusOf(o client.Object, typ string) corev1.ConditionStatus {
	for _, c := range conditionsOf(o) {
		if c.Type == typ {
			return c.Status
		}
	}
	return ""
}

func TestTheConsoleReplacesARunningCountThatIsAbsent(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 0)
	h.create(t, pool)
	patch := `[{"op":"replace","path":"/spec/size","value":2},{"op":"replace","path":"/spec/runningCount","value":1}]`
	if err := h.Patch(t.Context(), pool, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if pool.Spec.Size != 2 || pool.Spec.RunningCount != 1 {
		t.Errorf("size %d, runningCount %d, want 2 and 1", pool.Spec.Size, pool.Spec.RunningCount)
	}
	h.settled(t, pool)
}

func TestOcScalesAPool(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 2, 0)
	h.create(t, pool)
	h.settled(t, pool)
	for _, replicas := range []int{3, 0} {
		h.kubectl(t, "scale", "clusterpool", "ci", "-n", pool.Namespace, fmt.Sprintf("--replicas=%d", replicas))
		h.settled(t, pool)
		if int(pool.Spec.Size) != replicas {
			t.Errorf("size %d, want %d", pool.Spec.Size, replicas)
		}
	}
}

func TestArgoCDAppliesANullHibernationConfig(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	r := h.apply(t, poolManifest(ns, "ci", onAWS, one, paper, "hibernationConfig: null"), "--server-side")
	if r.code != 0 {
		t.Fatalf("it was refused:\n%s", r.all())
	}
	h.settled(t, fakePool(ns, "ci", 1, 0))
}

func TestHibernateCronjobAndCkPutAClusterToSleepAndWakeIt(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 1)
	claim := claimOn(pool, "mine")
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	tell := func(state string) {
		t.Helper()
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/powerState","value":%q}]`, state)
		if err := h.Patch(t.Context(), cd, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}

	tell("Hibernating")
	if c := h.conditioned(t, cd, "Hibernating", corev1.ConditionTrue); c.Reason != "Hibernating" {
		t.Errorf("Hibernating has reason %q", c.Reason)
	}
	h.conditioned(t, cd, "Unreachable", corev1.ConditionTrue)
	if cd.Status.PowerState != "Hibernating" {
		t.Errorf("status.powerState is %q", cd.Status.PowerState)
	}
	h.conditioned(t, claim, hivev1.ClaimClusterRunning, corev1.ConditionFalse)

	tell("Running")
	h.served(t, claim)
	c := h.conditioned(t, cd, "Hibernating", corev1.ConditionFalse)
	if !slices.Contains([]string{"ResumingOrRunning", "Running"}, c.Reason) {
		t.Errorf("Hibernating is False for reason %q, which ck does not know", c.Reason)
	}
	h.conditioned(t, cd, "Unreachable", corev1.ConditionFalse)
}

// TestWhatOthersPutOnObjectsStays does as stolostron's clusterclaims-controller,
// multicloud-operators-foundation and cluster-keeper do.
func TestWhatOthersPutOnObjectsStays(t *testing.T) {
	const (
		claimHold = "clusterclaims-controller.open-cluster-management.io/cleanup"
		poolHold  = "clusterpools-controller.open-cluster-management.io/cleanup"
		set       = "cluster.open-cluster-management.io/clusterset"
		locks     = "open-cluster-management.io/cluster-keeper-locks"
	)
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 1)
	mark(pool, poolHold, set, locks)
	h.create(t, pool)
	h.settled(t, pool)
	cd := &h.clusters(t, pool)[0]
	before := cd.DeepCopy()
	mark(cd, "", set, locks)
	if err := h.Patch(t.Context(), cd, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	claim := claimOn(pool, "mine")
	mark(claim, claimHold, set, locks)
	h.create(t, claim)
	if got := h.served(t, claim); got.Name != cd.Name {
		t.Fatalf("the claim has %s, want %s, which was ready", got.Name, cd.Name)
	}
	for _, o := range []client.Object{pool, get(t, h, cd), claim} {
		marked(t, o, set, locks)
	}

	t.Log("the cluster goes with its claim; the claim stays as long as another holds it")
	h.delete(t, claim)
	h.gone(t, cd)
	eventually(t, "hotspare lets go of the claim", func(ctx context.Context) error { return h.heldBy(ctx, claim, claimHold) })
	marked(t, claim, set, locks)
	h.release(t, claim, claimHold)

	t.Log("so does the pool")
	h.delete(t, pool)
	eventually(t, "hotspare lets go of the pool", func(ctx context.Context) error { return h.heldBy(ctx, pool, poolHold) })
	marked(t, pool, set, locks)
	h.release(t, pool, poolHold)
}

// mark puts a finalizer, a label and an annotation on an object.
func mark(o client.Object, finalizer, label, annotation string) {
	if finalizer != "" {
		controllerutil.AddFinalizer(o, finalizer)
	}
	metav1.SetMetaDataLabel(metaOf(o), label, "theirs")
	metav1.SetMetaDataAnnotation(metaOf(o), annotation, "theirs")
}

func metaOf(o client.Object) *metav1.ObjectMeta {
	return o.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// marked checks that the label and the annotation are there.
func marked(t *testing.T, o client.Object, label, annotation string) {
	t.Helper()
	if o.GetLabels()[label] != "theirs" || o.GetAnnotations()[annotation] != "theirs" {
		t.Errorf("%T %s has lost what others put on it: labels %v, annotations %v", o, o.GetName(), o.GetLabels(), o.GetAnnotations())
	}
}

// heldBy is an error unless this finalizer is the only one left.
func (h *hub) heldBy(ctx context.Context, o client.Object, finalizer string) error {
	if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	if got := o.GetFinalizers(); !slices.Equal(got, []string{finalizer}) {
		return fmt.Errorf("it is held by %v", got)
	}
	return nil
}

// release takes a finalizer away and waits until the object has gone.
func (h *hub) release(t *testing.T, o client.Object, finalizer string) {
	t.Helper()
	before := o.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(o, finalizer)
	if err := h.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatalf("taking finalizer %s away: %v", finalizer, err)
	}
	h.gone(t, o)
}

// TestAPoolsClusterIsAppliedServerSide as anything else is, though nobody kept account
// of it before (ADR 0012): what another has set is a conflict, what nobody has is not.
func TestAPoolsClusterIsAppliedServerSide(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ssa", 1, 1)
	h.create(t, pool)
	h.settled(t, pool)
	cd := h.clusters(t, pool)[0]
	if n := len(cd.ManagedFields); n != 0 {
		t.Errorf("%d managers of fields, want none", n)
	}
	apply := func(spec map[string]any) error {
		return h.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": hivev1.GroupVersion.String(), "kind": "ClusterDeployment",
			"metadata": map[string]any{"namespace": cd.Namespace, "name": cd.Name},
			"spec":     spec,
		}}), client.FieldOwner("gitops"))
	}
	if err := apply(map[string]any{"preserveOnDelete": false, "hibernateAfter": "2h0m0s"}); err != nil {
		t.Fatal(err)
	}
	if err := apply(map[string]any{"baseDomain": "other.example.com"}); !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		t.Errorf("a field of another's: %v, want a conflict", err)
	}
	get(t, h, &cd)
	if got := cd.Spec.HibernateAfter; got == nil || *got != "2h0m0s" {
		t.Errorf("hibernateAfter %v, want 2h", got)
	}
	if len(cd.ManagedFields) == 0 {
		t.Error("nobody keeps account though it was applied")
	}
	if err := apply(map[string]any{"preserveOnDelete": false}); err != nil {
		t.Fatal(err)
	}
	get(t, h, &cd)
	if cd.Spec.HibernateAfter != nil {
		t.Error("a field that is no longer applied stays")
	}
}
