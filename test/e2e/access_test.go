package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// person is somebody who has no rights but those that hotspare gives.
type person struct {
	*hub
	name string
}

// kubectl runs it as that person.
func (p person) kubectl(t *testing.T, args ...string) result {
	t.Helper()
	return p.run(t, "", append([]string{"kubectl", "--as", p.name}, args...)...)
}

// may waits until the person is let do something: an API server learns of a new
// binding a moment after it was made.
func (p person) may(t *testing.T, args ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s may %v", p.name, args), func(context.Context) error {
		if r := p.kubectl(t, args...); r.code != 0 {
			return errors.New(r.all())
		}
		return nil
	})
}

// mayNot checks that the person is refused.
func (p person) mayNot(t *testing.T, args ...string) {
	t.Helper()
	refused(t, p.kubectl(t, args...), "orbidden", p.name)
}

// mayNoMore waits until the person is refused.
func (p person) mayNoMore(t *testing.T, args ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s may no more %v", p.name, args), func(context.Context) error {
		if r := p.kubectl(t, args...); r.code == 0 {
			return errors.New("it is still allowed")
		}
		return nil
	})
}

func TestSubjectsOfAClaimReadItsSecretsAndNoOthers(t *testing.T) { // B33, B34
	h := shared(t)
	ns := h.namespace(t)
	alice := person{h, "alice-of-" + ns}
	pool := fakePool(ns, "dev", 2, 2)
	mine, theirs := claimOn(pool, "mine"), claimOn(pool, "theirs")
	mine.Spec.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: alice.name}}
	h.create(t, pool)
	h.settled(t, pool)
	for _, cd := range h.clusters(t, pool) { // B34: what is planted there is no obstacle
		h.kubectl(t, "create", "rolebinding", hivev1.ClaimOwnerRole, "--role=planted", "--user=eve", "-n", cd.Namespace)
	}
	h.create(t, mine, theirs)
	cd, other := h.served(t, mine), h.served(t, theirs)
	md := cd.Spec.ClusterMetadata
	install := cd.Spec.Provisioning.InstallConfigSecretRef.Name

	h.bound(t, &rbacv1.RoleBinding{ObjectMeta: ownerOf(cd)}, alice.name)
	h.gone(t, &rbacv1.RoleBinding{ObjectMeta: ownerOf(other)})
	for _, name := range []string{md.AdminKubeconfigSecretRef.Name, md.AdminPasswordSecretRef.Name, md.MetadataJSONSecretRef.Name} {
		alice.may(t, "get", "secret", name, "-n", cd.Namespace)
	}
	alice.mayNot(t, "get", "secret", install, "-n", cd.Namespace)
	alice.mayNot(t, "get", "secrets", "-n", cd.Namespace)
	alice.mayNot(t, "get", "secret", other.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name, "-n", other.Namespace)
	alice.mayNot(t, "get", "clusterdeployments", "-n", other.Namespace)
	alice.mayNot(t, "get", "clusterpools", "-n", ns)

	t.Log("the owner may edit the cluster, but not so as to be shown more")
	alice.may(t, "patch", "clusterdeployment", cd.Name, "-n", cd.Namespace, "--type=merge", "-p", `{"spec":{"hibernateAfter":"9h"}}`)
	steal := fmt.Sprintf(`{"spec":{"clusterMetadata":{"adminPasswordSecretRef":{"name":%q}}}}`, install)
	refused(t, alice.kubectl(t, "patch", "clusterdeployment", cd.Name, "-n", cd.Namespace, "--type=merge", "-p", steal), "spec.clusterMetadata")

	t.Log("nor so as to use the credentials of the pool")
	alice.keepsToHerCluster(t, cd)

	t.Log("what somebody deletes is made again")
	h.delete(t, &rbacv1.RoleBinding{ObjectMeta: ownerOf(cd)})
	h.delete(t, &rbacv1.Role{ObjectMeta: ownerOf(cd)})
	h.bound(t, &rbacv1.RoleBinding{ObjectMeta: ownerOf(cd)}, alice.name)
	alice.may(t, "get", "secret", md.AdminKubeconfigSecretRef.Name, "-n", cd.Namespace)

	t.Log("without subjects nobody has access")
	h.kubectl(t, "patch", "clusterclaim", mine.Name, "-n", ns, "--type=merge", "-p", `{"spec":{"subjects":[]}}`)
	alice.mayNoMore(t, "get", "secret", md.AdminKubeconfigSecretRef.Name, "-n", cd.Namespace)
	alice.mayNoMore(t, "get", "clusterdeployment", cd.Name, "-n", cd.Namespace)
	h.gone(t, &rbacv1.Role{ObjectMeta: ownerOf(cd)})
}

// keepsToHerCluster checks that the owner of a claim can use her cluster, and cannot have
// the credentials beside it used for something else.
func (p person) keepsToHerCluster(t *testing.T, cd *hivev1.ClusterDeployment) {
	t.Helper()
	for _, change := range []string{
		`{"spec":{"powerState":"Running"},"metadata":{"labels":{"mine":"yes"},"annotations":{"example.com/note":"mine"}}}`,
		`{"spec":{"provisioning":{"sshPrivateKeySecretRef":null}}}`, // as it was
	} {
		p.may(t, "patch", "clusterdeployment", cd.Name, "-n", cd.Namespace, "--type=merge", "-p", change)
	}
	for field, change := range map[string]string{
		"spec.provisioning":             `{"spec":{"provisioning":{"installerImageOverride":"evil.example/installer"}}}`,
		"spec.platform":                 `{"spec":{"platform":{"aws":{"region":"elsewhere"}}}}`,
		"spec.clusterMetadata.infraID":  `{"spec":{"clusterMetadata":{"infraID":"somebody-elses"}}}`,
		"spec.clusterMetadata.platform": `{"spec":{"clusterMetadata":{"platform":{"aws":{"hostedZoneRole":"x"}}}}}`,
	} {
		r := p.kubectl(t, "patch", "clusterdeployment", cd.Name, "-n", cd.Namespace, "--type=merge", "-p", change)
		refused(t, r, strings.Join(strings.Split(field, ".")[:2], ".")+" determines what hotspare does with the credentials of the pool")
	}
	mine := cd.DeepCopy()
	mine.ObjectMeta, mine.Status = metav1.ObjectMeta{Namespace: cd.Namespace, Name: "mine"}, hivev1.ClusterDeploymentStatus{}
	mine.Spec.ClusterPoolRef, mine.Spec.ClusterMetadata, mine.Spec.Installed = nil, nil, false
	mine.Spec.Provisioning.InstallerImageOverride = "evil.example/installer"
	mine.TypeMeta = metav1.TypeMeta{APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterDeployment"}
	pool := fakePool(cd.Namespace, "mine", 1, 1)
	pool.TypeMeta = metav1.TypeMeta{APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterPool"}
	for _, o := range []client.Object{mine, pool} {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, p.apply(t, string(raw), "--as", p.name), "contains the credentials of its pool", "in another namespace")
		if r := p.apply(t, string(raw), "--dry-run=server"); r.code != 0 {
			t.Errorf("an administrator may not, either: %s", r.all())
		}
	}
	more := machinePool(cd.Namespace, cd.Name+"-more", "more", 1)
	more.TypeMeta = metav1.TypeMeta{APIVersion: hivev1.GroupVersion.String(), Kind: "MachinePool"}
	more.Spec.ClusterDeploymentRef.Name = cd.Name
	machines, err := json.Marshal(more)
	if err != nil {
		t.Fatal(err)
	}
	if r := p.apply(t, string(machines), "--as", p.name, "--dry-run=server"); r.code != 0 {
		t.Errorf("the owner may not have more machines: %s", r.all())
	}
}

func ownerOf(cd *hivev1.ClusterDeployment) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: cd.Namespace, Name: hivev1.ClaimOwnerRole}
}

// bound waits until a RoleBinding of hotspare's has one subject, and binds to what it should.
func (h *hub) bound(t *testing.T, b *rbacv1.RoleBinding, who string) {
	t.Helper()
	eventually(t, fmt.Sprintf("RoleBinding %s is set right", b.Name), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if len(b.Subjects) != 1 || b.Subjects[0].Name != who || b.RoleRef.Name != hivev1.ClaimOwnerRole && b.RoleRef.Name != hivev1.PoolAdminClusterRole {
			return fmt.Errorf("it binds %+v to %+v", b.Subjects, b.RoleRef)
		}
		return nil
	})
}

func TestPoolAdminsReachTheClustersOfTheirOwnPools(t *testing.T) { // B12, B33
	h := shared(t)
	one, two := h.namespace(t), h.namespace(t)
	alice, bob := person{h, "alice-of-" + one}, person{h, "bob-of-" + two}
	pools := []*hivev1.ClusterPool{fakePool(one, "same", 1, 1), fakePool(two, "same", 1, 1)}
	h.create(t, pools[0], pools[1])
	h.settled(t, pools[0])
	h.settled(t, pools[1])
	hers, his := h.clusters(t, pools[0])[0], h.clusters(t, pools[1])[0]

	h.kubectl(t, "create", "rolebinding", "admins", "--clusterrole="+hivev1.PoolAdminClusterRole, "--user="+alice.name, "-n", one)
	h.kubectl(t, "create", "rolebinding", "admins", "--clusterrole="+hivev1.PoolAdminClusterRole, "--user="+bob.name, "-n", two)
	for _, c := range []struct {
		who            person
		pools          string
		own, elsewhere hivev1.ClusterDeployment
	}{{alice, one, hers, his}, {bob, two, his, hers}} {
		c.who.may(t, "get", "secrets", "-n", c.own.Namespace)
		c.who.may(t, "get", "clusterdeployments,clusterprovisions,clusterdeprovisions,configmaps,pods,jobs", "-n", c.own.Namespace)
		c.who.may(t, "patch", "clusterpool", "same", "-n", c.pools, "--type=merge", "-p", `{"spec":{"size":2}}`)
		c.who.mayNot(t, "get", "secrets", "-n", c.elsewhere.Namespace)
		c.who.mayNot(t, "get", "clusterdeployments", "-n", c.elsewhere.Namespace)
		c.who.mayNot(t, "create", "configmap", "mine", "-n", c.own.Namespace)
	}

	t.Log("clusters that are made later are open to them, too")
	for _, p := range pools {
		get(t, h, p)
		h.settled(t, p)
	}
	for _, cd := range h.clusters(t, pools[0]) {
		alice.may(t, "get", "secrets", "-n", cd.Namespace)
		bob.mayNot(t, "get", "secrets", "-n", cd.Namespace)
	}

	t.Log("what somebody deletes is made again")
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: hers.Namespace, Name: hivev1.PoolAdminBinding}}
	h.delete(t, binding)
	h.bound(t, binding, alice.name)

	t.Log("with the last binding access goes, and only theirs")
	h.kubectl(t, "delete", "rolebinding", "admins", "-n", one)
	alice.mayNoMore(t, "get", "secrets", "-n", hers.Namespace)
	h.gone(t, binding)
	bob.may(t, "get", "secrets", "-n", his.Namespace)
}
