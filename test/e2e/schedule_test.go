package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// claimsSleepAt is a schedule that puts the clusters of all claims of a namespace to
// sleep once a day.
func claimsSleepAt(namespace string, at time.Time) *v1alpha1.PowerSchedule {
	return &v1alpha1.PowerSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nights"},
		Spec: v1alpha1.PowerScheduleSpec{
			ClaimSelector: &metav1.LabelSelector{},
			Windows:       []v1alpha1.Window{{Hibernate: v1alpha1.Cron(fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()))}},
		},
	}
}

// told waits until a schedule's last slot is of that time and was taken.
func (h *hub) told(t *testing.T, ps *v1alpha1.PowerSchedule, at time.Time) {
	t.Helper()
	eventually(t, "the slot of "+at.Format(time.RFC3339)+" is taken", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(ps), ps); err != nil {
			return err
		}
		if last := ps.Status.LastSlot; last == nil || !last.Time.UTC().Equal(at) || last.Outcome != v1alpha1.OutcomeTaken {
			return fmt.Errorf("the last slot is %+v", last)
		}
		return nil
	})
}

// considered waits until a schedule's newest specification was looked at.
func (h *hub) considered(t *testing.T, ps *v1alpha1.PowerSchedule) {
	t.Helper()
	eventually(t, "schedule "+ps.Name+" is looked at", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(ps), ps); err != nil {
			return err
		}
		if ps.Status.ObservedGeneration != ps.Generation {
			return fmt.Errorf("its status is of generation %d, not %d", ps.Status.ObservedGeneration, ps.Generation)
		}
		return nil
	})
}

// powered waits until a cluster is in a state.
func (h *hub) powered(t *testing.T, name, state string) {
	t.Helper()
	eventually(t, "cluster "+name+" is "+state, func(ctx context.Context) error {
		cd := cluster(name)
		if err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil {
			return err
		}
		if cd.Status.PowerState != state {
			return fmt.Errorf("it is %s, and wanted %s", cd.Status.PowerState, cd.Spec.PowerState)
		}
		return nil
	})
}

func TestAMissedSlotIsMadeUpForAndAChangeByHandWins(t *testing.T) {
	h := own(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "dev", 1, 1)
	h.create(t, pool)
	h.settled(t, pool)
	mine := claimOn(pool, "mine")
	h.create(t, mine)
	cd := h.served(t, mine)
	h.settled(t, pool)

	at := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
	if time.Until(at) < 45*time.Second { // time to stop the hub
		at = at.Add(time.Minute)
	}
	ps := claimsSleepAt(ns, at)
	h.create(t, ps)
	h.considered(t, ps)
	if ps.Status.NextSlot == nil || !ps.Status.NextSlot.Time.UTC().Equal(at) || !meta.IsStatusConditionTrue(ps.Status.Conditions, v1alpha1.ScheduleValid) {
		t.Errorf("its status is %+v", ps.Status)
	}
	eventually(t, "the claim's cluster is counted", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(ps), ps); err != nil || ps.Status.Clusters == 1 {
			return err
		}
		return fmt.Errorf("it counts %d", ps.Status.Clusters)
	})

	t.Log("the slot is missed")
	if err := h.down(); err != nil {
		t.Fatal(err)
	}
	if !time.Now().Before(at) {
		t.Fatal("stopping the hub took so long that no slot was missed")
	}
	idle(func() {
		eventually(t, "the slot passes", func(context.Context) error {
			if left := time.Until(at.Add(time.Second)); left > 0 {
				return fmt.Errorf("it is %s ahead", left)
			}
			return nil
		})
	})
	h.restart(t)
	h.told(t, ps, at)
	h.powered(t, cd.Name, hivev1.StatusHibernating)
	h.eventsSay(t, ns, "ScheduledHibernation", "cluster "+cd.Name)
	h.settled(t, pool) // its spare runs on

	t.Log("what somebody changes afterwards stands")
	h.hotspare(t, "cluster", "resume", "mine", "-n", ns, "--wait")
	before := get(t, h, ps).DeepCopy()
	ps.Spec.Windows = append(ps.Spec.Windows, v1alpha1.Window{Resume: "0 0 29 2 *"})
	if err := h.Patch(t.Context(), ps, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	h.considered(t, ps)
	h.powered(t, cd.Name, hivev1.StatusRunning)
	if now := get(t, h, cluster(cd.Name)); now.Spec.PowerState != hivev1.PowerRunning {
		t.Errorf("it is wanted %s", now.Spec.PowerState)
	}
}

func TestASchedulesAuthorMaySwitchItsClustersHimself(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	for name, tc := range map[string]struct {
		resource, where string // what the person may patch
		spec            string
		refused         string
	}{
		"clusters here": {"clusterdeployments", ns, `"clusterSelector":{}`, ""},
		"clusters here, with a right to claims": {
			"clusterclaims", ns, `"clusterSelector":{}`, "may patch ClusterDeployments there",
		},
		"claims here": {"clusterclaims", ns, `"claimSelector":{}`, ""},
		"claims here, with a right to clusters": {
			"clusterdeployments", ns, `"claimSelector":{}`, "may patch ClusterClaims there",
		},
		"clusters everywhere": {"clusterdeployments", "", `"clusterSelector":{},"namespaceSelector":{}`, ""},
		"clusters everywhere, with a right to those here": {
			"clusterdeployments", ns, `"clusterSelector":{},"namespaceSelector":{}`, "may patch ClusterDeployments in all namespaces",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallelSubtest(t)
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{hivev1.GroupVersion.Group}, Resources: []string{tc.resource}, Verbs: []string{"patch"}},
			}}
			h.create(t, role)
			t.Cleanup(func() { h.Delete(context.Background(), role) })
			who := person{h, "writer-" + role.Name}
			h.allow(t, role.Name, tc.where, who.name)
			writes := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"powerschedules"}, Verbs: []string{"*"}},
			}}
			h.create(t, writes)
			t.Cleanup(func() { h.Delete(context.Background(), writes) })
			h.allow(t, writes.Name, ns, who.name)
			who.may(t, "get", "powerschedules", "-n", ns)
			if tc.where == ns {
				who.may(t, "auth", "can-i", "patch", tc.resource+"."+hivev1.GroupVersion.Group, "-n", ns)
			} else {
				who.may(t, "auth", "can-i", "patch", tc.resource+"."+hivev1.GroupVersion.Group, "-A")
			}

			manifest := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"PowerSchedule","metadata":{"name":%q,"namespace":%q},"spec":{%s,"windows":[{"hibernate":"0 0 29 2 *"}]}}`,
				role.Name, ns, tc.spec)
			r := h.run(t, manifest, "kubectl", "--as", who.name, "create", "-f", "-")
			if tc.refused != "" {
				refused(t, r, tc.refused)
				return
			}
			if r.code != 0 {
				t.Fatalf("it was refused:\n%s", r.all())
			}
			t.Log("who may not switch its clusters may not change what it does, but its labels")
			meddler := person{h, "meddler-" + role.Name}
			h.allow(t, writes.Name, ns, meddler.name)
			meddler.may(t, "label", "powerschedule", role.Name, "a=b", "-n", ns, "--overwrite")
			refused(t, meddler.kubectl(t, "patch", "powerschedule", role.Name, "-n", ns, "--type=merge", "-p", `{"spec":{"windows":[{"hibernate":"0 0 1 1 *"}]}}`), "may patch")
		})
	}
}

// allow binds somebody to a ClusterRole, in a namespace or everywhere.
func (h *hub) allow(t *testing.T, role, namespace, who string) {
	t.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}}
	if namespace != "" {
		h.create(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Namespace: namespace}, RoleRef: ref, Subjects: subjects})
		return
	}
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, RoleRef: ref, Subjects: subjects}
	h.create(t, b)
	t.Cleanup(func() { h.Delete(context.Background(), b) })
}
