package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/userclient"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// reader is a viewer who may list and watch some kinds.
type reader struct {
	client.Client
	// may has "resource" for a kind that may be listed in all namespaces, and "resource namespace"
	// for one that may be listed in a namespace; nil allows everything.
	may map[string]bool
}

func (r *reader) Name() string { return "ann" }

func (r *reader) IsAllowed(_ context.Context, d userclient.Permission) (bool, error) {
	return r.may == nil || r.may[d.Resource] || r.may[d.Resource+" "+d.Namespace], nil
}

func (r *reader) ReaderFor(namespace string) (client.Reader, error) { return sight{r, namespace}, nil }

func (r *reader) ReadRecord(ctx context.Context, pool types.NamespacedName) (*corev1.ConfigMap, error) {
	return readRecordFrom(ctx, r.Client, pool)
}
func (r *reader) ChangeSignal() <-chan struct{} { return nil }
func (r *reader) HasLostAccess() bool           { return false }
func (r *reader) ReleaseMemory()                {}
func (r *reader) Close()                        {}

// sight rejects lists that are not allowed, as the hub does.
type sight struct {
	*reader
	namespace string
}

func (s sight) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	mapping, err := restMapping(list)
	if err != nil {
		return err
	}
	if yes, _ := s.IsAllowed(ctx, userclient.Permission{Resource: mapping.Resource.Resource, Namespace: s.namespace}); !yes {
		return fmt.Errorf("%s in namespace %q are forbidden", mapping.Resource.Resource, s.namespace)
	}
	return s.Client.List(ctx, list, opts...)
}

// look returns the main part of a page for a viewer with some permissions.
func look(t *testing.T, may map[string]bool, path string, objects ...client.Object) (string, error) {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(userclient.Scheme()).WithRESTMapper(userclient.NewRESTMapper()).WithObjects(objects...).Build()
	srv, err := New(t.Context(), Options{Clock: clocktesting.NewFakeClock(noon), Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	l, r := srv.findPage(httptest.NewRequest(http.MethodGet, path, nil))
	if l == nil {
		t.Fatalf("there is no page at %s", path)
	}
	f, err := srv.buildPageData(t.Context(), &viewerSession{ID: "x", CSRFToken: "y", UserName: "ann", Viewer: &reader{c, may}}, l, r)
	if err != nil {
		return "", err
	}
	return string(f.Main), nil
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

// text returns the text of a page in one line.
func text(html string) string { return blanks.ReplaceAllString(tags.ReplaceAllString(html, " "), " ") }

// says checks that a page contains texts, and that it does not contain those after "!".
func says(t *testing.T, may map[string]bool, path string, objects []client.Object, want ...string) string {
	t.Helper()
	page, err := look(t, may, path, objects...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	said := text(page)
	for _, w := range want {
		if absent, not := strings.CutPrefix(w, "!"); not && strings.Contains(said, absent) {
			t.Errorf("%s says %q:\n%s", path, absent, said)
		} else if !not && !strings.Contains(said, w) {
			t.Errorf("%s does not say %q:\n%s", path, w, said)
		}
	}
	return page
}

func aged(namespace, name string, ago time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-ago))}
}

// fleetObjects returns a region with one data plane. One of two instances is on it.
func fleetObjects() []client.Object {
	r := &v1alpha1.FleetRegion{ObjectMeta: aged("fleet", "laptop", time.Hour)}
	r.Spec.Provider, r.Spec.Region = "local", "laptop"
	r.Spec.InstanceTypes = []v1alpha1.RegionType{{Name: "dev", SlackUnits: 1}}
	r.Spec.ClusterSource.Claim = &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}
	r.Status.Plan = "as it was written"
	r.Status.InstanceTypes = []v1alpha1.RegionTypeStatus{{Name: "dev", DataPlanes: 1, MaxUnits: 4, UsedUnits: 3, FreeUnits: 1}}
	it := &v1alpha1.InstanceType{ObjectMeta: aged("", "dev", time.Hour)}
	it.Spec.Sizes = []v1alpha1.InstanceSize{{Name: "x1", Units: 1}, {Name: "x2", Units: 2}}
	dp := &v1alpha1.DataPlane{ObjectMeta: aged("fleet", "laptop-1", time.Hour)}
	dp.Spec.Provider, dp.Spec.Region, dp.Spec.InstanceTypes = "local", "laptop", []string{"dev"}
	dp.Status.Phase = v1alpha1.PhaseReady
	dp.Status.Capacity = map[string]v1alpha1.TypeCapacity{"dev": {MaxNodes: 4, MaxUnits: 4, UsedUnits: 3}}
	out := []client.Object{r, it, dp, &hivev1.ClusterPool{ObjectMeta: aged("fleet", "spares", time.Hour)}}
	for n, name := range []string{"k1", "k2"} {
		i := &v1alpha1.ServiceInstance{ObjectMeta: aged("team-a", name, time.Minute)}
		i.Spec.Provider, i.Spec.Region, i.Spec.Type, i.Spec.Size = "local", "laptop", "dev", "x2"
		if n == 0 {
			i.Status.DataPlaneName, i.Spec.Size = "laptop-1", "x1"
		} else {
			i.Spec.Size = "x9"
		}
		out = append(out, i)
	}
	return out
}

func TestThePageOfTheFleet(t *testing.T) {
	page := says(t, nil, "/fleet", fleetObjects(),
		"fleet / laptop", "Plan", "1 instance without a data plane", "Used 1 of 4", "Free 3", "In flight 0", "Slack 1", "Limit none",
		"Sufficient no data plane is created:", "1 Ready", "!as it was written", "!Not shown")
	for _, part := range []string{`href="/fleet/fleet/laptop"`, `aria-label="dev: 1 unit used, 3 free, slack 1."`, `class="used" x="0%" width="25%"`} {
		if !strings.Contains(page, part) {
			t.Errorf("no %s in:\n%s", part, page)
		}
	}
}

func TestThePageOfARegion(t *testing.T) {
	says(t, nil, "/fleet/fleet/laptop", fleetObjects(),
		"What to do", "team-a/k2 : Delete the instance, and create one of another size.", "hotspare -n team-a kubectl delete serviceinstance k2",
		"laptop-1", "keep NotEmpty 1 instance on it", "Desired more than 1 unit free, and room for the biggest size, 2 units",
		"UnknownSize", "waiting")
}

// The content security policy blocks inline styles and scripts.
func TestPagesHoldNoInlineStyles(t *testing.T) {
	inline := regexp.MustCompile(`(?i)\s(style|on[a-z]+)=|<style|<script`)
	objects := append(fleetObjects(), eventOf("ClusterPool", "default", "dev", "Created", 0))
	for _, path := range []string{"/fleet", "/fleet/fleet/laptop", "/inventory", "/activity"} {
		page, err := look(t, nil, path, objects...)
		if err != nil {
			t.Fatal(err)
		}
		if found := inline.FindString(page); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
}

func TestARegionThatIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		may  map[string]bool
		want string
	}{
		"of no such name":        {"/fleet/fleet/moon", nil, "Region not found: Namespace fleet has no FleetRegion moon."},
		"of another namespace":   {"/fleet/default/laptop", nil, "Region not found: Namespace default has no FleetRegion laptop."},
		"that may not be seen":   {"/fleet/fleet/laptop", map[string]bool{}, "You do not have access to this region: You do not have permission to list FleetRegions in namespace fleet."},
		"where others are seen":  {"/fleet/fleet/laptop", map[string]bool{"fleetregions team-a": true}, "You do not have access to this region: You do not have permission to list FleetRegions in namespace fleet."},
		"in a namespace of ours": {"/fleet/team-a/moon", map[string]bool{"fleetregions team-a": true}, "Region not found: Namespace team-a has no FleetRegion moon."},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := look(t, c.may, c.path, fleetObjects()...); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// A viewer who cannot see instances sees the recorded status, and a note: a decision computed from
// what they see would treat the data plane as empty.
func TestWhoMaySeeLittleOfAFleet(t *testing.T) {
	fleet := map[string]bool{"fleetregions fleet": true, "dataplanes fleet": true, "clusterpools fleet": true, "instancetypes": true}
	for _, path := range []string{"/fleet?namespace=fleet", "/fleet/fleet/laptop"} {
		says(t, fleet, path, fleetObjects(),
			"what the hub's controllers last wrote to status", "Plan as it was written", "Used 3 of 4", "You do not have permission to list ServiceInstances in all namespaces.",
			"You do not have permission to list FleetRegions in all namespaces.", "!NotNeeded")
	}
	delete(fleet, "instancetypes")
	says(t, fleet, "/fleet/fleet/laptop", fleetObjects(), "Ready for 60m – – 3 /4", "more than 1 unit free", "!biggest size", "You do not have permission to list InstanceTypes")
	says(t, map[string]bool{}, "/fleet", fleetObjects(), "You do not have permission to list FleetRegions in all namespaces.", "!laptop", "!No regions")
}

// Pools that the viewer may not see are assumed to exist: the advice to create one would be wrong.
func TestPoolsThatMayNotBeSeenAreNotMissing(t *testing.T) {
	all := map[string]bool{"fleetregions": true, "dataplanes": true, "instancetypes": true, "serviceinstances": true}
	says(t, all, "/fleet/fleet/laptop", fleetObjects()[:2], "!Make ClusterPool", "You do not have permission to list ClusterPools")
	all["clusterpools"] = true
	says(t, all, "/fleet/fleet/laptop", fleetObjects()[:2], "!You do not have permission to list")
}

func TestAnEmptyFleetSaysWhatToType(t *testing.T) {
	says(t, nil, "/fleet", nil, "No regions", "hotspare kubectl apply -f fleetregion.yaml")
}

func inventoryObjects() []client.Object {
	p := &hivev1.ClusterPool{ObjectMeta: aged("default", "dev", time.Hour)}
	p.Spec.Inventory = hivev1.Inventory{{Name: "foo"}, {Name: "typo"}, {Name: "next"}}
	p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{
		"foo":  {Status: hivev1.InventoryToBeUpdated, Attempts: 3, ClusterDeployment: &hivev1.ClusterDeploymentReference{Name: "dev-1", Namespace: "dev-1"}},
		"typo": {Status: hivev1.InventoryBrokenByConfiguration, Attempts: 2, Message: "there is no such path: <b>"},
	}
	cd := &hivev1.ClusterDeployment{ObjectMeta: aged("dev-1", "dev-1", time.Hour)}
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "default", PoolName: "dev", ClaimName: "alice"}
	return []client.Object{
		p, cd, &hivev1.ClusterDeploymentCustomization{ObjectMeta: aged("default", "foo", time.Hour)},
		&hivev1.ClusterDeploymentCustomization{ObjectMeta: aged("team-a", "lone", time.Hour)},
	}
}

func TestThePageOfInventories(t *testing.T) {
	says(t, nil, "/inventory", inventoryObjects(),
		"default / dev", "ToBeUpdated 1", "foo ToBeUpdated dev-1 alice 3/3 60m", "hotspare claim release alice -n default",
		"typo BrokenByConfiguration – – 2/3", "there is no such path: &lt;b&gt;", "hotspare -n default kubectl edit clusterdeploymentcustomization typo",
		"next Not checked", "team-a / lone nobody")
	says(t, nil, "/inventory?namespace=team-a", inventoryObjects(), "team-a / lone", "!default / dev")
}

func TestWhoMaySeeLittleOfInventories(t *testing.T) {
	says(t, map[string]bool{"clusterpools default": true}, "/inventory?namespace=default", inventoryObjects(),
		"foo ToBeUpdated dev-1 –", "permission to see whether it is", "!Nothing: the pool",
		"You do not have permission to list ClusterDeploymentCustomizations in namespace default.", "You do not have permission to list ClusterDeployments in all namespaces.")
	says(t, map[string]bool{}, "/inventory", inventoryObjects(), "You do not have permission to list ClusterPools in all namespaces.", "!No inventories")
}

func TestAnEmptyInventorySaysWhatToType(t *testing.T) {
	says(t, nil, "/inventory", nil, "No inventories", "hotspare kubectl apply -f customization.yaml", "!Then list it")
	says(t, nil, "/inventory", inventoryObjects()[1:2], "No inventories")
	says(t, nil, "/inventory", []client.Object{&hivev1.ClusterPool{ObjectMeta: aged("default", "dev", time.Hour)}}, "Then list it", "hotspare kubectl edit clusterpool POOL")
}

func eventOf(kind, namespace, name, reason string, ago time.Duration) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta: aged(namespace, strings.ToLower(name+"."+reason), ago), EventTime: metav1.NewMicroTime(noon.Add(-ago)),
		InvolvedObject: corev1.ObjectReference{APIVersion: "hive.openshift.io/v1", Kind: kind, Namespace: namespace, Name: name},
		Reason:         reason, Message: "it is " + reason, Type: corev1.EventTypeNormal,
	}
	if kind == "Pod" {
		e.InvolvedObject.APIVersion = "v1"
	}
	if strings.HasPrefix(reason, "Failed") {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

func TestThePageOfActivity(t *testing.T) {
	often := eventOf("ClusterPool", "default", "dev", "Created", time.Hour)
	often.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(noon.Add(-3 * time.Minute))}
	objects := []client.Object{
		often, eventOf("ClusterDeployment", "dev-1", "dev-1", "FailedToStart", 2*time.Minute),
		eventOf("ClusterClaim", "team-a", "alice", "Bound", time.Minute), eventOf("Pod", "default", "x", "Pulled", 0),
	}
	page := says(t, nil, "/activity", objects, "Warning: FailedToStart cluster dev-1", "7 times, first 60m ago", "!Pulled", "!Show all")
	bound, failed, created := strings.Index(page, "Bound"), strings.Index(page, "FailedToStart"), strings.Index(page, "Created")
	if bound > failed || failed > created {
		t.Error("not the newest first")
	}
	for _, link := range []string{`href="/pools/default/dev"`, `href="/activity?kind=ClusterClaim&amp;name=alice&amp;namespace=team-a"`} {
		if !strings.Contains(page, link) {
			t.Errorf("no %s in:\n%s", link, page)
		}
	}
	says(t, nil, "/activity?type=Warning", objects, "FailedToStart", "!Bound", "!Created", "Show all")
	says(t, nil, "/activity?kind=ClusterClaim", objects, "Bound", "!FailedToStart")
	says(t, nil, "/activity?namespace=team-a", objects, "Bound", "!FailedToStart", "Show all")
	says(t, nil, "/activity?namespace=default", append(inventoryObjects(), objects...), "Created", "FailedToStart", "!Bound")
	says(t, map[string]bool{"events": true}, "/activity?namespace=default", append(inventoryObjects(), objects...), "Created", "!FailedToStart", "!You do not have")
	if own := says(t, nil, "/activity?namespace=team-a&kind=ClusterClaim&name=alice", objects, "Bound"); strings.Contains(own, "Show only") {
		t.Error("the page of all that has happened to a claim leads to itself")
	}
	says(t, nil, "/activity?name=ALI&kind=ClusterPool", objects, "No event matches this filter. There are 3 events in total.")
	says(t, nil, "/activity", nil, "No recent events")
	says(t, map[string]bool{"events team-a": true}, "/activity", objects, "You do not have permission to list Events in all namespaces.", "!No recent events", "!Bound")
	says(t, map[string]bool{"events team-a": true}, "/activity?namespace=team-a", objects, "Bound", "!You do not have")
}

// The form contains the current filter. Without scripts, the page has nothing else.
func TestTheFilterKeepsWhatWasChosen(t *testing.T) {
	page, err := look(t, nil, "/activity?kind=ClusterClaim&name=a%22b&namespace=team-a&type=Warning", eventOf("ClusterPool", "team-a", "dev", "Created", 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`<option value="ClusterClaim" selected>claim</option>`, `<option value="ClusterPool">pool</option>`,
		`name="name" value="a&#34;b"`, `name="namespace" value="team-a"`, `value="Warning" checked`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("no %s in:\n%s", part, page)
		}
	}
}
