package power

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/ownership"
	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/power/csr"
	"hotspare.io/hotspare/internal/remote"
)

const (
	starting = 20 * time.Second
	stopping = 10 * time.Second
)

// sim is a cloud with one cluster on it, and that cluster's API.
type sim struct {
	clock  *clocktesting.FakeClock
	vms    []*vm
	refuse error
	// What was asked of it.
	observed, started, stopped, looked int
	asked                              remote.ObserveOptions
	forgotten                          bool
	version                            power.Version
	// away is a node whose certificate has expired; deaf is why requests cannot be approved.
	away, deaf string
	requests   []certificatesv1.CertificateSigningRequest
	listed     int
	apiDown    bool
	// probe is what was sent last; lazy is a controller manager that does not act, closed why none is taken.
	probe           power.ResumeProbe
	lazy            bool
	closed          string
	sent, dismissed int
	// spots are the cluster's spot machines, kept those that the platform still has, and
	// barred is why their Machines cannot be deleted.
	spots    []power.SpotMachine
	kept     []string
	barred   string
	replaced []string
	die      func()
}

type vm struct {
	cloud.Machine
	until time.Time
}

// settle lets the machines arrive where the time has brought them.
func (s *sim) settle() {
	for _, m := range s.vms {
		switch {
		case s.clock.Now().Before(m.until):
		case m.State == cloud.Starting:
			m.State = cloud.Running
		case m.State == cloud.Stopping:
			m.State = cloud.Stopped
		}
	}
}

func (s *sim) Observe(context.Context, cloud.Ref) (cloud.Machines, error) {
	s.observed++
	s.settle()
	var out cloud.Machines
	for _, m := range s.vms {
		out = append(out, m.Machine)
	}
	return out, s.refuse
}

func (s *sim) Start(context.Context, cloud.Ref) error {
	s.started++
	return s.move(cloud.Stopped, cloud.Starting, starting)
}

func (s *sim) Stop(context.Context, cloud.Ref) error {
	s.stopped++
	return s.move(cloud.Running, cloud.Stopping, stopping)
}

func (s *sim) move(from, to cloud.State, span time.Duration) error {
	if s.refuse != nil {
		return s.refuse
	}
	for _, m := range s.vms {
		if m.State == from {
			m.State, m.until = to, s.clock.Now().Add(span)
		}
	}
	s.die()
	return nil
}

func (s *sim) ObserveSpoke(_ context.Context, _ types.NamespacedName, ask remote.ObserveOptions) (power.Spoke, error) {
	s.looked++
	s.asked = ask
	if s.apiDown {
		return power.Spoke{Queried: true, UnreachableReason: "connection refused"}, nil
	}
	out := power.Spoke{Queried: true, Reachable: true}
	if ask.ResumeProbe {
		out.ResumeProbe = s.probe
	}
	if ask.Version {
		out.Version = s.version
	}
	if ask.SpotMachines {
		out.SpotMachines = slices.Clone(s.spots)
	}
	for _, m := range s.vms {
		n := power.Node{Name: m.Name, Ready: true, Renewed: s.clock.Now()}
		if m.Name == s.away {
			n.Ready, n.Renewed = false, s.clock.Now().Add(-time.Hour)
		}
		out.Nodes = append(out.Nodes, n)
	}
	return out, nil
}

func (s *sim) CreateResumeProbe(_ context.Context, _ types.NamespacedName, mark string) (bool, string, error) {
	if s.apiDown || s.closed != "" {
		return false, s.closed, nil
	}
	s.sent++
	s.probe = power.ResumeProbe{Mark: mark, Done: !s.lazy}
	return true, "", nil
}

func (s *sim) DeleteResumeProbe(context.Context, types.NamespacedName) error {
	s.dismissed++
	s.probe = power.ResumeProbe{}
	return nil
}

func (s *sim) ListCertificateRequests(context.Context, types.NamespacedName, remote.ListRequestsOptions) (*power.CertificateRequests, error) {
	s.listed++
	r := &power.CertificateRequests{List: slices.Clone(s.requests)}
	for _, m := range s.vms {
		r.Machines = append(r.Machines, csr.Machine{
			Namespace: csr.MachineNamespace, Node: m.Name, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: m.Name}},
		})
	}
	return r, nil
}

// ApproveCertificateRequest lets the node in that it is for.
func (s *sim) ApproveCertificateRequest(_ context.Context, _ types.NamespacedName, r *certificatesv1.CertificateSigningRequest) (bool, string, error) {
	for i := range s.requests {
		if s.requests[i].Name != r.Name {
			continue
		}
		if s.requests[i].ResourceVersion != r.ResourceVersion {
			return false, "", nil
		}
		if s.deaf != "" {
			return false, s.deaf, nil
		}
		s.requests[i] = *r
		s.away = ""
		return true, "", nil
	}
	return false, "", nil
}

// DeleteSpotMachine makes another machine in the place of the lost one, as a MachineSet does.
func (s *sim) DeleteSpotMachine(_ context.Context, _ types.NamespacedName, m power.SpotMachine) (bool, string, error) {
	if s.barred != "" {
		return false, s.barred, nil
	}
	s.replaced = append(s.replaced, m.Name)
	for i, have := range s.spots {
		if have.UID == m.UID {
			id := have.ProviderID + "-new"
			s.spots[i] = power.SpotMachine{Name: m.Name + "-new", UID: m.UID + "-new", ProviderID: id, Created: s.clock.Now(), Joined: true}
			s.kept = append(s.kept, id)
		}
	}
	return true, "", nil
}

// ListLostInstances returns the machines that no longer exist.
func (s *spotSim) ListLostInstances(_ context.Context, _ cloud.Ref, ids []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(s.kept, id) }), s.refuse
}

// spotSim is a cloud that ends machines when it stops them.
type spotSim struct{ *sim }

func (s *sim) ForgetClient(types.NamespacedName) { s.forgotten = true }

// hub is the reconciler with all that it needs, and the sim on the other side.
type hub struct {
	*testing.T
	*sim
	Reconciler
	events *events.FakeRecorder
	// writes counts what was stored; the process dies after the write with number dieAfter.
	writes, dieAfter int
}

var errDied = errors.New("the process died")

// newHub starts with cd, installed and running an hour ago.
func newHub(t *testing.T, changes ...func(*hivev1.ClusterDeployment)) *hub {
	t.Helper()
	h := &hub{T: t, events: events.NewFakeRecorder(100)}
	h.sim = &sim{clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), die: func() {}}
	for _, name := range []string{"m0", "w0"} {
		h.vms = append(h.vms, &vm{Machine: cloud.Machine{Name: name, State: cloud.Running}})
	}
	cd := newCluster(h.sim.clock.Now())
	for _, change := range changes {
		change(cd)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(hivev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	h.Reconciler = Reconciler{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(cd).WithObjects(cd).
			WithIndex(&hivev1.ClusterDeployment{}, ownership.ByInfraID, ownership.InfraIDs).
			WithInterceptorFuncs(interceptor.Funcs{Patch: h.patch, SubResourcePatch: h.patchStatus}).Build(),
		Actuators: cloud.Registry{"aws": h.sim},
		Remote:    h.sim,
		Clock:     h.sim.clock,
		Events:    h.events,
	}
	return h
}

func newCluster(now time.Time) *hivev1.ClusterDeployment {
	at := metav1.NewTime(now.Add(-time.Hour))
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c", UID: "uid"},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true,
			Platform:  hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte("{}")}},
			ClusterMetadata: &hivev1.ClusterMetadata{
				InfraID: "infra", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "kubeconfig"},
			},
		},
		Status: hivev1.ClusterDeploymentStatus{InstalledTimestamp: &at},
	}
}

func (h *hub) patch(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	return h.wrote(c.Patch(ctx, obj, p, opts...))
}

func (h *hub) patchStatus(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return h.wrote(c.SubResource(sub).Patch(ctx, obj, p, opts...))
}

func (h *hub) wrote(err error) error {
	if err != nil {
		return err
	}
	h.writes++
	if h.writes == h.dieAfter {
		return errDied
	}
	return nil
}

var key = types.NamespacedName{Namespace: "c", Name: "c"}

// pass does one pass and returns when the next is due.
func (h *hub) pass() time.Duration {
	h.Helper()
	res, err := h.Reconcile(h.Context(), ctrl.Request{NamespacedName: key})
	if err != nil && !errors.Is(err, errDied) {
		h.Fatal(err)
	}
	return res.RequeueAfter
}

// until passes, stepping the clock as passes ask, until the cluster says word.
func (h *hub) until(word string) {
	h.Helper()
	for range 1000 {
		next := h.pass()
		if h.get().Status.PowerState == word {
			return
		}
		h.sim.clock.Step(next)
	}
	h.Fatalf("never %s: %+v", word, h.get().Status)
}

func (h *hub) get() *hivev1.ClusterDeployment {
	h.Helper()
	var cd hivev1.ClusterDeployment
	if err := h.Client.Get(h.Context(), key, &cd); err != nil {
		h.Fatal(err)
	}
	return &cd
}

// edit changes the cluster as a user does; it is not counted as a write.
func (h *hub) edit(change func(*hivev1.ClusterDeployment)) {
	h.Helper()
	cd := h.get()
	change(cd)
	if err := h.Client.Update(h.Context(), cd); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) reason(typ string) string {
	h.Helper()
	c := condition.Find(h.get().Status.Conditions, typ)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + " " + c.Reason
}

// told removes the events recorded so far and counts those with this prefix.
func (h *hub) told(prefix string) int {
	n := 0
	for len(h.events.Events) > 0 {
		if strings.HasPrefix(<-h.events.Events, prefix) {
			n++
		}
	}
	return n
}

func wants(state hivev1.PowerState) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = state }
}

func annotate(key string) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) { metav1.SetMetaDataAnnotation(&cd.ObjectMeta, key, "true") }
}
