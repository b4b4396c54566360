package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Each test below plays an attacker with an account that has exactly the rights it names.
// A subject of a claim holds all rights on hive.openshift.io in the namespace of the cluster.
// The owner of a namespace holds all rights on hive.openshift.io and on Secrets there.

// serveSubject returns the cluster of a new claim, of a pool of one local cluster with one
// control plane and no worker, and waits until its subject has its rights.
func (h *hub) serveSubject(t *testing.T, subject person, pool string) (*hivev1.ClusterClaim, *hivev1.ClusterDeployment) {
	t.Helper()
	p := localPool(h.namespace(t), pool, 0, 0)
	p.Spec.Platform.Local.Workers = new(int32)
	claim := claimOn(p, "claim")
	claim.Spec.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: subject.name}}
	h.create(t, p, claim)
	cd := h.served(t, claim)
	subject.may(t, "get", "clusterdeployment", cd.Name, "-n", cd.Namespace)
	return claim, cd
}

// namespaceOwner returns somebody who holds all rights on hive.openshift.io and on Secrets
// in a namespace of their own, and the namespace.
func (h *hub) namespaceOwner(t *testing.T) (person, string) {
	t.Helper()
	ns := h.namespace(t)
	owner := person{h, "owner-of-" + ns}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-owner-" + ns},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{hivev1.GroupVersion.Group}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{rbacv1.VerbAll}},
		},
	}
	h.create(t, role)
	t.Cleanup(func() { _ = h.Delete(context.Background(), role) }) // the shared hub ends with the run
	h.allow(t, role.Name, ns, owner.name)
	owner.may(t, "get", "secrets", "-n", ns)
	return owner, ns
}

// manifest is an object as kubectl reads it.
func manifest(t *testing.T, kind string, o client.Object) string {
	t.Helper()
	o.GetObjectKind().SetGroupVersionKind(hivev1.GroupVersion.WithKind(kind))
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// forgedProvision is a failed attempt at cd, which names infraID as what it left.
func forgedProvision(cd *hivev1.ClusterDeployment, infraID string) *hivev1.ClusterProvision {
	yes := true
	metadata := fmt.Sprintf(`{"infraID":%q,"clusterID":"x"}`, infraID)
	return &hivev1.ClusterProvision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cd.Namespace, Name: "forged",
			Labels: map[string]string{hivev1.LabelClusterDeployment: cd.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterDeployment", Name: cd.Name, UID: cd.UID,
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: hivev1.ClusterProvisionSpec{
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: cd.Name},
			Stage:                hivev1.StageFailed, InfraID: &infraID, MetadataJSON: &hivev1.MetadataJSON{Raw: []byte(metadata)},
		},
	}
}

// aliveMachines is an error unless every machine of a local cluster has its disk and its process.
func (h *hub) aliveMachines(cd *hivev1.ClusterDeployment) error {
	dir := filepath.Join(h.machines(), cd.Spec.ClusterMetadata.InfraID)
	folders, err := foldersIn(dir)
	if err != nil || len(folders) == 0 {
		return errors.Join(err, fmt.Errorf("machines %v are left of %s", folders, cd.Name))
	}
	processes, err := processesOf(dir)
	if err != nil || len(processes) < len(folders) {
		return errors.Join(err, fmt.Errorf("cluster %s has machines %v, and processes %v", cd.Name, folders, processes))
	}
	return nil
}

// staysAlive fails if a cluster loses a machine while hotspare makes several passes.
func (h *hub) staysAlive(t *testing.T, cd *hivev1.ClusterDeployment) {
	t.Helper()
	for range 20 {
		if err := h.aliveMachines(cd); err != nil {
			t.Fatal(err)
		}
		time.Sleep(glance)
	}
}

func TestASubjectCannotHaveAnotherClusterDestroyed(t *testing.T) {
	h := shared(t)
	alice, bob := person{h, "alice-destroys"}, person{h, "bob-is-attacked"}
	claim, mine := h.serveSubject(t, alice, "mine")
	_, victim := h.serveSubject(t, bob, "victim")
	forged := forgedProvision(mine, victim.Spec.ClusterMetadata.InfraID)

	t.Log("she cannot write the records that hotspare destroys by")
	r := alice.apply(t, manifest(t, "ClusterProvision", forged), "--as", alice.name)
	refused(t, r, "orbidden", "clusterprovisions", "only hotspare")
	for _, kind := range []string{"clusterprovision", "clusterdeprovision"} {
		alice.may(t, "get", kind, "-n", mine.Namespace)
	}
	provision := mine.Status.ProvisionRef.Name
	refused(t, alice.kubectl(t, "patch", "clusterprovision", provision, "-n", mine.Namespace, "--type=merge", "-p", `{"spec":{"infraID":"x"}}`), "only hotspare")
	refused(t, alice.kubectl(t, "patch", "clusterprovision", provision, "-n", mine.Namespace, "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[]}}`), "only hotspare")
	refused(t, alice.kubectl(t, "delete", "clusterprovision", provision, "-n", mine.Namespace), "only hotspare")

	t.Log("were the record there, hotspare would not believe it")
	h.create(t, forged)
	h.delete(t, claim)
	c := h.conditioned(t, mine, hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue)
	says(t, c.Message, victim.Spec.ClusterMetadata.InfraID, victim.Namespace+"/"+victim.Name)
	h.staysAlive(t, victim)

	t.Log("once the forged record is gone, the release goes on by itself")
	h.delete(t, forged)
	idle(func() { h.gone(t, mine) })
	h.staysAlive(t, victim)
}

func TestASubjectCannotChooseTheImageThatDestroysTheCluster(t *testing.T) {
	h := shared(t)
	alice := person{h, "alice-chooses-images"}
	_, mine := h.serveSubject(t, alice, "mine")
	for _, status := range []string{`{"status":{"installerImage":"evil.example/installer"}}`, `{"status":{"conditions":[]}}`} {
		refused(t, alice.kubectl(t, "patch", "clusterdeployment", mine.Name, "-n", mine.Namespace, "--subresource=status", "--type=merge", "-p", status),
			"the status of clusterdeployments", "only hotspare")
	}
}

func TestAClusterThatSomebodyPlantsInAPoolIsGivenToNobody(t *testing.T) {
	h := shared(t)
	eve, ns := h.namespaceOwner(t)
	p := fakePool(h.namespace(t), "pool", 0, 0)
	p.Spec.MaxSize = new(int32) // so that no other cluster can serve the claim
	claim := claimOn(p, "waits")
	h.create(t, p, claim)
	planted := plantedCluster(ns, p)

	t.Log("only who may read the Secrets of the pool may add a cluster to it")
	refused(t, eve.apply(t, manifest(t, "ClusterDeployment", planted), "--as", eve.name), "spec.clusterPoolRef", p.Namespace+"/"+p.Name)
	own := plantedCluster(ns, p)
	own.Name, own.Spec.ClusterPoolRef = "own", nil
	if r := eve.apply(t, manifest(t, "ClusterDeployment", own), "--as", eve.name); r.code != 0 {
		t.Fatalf("she may not make a cluster of her own: %s", r.all())
	}
	join := fmt.Sprintf(`{"spec":{"clusterPoolRef":{"namespace":%q,"poolName":%q}}}`, p.Namespace, p.Name)
	refused(t, eve.kubectl(t, "patch", "clusterdeployment", "own", "-n", ns, "--type=merge", "-p", join), "clusterPoolRef cannot be added")

	t.Log("nor may anybody else make a namespace look like one that hotspare has made")
	makers := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-makers-" + ns},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "create", "patch", "update"}}},
	}
	h.create(t, makers)
	t.Cleanup(func() { _ = h.Delete(context.Background(), makers) })
	h.allow(t, makers.Name, "", eve.name)
	eve.may(t, "get", "namespace", ns)
	refused(t, eve.kubectl(t, "label", "namespace", ns, hivev1.LabelPoolName+"="+p.Name, hivev1.LabelPoolNamespace+"="+p.Namespace), "a namespace that hotspare created")
	eve.may(t, "label", "namespace", ns, "example.com/mine=yes")

	t.Log("were it there, hotspare would not count it as the pool's")
	h.create(t, planted)
	eventually(t, "it is installed", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(planted), planted); err != nil || planted.Status.PowerState != hivev1.StatusRunning {
			return errors.Join(err, fmt.Errorf("its power state is %q", planted.Status.PowerState))
		}
		return nil
	})
	h.touch(t, p)
	if get(t, h, claim); claim.Spec.Namespace != "" {
		t.Errorf("claim %s has cluster %s", claim.Name, claim.Spec.Namespace)
	}
	if get(t, h, p); p.Status.Size != 0 {
		t.Errorf("the pool counts %d clusters, want none", p.Status.Size)
	}
}

// plantedCluster is an installed cluster that passes for one of a pool.
func plantedCluster(ns string, p *hivev1.ClusterPool) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: ns, Annotations: map[string]string{hivev1.AnnotationFake: "true"},
			Labels: map[string]string{hivev1.LabelPoolName: p.Name, hivev1.LabelPoolNamespace: p.Namespace},
		},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: "planted", BaseDomain: "example.com", Installed: true, PowerState: hivev1.PowerRunning,
			Platform:        p.Spec.Platform,
			ClusterPoolRef:  &hivev1.ClusterPoolReference{Namespace: p.Namespace, PoolName: p.Name},
			ClusterMetadata: &hivev1.ClusterMetadata{InfraID: "planted", ClusterID: "x", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "mine"}},
		},
	}
}

// touch has hotspare make a pass over a pool, and waits for it.
func (h *hub) touch(t *testing.T, p *hivev1.ClusterPool) {
	t.Helper()
	h.kubectl(t, "patch", "clusterpool", p.Name, "-n", p.Namespace, "--type=merge", "-p", `{"spec":{"hibernateAfter":"9h"}}`)
	eventually(t, "hotspare looks at the pool", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil || p.Status.ObservedGeneration != p.Generation {
			return errors.Join(err, fmt.Errorf("it has seen generation %d of %d", p.Status.ObservedGeneration, p.Generation))
		}
		return nil
	})
}

func TestTheOwnerOfANamespaceCannotReachAnotherLocalCluster(t *testing.T) {
	h := shared(t)
	victim := h.standalone(t, "victim", hivev1.PowerRunning) // outside pools only the platform knows whose machines they are
	h.conditioned(t, victim, hivev1.ClusterReady, corev1.ConditionTrue)
	eve, ns := h.namespaceOwner(t)
	infraID := victim.Spec.ClusterMetadata.InfraID
	kubeconfig := secretOf(ns, "kubeconfig", hivev1.SecretKeyKubeconfig, "x")
	h.create(t, kubeconfig)

	t.Log("a cluster that names its machines does not move them")
	thief := shortLived(ns, "thief")
	thief.Spec.Installed, thief.Spec.PowerState = true, hivev1.PowerHibernating
	thief.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: infraID, ClusterID: "x", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: kubeconfig.Name}}
	if r := eve.apply(t, manifest(t, "ClusterDeployment", thief), "--as", eve.name); r.code != 0 {
		t.Fatal(r.all())
	}
	eventually(t, "it is said whose machines they are", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(thief), thief); err != nil {
			return err
		}
		for _, c := range thief.Status.Conditions {
			// Without the finalizer, which another controller adds, its deletion would destroy nothing.
			if strings.Contains(c.Message, victim.Namespace+"/"+victim.Name) && len(thief.Finalizers) > 0 {
				return nil
			}
		}
		return fmt.Errorf("its finalizers are %v, its conditions %+v", thief.Finalizers, thief.Status.Conditions)
	})
	h.staysAlive(t, victim)

	t.Log("nor does its end destroy them")
	eve.may(t, "delete", "clusterdeployment", thief.Name, "-n", ns, "--wait=false")
	c := h.conditioned(t, thief, hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue)
	says(t, c.Message, infraID, victim.Namespace+"/"+victim.Name)
	h.staysAlive(t, victim)
	eve.may(t, "patch", "clusterdeployment", thief.Name, "-n", ns, "--type=merge", "-p", `{"spec":{"preserveOnDelete":true}}`)
	h.gone(t, thief)

	t.Log("a forged attempt brings no kubeconfig of another cluster")
	spy := shortLived(ns, "spy")
	spy.Annotations = map[string]string{hivev1.AnnotationReconcilePause: "true"}
	h.create(t, spy)
	forged := forgedProvision(spy, infraID)
	forged.Spec.Stage = hivev1.StageProvisioning
	if r := eve.apply(t, manifest(t, "ClusterProvision", forged), "--as", eve.name); r.code != 0 {
		t.Fatal(r.all())
	}
	eve.may(t, "annotate", "clusterdeployment", spy.Name, "-n", ns, hivev1.AnnotationReconcilePause+"-")
	eventually(t, "the attempt is refused", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(spy), spy); err != nil {
			return err
		}
		for _, c := range spy.Status.Conditions {
			if strings.Contains(c.Message, victim.Namespace+"/"+victim.Name) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", spy.Status.Conditions)
	})
	var secrets corev1.SecretList
	if err := h.List(t.Context(), &secrets, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if raw := s.Data[hivev1.SecretKeyKubeconfig]; len(raw) > 0 && s.Name != kubeconfig.Name {
			t.Errorf("Secret %s has a kubeconfig", s.Name)
		}
	}
	h.staysAlive(t, victim)
	h.kubectl(t, "patch", "clusterdeployment", spy.Name, "-n", ns, "--type=merge", "-p", `{"spec":{"preserveOnDelete":true}}`)
	h.delete(t, spy)
	h.gone(t, spy)
}

func TestASubjectCannotKeepTheClusterPastItsRelease(t *testing.T) {
	h := shared(t)
	alice := person{h, "alice-keeps"}
	claim, mine := h.serveSubject(t, alice, "mine")
	const mayChange = "You may change spec.powerState"

	for name, change := range map[string]string{
		"spec.preserveOnDelete":                               `{"spec":{"preserveOnDelete":true}}`,
		"spec.clusterInstallRef":                              `{"spec":{"clusterInstallRef":{"group":"x","version":"v1","kind":"X","name":"x"}}}`,
		"spec.clusterPoolRef":                                 `{"spec":{"clusterPoolRef":{"clusterDeploymentCustomization":{"name":"x"}}}}`,
		"spec.clusterMetadata":                                `{"spec":{"clusterMetadata":{"metadataJSONSecretRef":null}}}`,
		"spec.provisioning":                                   `{"spec":{"provisioning":{"installerImageOverride":"evil.example/installer"}}}`,
		"spec.platform":                                       `{"spec":{"platform":{"local":null,"aws":{"region":"x"}}}}`,
		"metadata.finalizers":                                 `{"metadata":{"finalizers":[]}}`,
		"metadata.ownerReferences":                            `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`,
		"annotation hive.openshift.io/fake-cluster":           `{"metadata":{"annotations":{"hive.openshift.io/fake-cluster":"true"}}}`,
		"annotation hive.openshift.io/reconcile-pause":        `{"metadata":{"annotations":{"hive.openshift.io/reconcile-pause":"true"}}}`,
		"annotation hive.openshift.io/protected-delete":       `{"metadata":{"annotations":{"hive.openshift.io/protected-delete":"true"}}}`,
		"annotation hive.openshift.io/cluster-pool-spec-hash": `{"metadata":{"annotations":{"hive.openshift.io/cluster-pool-spec-hash":null}}}`,
		"label hive.openshift.io/clusterpool-name":            `{"metadata":{"labels":{"hive.openshift.io/clusterpool-name":null}}}`,
	} {
		r := alice.kubectl(t, "patch", "clusterdeployment", mine.Name, "-n", mine.Namespace, "--type=merge", "-p", change)
		if name == "spec.clusterPoolRef" { // two policies refuse it, and either may be the one that is heard
			refused(t, r, "orbidden", name)
			continue
		}
		refused(t, r, "orbidden", name+" determines", mayChange)
	}
	forged := &hivev1.ClusterDeprovision{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine.Namespace, Name: mine.Name, OwnerReferences: forgedProvision(mine, "x").OwnerReferences},
		Spec:       hivev1.ClusterDeprovisionSpec{InfraID: mine.Spec.ClusterMetadata.InfraID},
	}
	refused(t, alice.apply(t, manifest(t, "ClusterDeprovision", forged), "--as", alice.name), "only hotspare")

	t.Log("what concerns her own use of the cluster she may change")
	for _, change := range []string{
		`{"spec":{"powerState":"Running","hibernateAfter":"9h","powerstateTransitionToRunningTimeout":"20m"}}`,
		`{"metadata":{"labels":{"example.com/mine":"yes"},"annotations":{"example.com/note":"mine","hive.openshift.io/powerstate-pause":"false"}}}`,
	} {
		alice.may(t, "patch", "clusterdeployment", mine.Name, "-n", mine.Namespace, "--type=merge", "-p", change)
	}

	t.Log("released, the cluster goes and leaves nothing behind")
	h.delete(t, claim)
	eventually(t, "the cluster leaves nothing behind", func(ctx context.Context) error { return h.traces(ctx, mine) })
}

// The recorded name of a new cluster is a field of a pool's status, which the owner of the
// pool may write: it must not lead hotspare into a namespace that it has not made.
func TestAForgedNameLeadsNowhere(t *testing.T) {
	h := shared(t)
	eve, ns := h.namespaceOwner(t)
	foreign := h.namespace(t)
	p := fakePool(ns, "pool", 1, 0)
	secret := secretOf(ns, "pull", corev1.DockerConfigJsonKey, `{"auths":{}}`)
	p.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: secret.Name}
	h.create(t, secret, p)
	h.settled(t, p)
	eve.may(t, "patch", "clusterpool", p.Name, "-n", ns, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"pending":[%q]}}`, foreign))
	eve.may(t, "patch", "clusterpool", p.Name, "-n", ns, "--type=merge", "-p", `{"spec":{"size":2}}`)
	get(t, h, p)
	h.settled(t, p)
	var secrets corev1.SecretList
	if err := h.List(t.Context(), &secrets, client.InNamespace(foreign)); err != nil {
		t.Fatal(err)
	}
	if len(secrets.Items) > 0 {
		t.Errorf("hotspare has put Secret %s into a namespace that it has not made", secrets.Items[0].Name)
	}
	h.gone(t, cluster(foreign))
}

// Whoever writes a FleetRegion has hotspare create clusters with hotspare's own rights: the
// template of these clusters may not name what exists already, or what runs with credentials.
func TestTheWriterOfAFleetRegionChoosesNoClusterThatExists(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	eve := person{h, "eve-writes-regions"}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-region-writer-" + ns},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"fleetregions"}, Verbs: []string{"get", "list", "create", "patch", "update"}}},
	}
	it, region := fleetOf(ns)
	h.create(t, role, it)
	t.Cleanup(func() { _ = h.Delete(context.Background(), role) }) // the shared hub ends with the run
	h.allow(t, role.Name, ns, eve.name)
	raw := func(s string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(s)} }
	region.Spec.ClusterSource = v1alpha1.ClusterSource{Deployment: &v1alpha1.DeploymentSource{Template: v1alpha1.DeploymentTemplate{
		BaseDomain: "fleet.example.com", Platform: raw(`{"local":{"workers":1}}`),
		Provisioning: &v1alpha1.TemplateProvisioning{ImageSetRef: &v1alpha1.NameReference{Name: "kubernetes"}},
	}}}
	region.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetRegion"))
	good, err := json.Marshal(region)
	if err != nil {
		t.Fatal(err)
	}
	eve.may(t, "get", "fleetregions", "-n", ns)

	t.Log("hotspare creates no clusters for users who may not create them")
	refused(t, h.run(t, string(good), "kubectl", "create", "-f", "-", "--as", eve.name), "spec.clusterSource.deployment creates ClusterDeployments", "who may create them there")
	creator := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-cluster-creator-" + ns},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{hivev1.GroupVersion.Group}, Resources: []string{"clusterdeployments"}, Verbs: []string{"create"}}},
	}
	h.create(t, creator)
	t.Cleanup(func() { _ = h.Delete(context.Background(), creator) }) // the shared hub ends with the run
	h.allow(t, creator.Name, ns, eve.name)

	t.Log("what she may set she sets, as far as the data plane")
	eventually(t, "with the right to create clusters, she creates the region", func(context.Context) error {
		if r := h.run(t, string(good), "kubectl", "create", "-f", "-", "--as", eve.name); r.code != 0 {
			return errors.New(r.all())
		}
		return nil
	})
	dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "plane"}}
	dp.Spec = v1alpha1.DataPlaneSpec{Provider: "local", Region: ns, InstanceTypes: []string{it.Name}}
	h.create(t, dp)
	cd := &hivev1.ClusterDeployment{}
	eventually(t, "the data plane has a cluster", func(ctx context.Context) error {
		return h.Get(ctx, client.ObjectKeyFromObject(dp), cd)
	})
	if cd.Spec.ClusterName != dp.Name || cd.Spec.BaseDomain != "fleet.example.com" || cd.Spec.ClusterPoolRef != nil || cd.Spec.ClusterInstallRef != nil {
		t.Errorf("its cluster is %+v", cd.Spec)
	}

	t.Log("the rest is refused, in a new region and in hers")
	for field, template := range map[string]string{
		"clusterName":            `{"clusterName":"other"}`,
		"installed":              `{"installed":true}`,
		"clusterMetadata":        `{"clusterMetadata":{"infraID":"victim","clusterID":"x","adminKubeconfigSecretRef":{"name":"x"}}}`,
		"clusterPoolRef":         `{"clusterPoolRef":{"namespace":"x","poolName":"x"}}`,
		"clusterInstallRef":      `{"clusterInstallRef":{"group":"any.example","version":"v1","kind":"Any","name":"x"}}`,
		"powerState":             `{"powerState":"Hibernating"}`,
		"hibernateAfter":         `{"hibernateAfter":"1h"}`,
		"preserveOnDelete":       `{"preserveOnDelete":true}`,
		"releaseImage":           `{"provisioning":{"releaseImage":"evil.example/release"}}`,
		"installerImageOverride": `{"provisioning":{"installerImageOverride":"evil.example/installer"}}`,
		"installerEnv":           `{"provisioning":{"installerEnv":[{"name":"X","value":"y"}]}}`,
		"customizationRef":       `{"provisioning":{"customizationRef":{"name":"x"}}}`,
	} {
		change := fmt.Sprintf(`{"spec":{"clusterSource":{"deployment":{"template":%s}}}}`, template)
		refused(t, eve.kubectl(t, "patch", "fleetregion", region.Name, "-n", ns, "--type=merge", "-p", change),
			"spec.clusterSource.deployment.template", field)
		changed, err := jsonpatch.MergePatch(good, []byte(change))
		if err == nil {
			changed, err = jsonpatch.MergePatch(changed, []byte(`{"metadata":{"name":"there"}}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		refused(t, h.run(t, string(changed), "kubectl", "create", "-f", "-", "--as", eve.name),
			"spec.clusterSource.deployment.template", field)
	}
	eve.may(t, "patch", "fleetregion", region.Name, "-n", ns, "--type=merge", "-p", `{"spec":{"clusterSource":{"deployment":{"template":{"baseDomain":"other.example.com"}}}}}`)
	eve.mayNot(t, "get", "dataplanes", "-n", ns)
	h.delete(t, dp)
	eventually(t, "the data plane and its cluster are gone", func(ctx context.Context) error { return h.gonePlane(ctx, dp) })
}
