package userclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/console/userclient"
)

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// api is an API server with a few tokens, pools and events.
type api struct {
	*testing.T
	*httptest.Server
	mu sync.Mutex
	// users maps tokens to names. allowed has permissions as "user verb resource namespace".
	users   map[string]string
	allowed map[string]bool
	pools   []hivev1.ClusterPool
	events  []corev1.Event
	version int
	news    chan struct{} // closed at each change
	asked   []string
	watches int
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{T: t, users: map[string]string{"t-alice": "alice", "t-bob": "bob"}, allowed: map[string]bool{}, news: make(chan struct{}), version: 1}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Server.Close)
	return a
}

// hub returns a hub whose configuration has credentials that it must not use.
func (a *api) hub(c *clocktesting.FakeClock) *userclient.Hub {
	cfg := &rest.Config{Host: a.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}, BearerToken: "the-managers-own", Username: "manager", Password: "secret"}
	return userclient.NewHub(cfg, nil, "test", c)
}

func (a *api) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	a.version++
	close(a.news)
	a.news = make(chan struct{})
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	a.mu.Lock()
	user, known := a.users[token]
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case token == "" && strings.HasSuffix(r.URL.Path, "selfsubjectreviews"):
		user = "system:anonymous"
	case !known:
		a.fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/selfsubjectreviews"):
		a.write(w, &authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}},
		})
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			a.Error(err)
		}
		at := review.Spec.ResourceAttributes
		a.mu.Lock()
		review.Status.Allowed = a.allowed[fmt.Sprintf("%s %s %s %s", user, at.Verb, at.Resource, at.Namespace)]
		a.mu.Unlock()
		a.write(w, &review)
	case strings.HasSuffix(path, "/clusterpools"), strings.HasSuffix(path, "/events"):
		a.serve(w, r, strings.HasSuffix(path, "/events"))
	default:
		a.fail(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
}

func (a *api) serve(w http.ResponseWriter, r *http.Request, events bool) {
	if r.URL.Query().Get("sendInitialEvents") != "" { // an older server rejects it, and clients list
		a.fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	}
	a.mu.Lock()
	var list any = &hivev1.ClusterPoolList{
		TypeMeta: metav1.TypeMeta{APIVersion: "hive.openshift.io/v1", Kind: "ClusterPoolList"},
		ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(a.version)}, Items: a.pools,
	}
	if events {
		list = &corev1.EventList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"},
			ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(a.version)}, Items: a.events,
		}
	}
	news := a.news
	watch := r.URL.Query().Get("watch") != ""
	if watch {
		a.watches++
		if r.URL.Query().Get("resourceVersion") != fmt.Sprint(a.version) { // it has changed since the list
			news = make(chan struct{})
			close(news)
		}
	}
	a.mu.Unlock()
	if !watch {
		a.write(w, list)
		return
	}
	defer func() { a.mu.Lock(); a.watches--; a.mu.Unlock() }()
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return // the client has closed the connection
	}
	select { // the watch ends at a change, and the client lists again
	case <-r.Context().Done():
	case <-news:
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range a.pools {
			raw, err := json.Marshal(&a.pools[i])
			if err != nil {
				a.Error(err)
			}
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", raw)
		}
	}
}

func (a *api) write(w http.ResponseWriter, o any) {
	if err := json.NewEncoder(w).Encode(o); err != nil {
		a.Log(err)
	}
}

func (a *api) fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	a.write(w, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason, Message: string(reason),
	})
}

func poolNamed(name string) hivev1.ClusterPool {
	return hivev1.ClusterPool{
		TypeMeta: metav1.TypeMeta{APIVersion: "hive.openshift.io/v1", Kind: "ClusterPool"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: "uid", ResourceVersion: "1",
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"},
		},
		Spec: hivev1.ClusterPoolSpec{BaseDomain: "x", Platform: hivev1.Platform{None: nil}},
	}
}

func (a *api) person(c *clocktesting.FakeClock, token string) *userclient.User {
	a.Helper()
	p, err := a.hub(c).UserForToken(a.Context(), a.Context(), token)
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(p.Close)
	return p
}

func TestTheHubTellsWhoSomebodyIs(t *testing.T) {
	a := newAPI(t)
	hub := a.hub(clocktesting.NewFakeClock(start))
	p, err := hub.UserForToken(t.Context(), t.Context(), "t-alice")
	if err != nil || p.Name() != "alice" {
		t.Fatalf("%v, %v", p, err)
	}
	p.Close()
	for name, token := range map[string]string{"a token of nobody": "made-up", "no token": "", "that of this program": "the-managers-own"} {
		if _, err := hub.UserForToken(t.Context(), t.Context(), token); !errors.Is(err, userclient.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := hub.AdminUser(t.Context(), t.Context()); !errors.Is(err, userclient.ErrUnknown) {
		t.Errorf("an admin where there is none: %v", err)
	}
}

func TestRightsAreAskedForNowAndThen(t *testing.T) {
	a := newAPI(t)
	c := clocktesting.NewFakeClock(start)
	p := a.person(c, "t-alice")
	d := userclient.Permission{Verb: "list", Group: "hive.openshift.io", Resource: "clusterpools", Namespace: "ns"}
	may := func() bool {
		t.Helper()
		yes, err := p.IsAllowed(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if may() {
		t.Error("alice may, though nobody let her")
	}
	a.change(func() { a.allowed["alice list clusterpools ns"] = true })
	if may() {
		t.Error("the hub was asked again at once")
	}
	c.Step(30 * time.Second)
	if !may() {
		t.Error("the hub was not asked again")
	}
	a.change(func() { delete(a.users, "t-alice") })
	c.Step(30 * time.Second)
	if _, err := p.IsAllowed(t.Context(), d); !errors.Is(err, userclient.ErrUnknown) || !p.HasLostAccess() {
		t.Errorf("a person the hub knows no more: %v, lost %t", err, p.HasLostAccess())
	}
}

func TestAMemoryFollowsTheHub(t *testing.T) {
	a := newAPI(t)
	a.pools = append(a.pools, poolNamed("dev"))
	p := a.person(clocktesting.NewFakeClock(start), "t-alice")
	sight, err := p.ReaderFor("")
	if err != nil {
		t.Fatal(err)
	}
	names := func() []string {
		t.Helper()
		var list hivev1.ClusterPoolList
		if err := sight.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, one := range list.Items {
			out = append(out, one.Name)
			if len(one.ManagedFields) > 0 || len(one.Annotations) != 1 {
				t.Errorf("it remembers what no page shows: %v %v", one.ManagedFields, one.Annotations)
			}
		}
		return out
	}
	if got := names(); len(got) != 1 {
		t.Fatalf("there are %v", got)
	}
	var one hivev1.ClusterPool
	if err := sight.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "dev"}, &one); err != nil {
		t.Error(err)
	}
	// Earlier changes may be signaled now: wait for the one that counts.
	a.change(func() { a.pools = append(a.pools, poolNamed("new")) })
	limit := time.After(time.Minute)
	for changed := p.ChangeSignal(); len(names()) != 2; changed = p.ChangeSignal() {
		select {
		case <-changed:
		case <-time.After(time.Second): // the change may have come between the list and the call
		case <-limit:
			t.Fatal("the new pool is not seen")
		}
	}
	if again, err := p.ReaderFor(""); err != nil || again != sight {
		t.Error("another memory of the same")
	}
	p.ReleaseMemory()
	if again, err := p.ReaderFor(""); err != nil || again == sight {
		t.Error("the memory is still there after a rest")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, asked := range a.asked {
		if strings.Contains(asked, "secret") {
			t.Errorf("it asked for %s", asked)
		}
	}
}

func TestEventsOfOtherKindsAreForgotten(t *testing.T) {
	a := newAPI(t)
	for name, group := range map[string]string{"ours": "hive.openshift.io/v1", "fleet": "hotspare.io/v1alpha1", "theirs": "v1", "app": "apps/v1"} {
		a.events = append(a.events, corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u", ResourceVersion: "1"},
			Reason:     "Happened", Message: "text", InvolvedObject: corev1.ObjectReference{APIVersion: group},
		})
	}
	p := a.person(clocktesting.NewFakeClock(start), "t-alice")
	sight, err := p.ReaderFor("ns")
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.EventList
	if err := sight.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, e := range list.Items {
		kept[e.Name] = e.Reason != ""
	}
	if want := fmt.Sprint(map[string]bool{"ours": true, "fleet": true, "theirs": false, "app": false}); fmt.Sprint(kept) != want {
		t.Errorf("kept %v, want %s", kept, want)
	}
}

func TestAPersonTheHubKnowsNoMoreIsLost(t *testing.T) {
	a := newAPI(t)
	p := a.person(clocktesting.NewFakeClock(start), "t-alice")
	a.change(func() { delete(a.users, "t-alice") })
	sight, err := p.ReaderFor("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := sight.List(ctx, &hivev1.ClusterPoolList{}); !errors.Is(err, userclient.ErrUnknown) || !p.HasLostAccess() {
		t.Errorf("%v, lost %t", err, p.HasLostAccess())
	}
}

func TestKindsThatTheConsoleDoesNotKnowAreNotRead(t *testing.T) {
	a := newAPI(t)
	p := a.person(clocktesting.NewFakeClock(start), "t-alice")
	sight, err := p.ReaderFor("")
	if err != nil {
		t.Fatal(err)
	}
	if err := sight.List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Error("Secrets are listed from memory")
	}
	if err := p.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, &corev1.Secret{}); err == nil {
		t.Error("a Secret is read")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, asked := range a.asked {
		if strings.Contains(asked, "secret") {
			t.Errorf("the hub was asked: %s", asked)
		}
	}
}
