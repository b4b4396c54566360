package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/inventoryview"
)

// prepared is a hub with a pool that has an entry of every status, one that shares
// customizations with it, and one without an inventory.
func prepared() []client.Object {
	foo := leased(customization("foo", replaces("metadata/name", `"foo"`), adds("/platform/vsphere/apiVIPs", `["10.0.0.10"]`)), "vsphere", "vsphere-1aaaa")
	foo.Status.LastAppliedConfiguration = `{"installConfigPatches":[{"op":"replace","path":"/metadata/name","value":"foo"},` +
		`{"op":"add","path":"platform/vsphere/apiVIPs","value": ["10.0.0.10"]}]}`
	changed := leased(customization("changed", replaces("metadata/name", `"new"`)), "vsphere", "vsphere-2bbbb")
	changed.Status.LastAppliedConfiguration = `[{"op":"replace","path":"metadata/name","value":"old"}]`
	return []client.Object{
		stockedPool(), sharingPool(), devPool(), &hivev1.ClusterPool{ObjectMeta: aged("team-a", "bare", time.Minute)},
		foo, changed, free(customization("bar", replaces("metadata/name", `"bar"`))),
		customization("typo", replaces("metadata/names", `"typo"`)), customization("dark", replaces("metadata/name", `"dark"`)),
		leased(customization("held", replaces("metadata/name", `"held"`)), "edge", "edge-4dddd"),
		deleted(leased(customization("old"), "vsphere", "vsphere-3cccc")), leased(customization("going"), "edge", "edge-5eeee"), destroyed("edge-5eeee"),
		customization("late"), revealing(), &hivev1.ClusterDeploymentCustomization{ObjectMeta: aged("team-a", "lone", time.Hour)},
		madeWith(memberOf("vsphere", "vsphere-1aaaa", "alice"), "foo"), memberOf("vsphere", "vsphere-2bbbb", ""), memberOf("vsphere", "vsphere-3cccc", "bob"),
	}
}

func stockedPool() *hivev1.ClusterPool {
	p := &hivev1.ClusterPool{ObjectMeta: aged("default", "vsphere", 5*time.Hour)}
	p.Spec.Size = 4
	for _, name := range []string{"foo", "bar", "typo", "dark", "gone", "held", "changed", "late"} {
		p.Spec.Inventory = append(p.Spec.Inventory, hivev1.InventoryEntry{Name: name})
	}
	p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{
		"foo":     {Status: hivev1.InventoryReserved, Attempts: 3, ClusterDeployment: named("vsphere-1aaaa")},
		"bar":     {Status: hivev1.InventoryAvailable, Attempts: 2, Message: "the last cluster that was made with it, vsphere-0zzzz, failed to install"},
		"typo":    {Status: hivev1.InventoryBrokenByConfiguration, Attempts: 3, Message: "spec.installConfigPatches[0]: replace metadata/names: there is no such path; correct it"},
		"dark":    {Status: hivev1.InventoryBrokenByCloud, Message: "the cluster vsphere-9yyyy failed to install: no host answers at api.dark.example.com"},
		"gone":    {Status: hivev1.InventoryMissing, Attempts: 3, Message: "there is no ClusterDeploymentCustomization gone"},
		"held":    {Status: hivev1.InventoryUnavailable, Attempts: 3, Message: "in use by a cluster of pool edge"},
		"changed": {Status: hivev1.InventoryToBeUpdated, Attempts: 3, ClusterDeployment: named("vsphere-2bbbb")},
		"old":     {Status: hivev1.InventoryToBeDeleted, Attempts: 3, ClusterDeployment: named("vsphere-3cccc")},
	}
	return p
}

// sharingPool has customizations of the other pool.
func sharingPool() *hivev1.ClusterPool {
	p := &hivev1.ClusterPool{ObjectMeta: aged("default", "edge", time.Hour)}
	p.Spec.Inventory = hivev1.Inventory{{Name: "held"}, {Name: "typo"}, {Name: "held"}, {Name: "going"}}
	p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{
		"held":  {Status: hivev1.InventoryReserved, Attempts: 1, ClusterDeployment: named("edge-4dddd")},
		"typo":  {Status: hivev1.InventoryAvailable, Attempts: 3},
		"going": {Status: hivev1.InventoryReserved, Attempts: 3, ClusterDeployment: named("edge-5eeee")},
	}
	return p
}

func named(cluster string) *hivev1.ClusterDeploymentReference {
	return &hivev1.ClusterDeploymentReference{Name: cluster, Namespace: cluster}
}

func customization(name string, patches ...hivev1.PatchEntity) *hivev1.ClusterDeploymentCustomization {
	return &hivev1.ClusterDeploymentCustomization{
		ObjectMeta: aged("default", name, 26*time.Hour),
		Spec:       hivev1.ClusterDeploymentCustomizationSpec{InstallConfigPatches: patches},
	}
}

// revealing has patches of all three lists, and secrets in five places.
func revealing() *hivev1.ClusterDeploymentCustomization {
	c := customization("spare",
		replaces("/platform/vsphere/vcenters/0/password", `"hunter2-1"`),
		adds("platform/vsphere/vcenters/-", `{"server":"vc.example.com","password":"hunter2-2"}`),
		adds("/pullSecret", `"{\"auths\":{\"quay.io\":{\"auth\":\"hunter2-3\"}}}"`),
		adds("/proxy", `{"httpProxy":"http://me:hunter2-4@proxy.example.com"}`),
		hivev1.PatchEntity{Op: "move", From: "/compute/0", Path: "/compute/1"},
		hivev1.PatchEntity{Op: "remove", Path: "/sshKey"},
	)
	c.Spec.ClusterDeploymentSpecPatches = []hivev1.PatchEntity{
		{Op: "add", Path: "/installAttemptsLimit", ValueJSON: "2"},
		adds("/certificatesSecretRef", `{"name":"ca"}`),
	}
	c.Spec.InstallerManifestPatches = []hivev1.InstallerManifestPatch{{
		ManifestSelector: hivev1.ManifestSelector{Glob: "openshift/99_*.yaml"},
		Patches:          []hivev1.PatchEntity{adds("/data", `{"api-token":"hunter2-5"}`), adds("/note", `"`+strings.Repeat("long ", 30)+`"`)},
	}}
	c.Status.LastAppliedConfiguration = "{"
	return c
}

func replaces(path, value string) hivev1.PatchEntity {
	return hivev1.PatchEntity{Op: "replace", Path: path, Value: &runtime.RawExtension{Raw: []byte(value)}}
}

func adds(path, value string) hivev1.PatchEntity {
	p := replaces(path, value)
	p.Op = "add"
	return p
}

func leased(c *hivev1.ClusterDeploymentCustomization, pool, cluster string) *hivev1.ClusterDeploymentCustomization {
	c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: cluster, Name: cluster}
	c.Status.ClusterPoolRef = &corev1.ObjectReference{Namespace: "default", Name: pool}
	return conditioned(c, metav1.ConditionFalse, hivev1.ReasonCustomizationInUse,
		"Currently in use by cluster deployment "+cluster+" of clusterpool "+pool)
}

// deleted is a customization that its finalizer keeps.
func deleted(c *hivev1.ClusterDeploymentCustomization) *hivev1.ClusterDeploymentCustomization {
	at := metav1.NewTime(now.Add(-5 * time.Minute))
	c.DeletionTimestamp, c.Finalizers = &at, []string{hivev1.FinalizerLease}
	return c
}

// destroyed is a cluster that has not given its customization back yet.
func destroyed(name string) *hivev1.ClusterDeployment {
	cd, at := memberOf("edge", name, ""), metav1.NewTime(now.Add(-time.Minute))
	cd.DeletionTimestamp, cd.Finalizers = &at, []string{hivev1.FinalizerLease}
	return cd
}

func free(c *hivev1.ClusterDeploymentCustomization) *hivev1.ClusterDeploymentCustomization {
	return conditioned(c, metav1.ConditionTrue, hivev1.ReasonCustomizationFree, "available")
}

func conditioned(c *hivev1.ClusterDeploymentCustomization, status metav1.ConditionStatus, reason, message string) *hivev1.ClusterDeploymentCustomization {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: hivev1.CustomizationAvailable, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-20 * time.Minute)),
	})
	return c
}

func memberOf(pool, name, claim string) *hivev1.ClusterDeployment {
	cd := newCluster(name, claim, hivev1.PowerRunning, hivev1.StatusRunning)
	cd.Spec.ClusterPoolRef.PoolName = pool
	return cd
}

// madeWith gives a cluster a customization that named it as itself.
func madeWith(cd *hivev1.ClusterDeployment, customization string) *hivev1.ClusterDeployment {
	cd.Spec.ClusterPoolRef.CustomizationRef = &corev1.LocalObjectReference{Name: customization}
	cd.Spec.ClusterName, cd.Spec.BaseDomain = customization, "example.com"
	return cd
}

func TestInventoryTranscripts(t *testing.T) {
	for name, lines := range map[string][]string{
		"inventory-list": {"inventory list", "inventories ls edge", "inventory list -A", "inventory list -n team-a"},
		"inventory-list-empty": {
			"inventory list -n empty", "inventory list -n empty -o json", "inventory list dev", "inventory list bare -n team-a", "inventory list nope", "inventory list -A vsphere",
			"inventory list a b", "inventory",
		},
		"inventory-list-formats": {"inventory list edge -o json", "inventory list edge -o yaml", "inventory list -o name", "inventory list dev -o json"},
		"inventory-describe": {
			"inventory describe foo", "inventory describe bar", "inventory describe typo", "inventory describe dark", "inventory describe held", "inventory describe going",
			"inventory describe changed", "inventory describe old", "inventory describe late", "inventory describe spare", "inventory describe lone -n team-a",
		},
		"inventory-describe-not": {
			"inventory describe gone", "inventory describe nope", "inventory describe nope -n empty", "inventory describe", "inventory describe bar -o name",
			"inventory describe clusterdeploymentcustomization.hive.openshift.io/late -o yaml",
		},
		"inventory-pool-describe": {"pool describe vsphere", "pool list", "cluster describe vsphere-1aaaa"},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, name, transcript(newRig(t, interceptor.Funcs{}, prepared()...), lines))
		})
	}
}

// On a terminal there are colours, and columns that do not fit are left out.
func TestInventoryOnTerminals(t *testing.T) {
	for name, width := range map[string]int{"wide": 160, "usual": 100, "narrow": 60, "slim": 30} {
		r := newRig(t, interceptor.Funcs{}, prepared()...)
		r.terminal, r.width = true, width
		got := transcript(r, []string{"inventory list vsphere", "inventory list -A", "inventory describe typo", "pool describe vsphere"})
		compare(t, "inventory-terminal-"+name, strings.ReplaceAll(got, "\x1b", "ESC"))
	}
}

func TestInventoryFitsTheTerminal(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, prepared()...)
	for r.width = 55; r.width < 180; r.width++ {
		for _, line := range []string{"inventory list vsphere", "inventory list -A"} {
			r.run(strings.Fields(line)...)
			for text := range strings.Lines(r.stdout.String()) {
				if n := utf8.RuneCountInString(text) - 1; n > r.width {
					t.Errorf("%s: %d characters on a terminal of %d: %s", line, n, r.width, text)
				}
			}
			if !strings.Contains(r.stdout.String(), "BrokenByConfiguration") {
				t.Errorf("%s: no status on a terminal of %d", line, r.width)
			}
		}
	}
}

func TestNoSecretOfAPatchIsShown(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, prepared()...)
	if code := r.run("inventory", "describe", "spare"); code != 0 || strings.Contains(r.stdout.String(), "hunter2") {
		t.Errorf("exit code %d:\n%s", code, r.stdout.String())
	}
}

func TestCompletionOfCustomizations(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, prepared()...)
	for line, want := range map[string]string{
		"inventory describe ":           "bar changed dark foo going held late old spare typo",
		"inventory describe foo ":       "",
		"inventory describe -n team-a ": "lone",
		"inventory list ":               "dev edge vsphere",
	} {
		r.run(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		var got []string
		for found := range strings.SplitSeq(r.stdout.String(), "\n") {
			if found != "" && !strings.HasPrefix(found, ":") {
				got = append(got, found)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}

func TestEntriesAsJSONAreWhole(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, prepared()...)
	r.run("inventory", "list", "vsphere", "-o", "json")
	var got struct{ Entries []inventoryview.Entry }
	if err := json.Unmarshal([]byte(r.stdout.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) != 9 {
		t.Errorf("%d entries, want 9", len(got.Entries))
	}
	want := stockedPool().Status.Inventory
	for _, e := range got.Entries {
		if st, ok := want[e.Name]; ok && (e.Status != st.Status || e.Message != st.Message || *e.Attempts != st.Attempts) {
			t.Errorf("%+v, want %+v", e, st)
		}
	}
}

// The client asks for no discovery, so it must know every kind that commands read.
func TestMapperKnowsTheKinds(t *testing.T) {
	for _, o := range prepared() {
		gvks, _, err := base.Scheme.ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := base.NewRESTMapper().RESTMapping(gvks[0].GroupKind(), gvks[0].Version); err != nil {
			t.Error(err)
		}
	}
}

func TestFlagsForKubectlStandBeforeIt(t *testing.T) {
	a := &base.App{Flags: base.Flags{Namespace: "team-a", DataDir: "/d"}}
	if got, want := a.FormatCommand("kubectl edit clusterpool %s", "x"), "hotspare -n team-a --data-dir /d kubectl edit clusterpool x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
