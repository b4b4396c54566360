package console

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/localauth"
	"hotspare.io/hotspare/internal/console/userclient"
	"hotspare.io/hotspare/internal/sizing/record"
)

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// hub has users with tokens, and a store that they share.
type hub struct {
	t       *testing.T
	store   client.WithWatch
	mu      sync.Mutex
	people  map[string]*person // by token
	changed chan struct{}
	fails   error // returned to everybody who signs in
}

// person is a viewer. Like the real one it caches permissions, but it reads objects directly.
type person struct {
	client.Client
	hub  *hub
	name string
	// may returns the person's permissions; nil allows everything.
	may    func(userclient.Permission) bool
	mu     sync.Mutex
	told   map[userclient.Permission]bool
	lost   bool
	closed int
	rested int
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	h := &hub{t: t, people: map[string]*person{}, changed: make(chan struct{})}
	h.store = fake.NewClientBuilder().WithScheme(userclient.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}).Build()
	h.admit("root", "admin-token-of-the-hub", nil)
	return h
}

// admit adds a token.
func (h *hub) admit(name, token string, may func(userclient.Permission) bool) *person {
	p := &person{hub: h, name: name, may: may, told: map[userclient.Permission]bool{}}
	p.Client = interceptor.NewClient(h.store, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return p.write(o, "create", func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return p.write(o, "delete", func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return p.write(o, "patch", func() error { return c.Patch(ctx, o, patch, opts...) })
		},
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.people[token] = p
	return p
}

func (p *person) write(o client.Object, verb string, do func() error) error {
	resource := strings.ToLower(typeOf(o)) + "s"
	d := userclient.Permission{Verb: verb, Group: hivev1.GroupVersion.Group, Resource: resource, Namespace: o.GetNamespace()}
	if yes, _ := p.IsAllowed(context.Background(), d); !yes {
		return apierrors.NewForbidden(schema.GroupResource{Group: d.Group, Resource: resource}, o.GetName(), nil)
	}
	if err := do(); err != nil {
		return err
	}
	p.hub.ring()
	return nil
}

func (h *hub) ring() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hub) ViewerForToken(_ context.Context, token string) (Viewer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails != nil {
		return nil, h.fails
	}
	if p := h.people[token]; p != nil {
		return p, nil
	}
	return nil, userclient.ErrUnknown
}

func (h *hub) AdminViewer(ctx context.Context) (Viewer, error) {
	return h.ViewerForToken(ctx, "admin-token-of-the-hub")
}

func (p *person) Name() string { return p.name }

func (p *person) IsAllowed(_ context.Context, d userclient.Permission) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if yes, known := p.told[d]; known {
		return yes, nil
	}
	if p.lost {
		return false, userclient.ErrUnknown
	}
	p.told[d] = p.may == nil || p.may(d)
	return p.told[d], nil
}

// ReaderFor returns a reader that fails the test if a list is not allowed. The real reader would
// never answer.
func (p *person) ReaderFor(namespace string) (client.Reader, error) {
	return interceptor.NewClient(p.hub.store, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			m, err := restMapping(list)
			if err != nil {
				return err
			}
			for _, verb := range []string{"list", "watch"} {
				d := userclient.Permission{Verb: verb, Group: m.Resource.Group, Resource: m.Resource.Resource, Namespace: namespace}
				if yes, err := p.IsAllowed(ctx, d); !yes || err != nil {
					p.hub.t.Errorf("%s looks at what they may not: %+v", p.name, d)
				}
			}
			return c.List(ctx, list, opts...)
		},
	}), nil
}

func (p *person) ChangeSignal() <-chan struct{} {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return p.hub.changed
}

func (p *person) HasLostAccess() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *person) lose() {
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.hub.ring()
}

func (p *person) ReadRecord(ctx context.Context, pool types.NamespacedName) (*corev1.ConfigMap, error) {
	return readRecordFrom(ctx, p.hub.store, pool)
}

// readRecordFrom does what userclient.User does, on a store.
func readRecordFrom(ctx context.Context, c client.Reader, pool types.NamespacedName) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	if err := c.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: record.ConfigMapName(pool.Name)}, &cm); err != nil {
		return nil, err
	}
	if cm.Labels[v1alpha1.LabelDemandRecord] != pool.Name {
		return nil, userclient.ErrNotRecord
	}
	return &cm, nil
}

func (p *person) ReleaseMemory() { p.mu.Lock(); p.rested++; p.mu.Unlock() }

func (p *person) Close() { p.mu.Lock(); p.closed++; p.mu.Unlock() }

// rig is a console with browsers.
type rig struct {
	*testing.T
	*httptest.Server
	console *Server
	clock   *clocktesting.FakeClock
	key     localauth.Key
	log     *logBook
	// end ends the console's life.
	end context.CancelFunc
}

type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T, h *hub, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{T: t, clock: clocktesting.NewFakeClock(start), key: localauth.NewKey(), log: &logBook{}}
	o := Options{
		Hub: h, Key: r.key, Port: "1", Version: "v1", Clock: clock.WithTicker(r.clock),
		Log: funcr.New(func(_, args string) {
			r.log.mu.Lock()
			defer r.log.mu.Unlock()
			r.log.text.WriteString(args + "\n")
		}, funcr.Options{Verbosity: 9}),
	}
	for _, f := range change {
		f(&o)
	}
	life, end := context.WithCancel(t.Context())
	r.end = end
	var err error
	if r.console, err = New(life, o); err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(r.console.Handler())
	t.Cleanup(func() { end(); r.Server.Close() })
	return r
}

// browser keeps cookies and does not follow redirects.
type browser struct {
	*rig
	http *http.Client
	jar  map[string]string
}

func (r *rig) browser() *browser {
	c := r.Server.Client()
	one := *c
	one.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{rig: r, http: &one, jar: map[string]string{}}
}

// answered is a response with its text.
type answered struct {
	*http.Response
	text string
}

func (b *browser) do(req *http.Request) answered {
	b.Helper()
	for name, value := range b.jar {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range res.Cookies() {
		if c.MaxAge < 0 {
			delete(b.jar, c.Name)
			continue
		}
		b.jar[c.Name] = c.Value
	}
	return answered{res, string(raw)}
}

func (b *browser) request(method, path string, form url.Values) *http.Request {
	b.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.Context(), method, b.URL+path, body)
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req
}

func (b *browser) get(path string) answered {
	b.Helper()
	return b.do(b.request(http.MethodGet, path, nil))
}

func (b *browser) post(path string, form url.Values) answered {
	b.Helper()
	return b.do(b.request(http.MethodPost, path, form))
}

// in returns a browser with a session.
func (r *rig) in(token string) *browser {
	r.Helper()
	b := r.browser()
	if a := b.post("/signin", url.Values{"token": {token}}); a.StatusCode != http.StatusSeeOther {
		r.Fatalf("signing in: %s\n%s", a.Status, a.text)
	}
	return b
}

var markField = regexp.MustCompile(`name="csrf-token" value="([^"]+)"`)

// mark returns the CSRF token of a browser's forms.
func (b *browser) mark() string {
	b.Helper()
	found := markField.FindStringSubmatch(b.get("/").text)
	if found == nil {
		b.Fatal("the first page has no form")
	}
	return found[1]
}

// send sends a form with the CSRF token, and returns the messages on the next page.
func (b *browser) send(path string, form url.Values) string {
	b.Helper()
	form.Set("csrf-token", b.mark())
	a := b.post(path, form)
	if a.StatusCode != http.StatusSeeOther {
		b.Fatalf("%s: %s\n%s", path, a.Status, a.text)
	}
	next := b.get(a.Header.Get("Location"))
	_, said, _ := strings.Cut(next.text, `id="messages"`)
	said, _, _ = strings.Cut(said, "</div>")
	return html.UnescapeString(strings.TrimSpace(text(said[strings.IndexByte(said, '>')+1:])))
}

func poolOf(namespace, name string) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))},
		Spec:       hivev1.ClusterPoolSpec{Size: 3, RunningCount: 1},
		Status:     hivev1.ClusterPoolStatus{Plan: "settled"},
	}
}

func clusterOf(pool *hivev1.ClusterPool, name, claim string) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: metav1.NewTime(start.Add(-time.Minute))},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true, PowerState: hivev1.PowerRunning,
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: pool.Namespace, PoolName: pool.Name, ClaimName: claim},
		},
		Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning},
	}
}

func claimed(pool *hivev1.ClusterPool, name, cluster string) *hivev1.ClusterClaim {
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: name, UID: "uid-of-" + "claim"},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: pool.Name, Namespace: cluster},
	}
	if cluster != "" {
		c.Status.Conditions = []hivev1.Condition{
			{Type: hivev1.ClaimPending, Status: corev1.ConditionFalse, Reason: hivev1.ReasonClusterClaimed},
			{Type: hivev1.ClaimClusterRunning, Status: corev1.ConditionTrue, Reason: hivev1.ReasonRunning},
		}
	}
	return c
}

// only allows the listed permissions, as "verb resource namespace", with - for all namespaces.
func only(lines ...string) func(userclient.Permission) bool {
	yes := map[string]bool{}
	for _, l := range lines {
		yes[l] = true
	}
	return func(d userclient.Permission) bool {
		n := d.Namespace
		if n == "" {
			n = "-"
		}
		return yes[d.Verb+" "+d.Resource+" "+n]
	}
}

func typeOf(o client.Object) string {
	gvks, _, err := userclient.Scheme().ObjectKinds(o)
	if err != nil {
		return ""
	}
	return gvks[0].Kind
}
