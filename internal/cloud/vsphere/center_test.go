package vsphere

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	_ "github.com/vmware/govmomi/vapi/simulator" // tags
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

const (
	testUser     = "hotspare@vsphere.local"
	testPassword = `Vc3nter"pa\ss`
)

// vcenter is govmomi's simulator behind TLS. Faults are injected where a real vCenter returns them:
// for a request, in a method, or in a task.
type vcenter struct {
	*testing.T
	model *simulator.Model
	front *httptest.Server
	admin *govmomi.Client
	tags  *tags.Manager
	dc    *object.Datacenter
	root  *object.Folder
	pool  *object.ResourcePool
	host  *object.HostSystem

	mu       sync.Mutex
	password string
	// skew is how far vCenter's clock is ahead of this computer's.
	skew time.Duration
	// deaf guests accept a shutdown request and ignore it.
	deaf map[string]bool
	// faults maps "method" or "method object" to the fault that such calls return.
	faults map[string]types.BaseMethodFault
	calls  []string
	// door handles a request instead of vCenter, if it returns true.
	door func(http.ResponseWriter, *http.Request) bool
	// tokens is the number of open sessions of the tags API.
	tokens int
}

func newCenter(t *testing.T) *vcenter {
	t.Helper()
	v := &vcenter{T: t, model: simulator.VPX(), deaf: map[string]bool{}, faults: map[string]types.BaseMethodFault{}}
	v.model.Cluster, v.model.Host, v.model.Machine = 0, 1, 0 // a host takes as long to create as a short test
	v.must(v.build())
	t.Cleanup(v.model.Remove)
	v.model.Service.Listen = &url.URL{User: url.UserPassword(testUser, testPassword)}
	v.model.Service.RegisterEndpoints = true
	srv := v.model.Service.NewServer()
	v.password = testPassword
	v.model.Service.Context.Map.SessionManager().ValidLogin = func(l *types.Login) bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return l.UserName == testUser && l.Password == v.password
	}
	t.Cleanup(srv.Close)
	v.model.Service.Context.Map.Handler = v.method
	v.front = httptest.NewTLSServer(http.HandlerFunc(v.serve))
	t.Cleanup(v.front.Close)
	v.login(srv.URL)
	return v
}

// building is locked while hosts are created, because the simulator copies them from one that it
// modifies.
var building sync.Mutex

func (v *vcenter) build() error {
	building.Lock()
	defer building.Unlock()
	return v.model.Create()
}

// login gives the test its own session, without a login request.
func (v *vcenter) login(u *url.URL) {
	ctx := v.Context()
	var err error
	v.admin, err = govmomi.NewClient(ctx, u, true)
	v.must(err)
	rc := rest.NewClient(v.admin.Client)
	v.must(rc.Login(ctx, url.UserPassword(testUser, testPassword)))
	v.tags = tags.NewManager(rc)
	f := find.NewFinder(v.admin.Client)
	v.dc, err = f.DefaultDatacenter(ctx)
	v.must(err)
	f.SetDatacenter(v.dc)
	folders, err := v.dc.Folders(ctx)
	v.must(err)
	v.root = folders.VmFolder
	v.host, err = f.HostSystem(ctx, "DC0_H0")
	v.must(err)
	v.pool, err = v.host.ResourcePool(ctx)
	v.must(err)
}

func (v *vcenter) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

func (v *vcenter) serve(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	door := v.door
	v.mu.Unlock()
	if door != nil && door(w, r) {
		return
	}
	if r.URL.Path == "/sdk" {
		v.sdk(w, r)
		return
	}
	seen := &recorder{ResponseWriter: w, code: http.StatusOK}
	v.model.Service.ServeMux.ServeHTTP(seen, r)
	if !strings.HasSuffix(r.URL.Path, "/cis/session") || r.URL.RawQuery != "" || seen.code >= 400 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch r.Method {
	case http.MethodPost:
		v.tokens++
	case http.MethodDelete:
		v.tokens--
	}
}

type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// method is called before each method of vCenter.
func (v *vcenter) method(_ *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	call := m.Name + " " + m.This.Value
	v.calls = append(v.calls, call)
	for _, name := range []string{m.Name, call} {
		if f := v.faults[name]; f != nil {
			return nil, f
		}
	}
	return nil, nil
}

// sdk is the machines API, with a clock that can be set and guests that can be deaf.
func (v *vcenter) sdk(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if call := shutdownCall.FindSubmatch(body); call != nil && v.ignores(string(call[1])) {
		io.WriteString(w, `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><ShutdownGuestResponse xmlns="urn:vim25"/></Body></Envelope>`)
		return
	}
	if !bytes.Contains(body, []byte("<CurrentTime ")) {
		v.model.Service.ServeMux.ServeHTTP(w, r)
		return
	}
	seen := httptest.NewRecorder()
	v.model.Service.ServeMux.ServeHTTP(seen, r)
	w.WriteHeader(seen.Code)
	w.Write(timeValue.ReplaceAllFunc(seen.Body.Bytes(), v.shift))
}

var (
	shutdownCall = regexp.MustCompile(`<ShutdownGuest .*<_this type="VirtualMachine">([^<]+)<`)
	timeValue    = regexp.MustCompile(`\d{4}-\d\d-\d\dT[^<]+`)
)

func (v *vcenter) shift(text []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		v.Error(err)
	}
	return []byte(at.Add(v.skew).Format(time.RFC3339Nano))
}

// ignores makes vCenter record that it has asked a deaf guest to shut down.
func (v *vcenter) ignores(vm string) bool {
	v.mu.Lock()
	deaf := v.deaf[vm]
	if deaf {
		v.calls = append(v.calls, "ShutdownGuest "+vm)
	}
	v.mu.Unlock()
	if !deaf {
		return false
	}
	ref := types.ManagedObjectReference{Type: kindVM, Value: vm}
	err := event.NewManager(v.admin.Client).PostEvent(v.Context(), &types.VmGuestShutdownEvent{VmEvent: types.VmEvent{
		Event: types.Event{Vm: &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: vm}, Vm: ref}},
	}})
	if err != nil {
		v.Error(err)
	}
	return true
}

// set changes a property of a machine as its host would.
func (v *vcenter) set(ref types.ManagedObjectReference, path string, val any) {
	ctx := v.model.Service.Context
	vm := ctx.Map.Get(ref)
	ctx.WithLock(vm, func() { ctx.Update(vm, []types.PropertyChange{{Name: path, Val: val}}) })
}

func (v *vcenter) tools(ref types.ManagedObjectReference, status types.VirtualMachineToolsRunningStatus) {
	v.set(ref, "guest.toolsRunningStatus", string(status))
}

const toolsRun, toolsDown = types.VirtualMachineToolsRunningStatusGuestToolsRunning, types.VirtualMachineToolsRunningStatusGuestToolsNotRunning

// vm creates a machine that is off, in a folder below the datacenter's; "" is that folder itself.
func (v *vcenter) vm(folder, name string) types.ManagedObjectReference {
	v.Helper()
	return v.vms(folder, name)[0]
}

// vms creates machines concurrently.
func (v *vcenter) vms(folder string, names ...string) []types.ManagedObjectReference {
	v.Helper()
	at := v.root
	if folder != "" {
		at = v.folder(at, folder)
	}
	var tasks []*simulator.Task
	for _, name := range names {
		task, err := at.CreateVM(v.Context(), types.VirtualMachineConfigSpec{
			Name: name, GuestId: "otherGuest", Files: &types.VirtualMachineFileInfo{VmPathName: "[LocalDS_0]"},
		}, v.pool, v.host)
		v.must(err)
		tasks = append(tasks, v.model.Service.Context.Map.Get(task.Reference()).(*simulator.Task))
	}
	var refs []types.ManagedObjectReference
	for i, task := range tasks {
		task.Wait()
		ref, ok := task.Info.Result.(types.ManagedObjectReference)
		if !ok {
			v.Fatalf("making %s: %v", names[i], task.Info.Error)
		}
		v.tools(ref, toolsRun)
		refs = append(refs, ref)
	}
	return refs
}

func (v *vcenter) folder(parent *object.Folder, name string) *object.Folder {
	v.Helper()
	known, err := object.NewSearchIndex(v.admin.Client).FindChild(v.Context(), parent, name)
	v.must(err)
	if known != nil {
		return known.(*object.Folder)
	}
	made, err := parent.CreateFolder(v.Context(), name)
	v.must(err)
	return made
}

// mark attaches the installer's tag.
func (v *vcenter) mark(infraID string, refs ...types.ManagedObjectReference) {
	v.Helper()
	ctx := v.Context()
	category, err := v.tags.GetCategory(ctx, categoryPrefix+infraID)
	if err != nil {
		id, err := v.tags.CreateCategory(ctx, &tags.Category{Name: categoryPrefix + infraID, Cardinality: "SINGLE", AssociableTypes: []string{kindVM}})
		v.must(err)
		_, err = v.tags.CreateTag(ctx, &tags.Tag{Name: infraID, CategoryID: id})
		v.must(err)
		category = &tags.Category{ID: id}
	}
	tag, err := v.tags.GetTagForCategory(ctx, infraID, category.ID)
	v.must(err)
	var objects []mo.Reference
	for _, ref := range refs {
		objects = append(objects, ref)
	}
	v.must(v.tags.AttachTagToMultipleObjects(ctx, tag.ID, objects))
}

// cluster creates one control plane machine and some workers, and a template with the same tag.
func (v *vcenter) cluster(infraID string, workers int) []types.ManagedObjectReference {
	v.Helper()
	names := []string{infraID + "-rhcos", infraID + "-master-0"}
	for i := range workers {
		names = append(names, fmt.Sprintf("%s-worker-%d", infraID, i))
	}
	refs := v.vms(infraID, names...)
	v.must(object.NewVirtualMachine(v.admin.Client, refs[0]).MarkAsTemplate(v.Context()))
	v.mark(infraID, refs...)
	return refs[1:]
}

func (v *vcenter) power(ref types.ManagedObjectReference) types.VirtualMachinePowerState {
	v.Helper()
	var m mo.VirtualMachine
	v.must(v.admin.RetrieveOne(v.Context(), ref, []string{"runtime.powerState"}, &m))
	return m.Runtime.PowerState
}

func (v *vcenter) named(name string) types.ManagedObjectReference {
	v.Helper()
	f := find.NewFinder(v.admin.Client)
	vm, err := f.VirtualMachine(v.Context(), "/DC0/vm/*/"+name)
	v.must(err)
	return vm.Reference()
}

// fail makes calls of a method, optionally only for some objects, return a fault; a nil fault ends
// this.
func (v *vcenter) fail(f types.BaseMethodFault, method string, refs ...types.ManagedObjectReference) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, ref := range refs {
		v.faults[method+" "+ref.Value] = f
	}
	if len(refs) == 0 {
		v.faults[method] = f
	}
}

func (v *vcenter) deafen(ref types.ManagedObjectReference) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deaf[ref.Value] = true
}

func (v *vcenter) pass(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.skew += d
}

func (v *vcenter) doorman(door func(http.ResponseWriter, *http.Request) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.door = door
}

// count returns how often a method was called.
func (v *vcenter) count(method string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, c := range v.calls {
		if strings.HasPrefix(c, method+" ") {
			n++
		}
	}
	return n
}

// sessions returns the open sessions, except the test's own: those of the machines API, from
// vCenter's own list, and those of the tags API.
func (v *vcenter) sessions() string {
	v.Helper()
	v.mu.Lock()
	n := v.tokens
	v.mu.Unlock()
	return fmt.Sprintf("%d+%d", len(v.sessionKeys()), n)
}

func (v *vcenter) sessionKeys() []string {
	v.Helper()
	var m mo.SessionManager
	v.must(v.admin.RetrieveOne(v.Context(), *v.admin.ServiceContent.SessionManager, []string{"sessionList", "currentSession"}, &m))
	var keys []string
	for _, s := range m.SessionList {
		if s.Key != m.CurrentSession.Key {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

func (v *vcenter) server() string { return strings.TrimPrefix(v.front.URL, "https://") }

func (v *vcenter) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.front.Certificate().Raw})
}

// hub has Secrets in namespace ns: creds and ca.
type hub struct {
	mu   sync.Mutex
	data map[string]map[string]string
}

func newHub(v *vcenter) *hub {
	return &hub{data: map[string]map[string]string{
		"creds": {"username": testUser, "password": testPassword},
		"ca":    {".cacert": string(v.ca())},
	}}
}

func (h *hub) put(secret string, data map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.data[secret] = data
}

func (h *hub) secrets(_ context.Context, name ktypes.NamespacedName) (map[string][]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, ok := h.data[name.Name]
	if !ok || name.Namespace != "ns" {
		return nil, fault.NewDenied("Secret %s does not exist", name)
	}
	out := map[string][]byte{}
	for k, val := range data {
		out[k] = []byte(val)
	}
	return out, nil
}

// refTo returns a cluster in those vCenters.
func refTo(infraID string, servers ...string) cloud.Ref {
	type vc struct {
		Server string `json:"server"`
	}
	var list []vc
	for _, s := range servers {
		list = append(list, vc{s})
	}
	return refWith(infraID, map[string]any{
		"credentialsSecretRef": secretReference{"creds"}, "certificatesSecretRef": secretReference{"ca"},
		"infrastructure": map[string]any{"vcenters": list},
	})
}

func refWith(infraID string, section map[string]any) cloud.Ref {
	raw, err := json.Marshal(section)
	if err != nil {
		panic(err)
	}
	return cloud.Ref{
		Cluster: ktypes.NamespacedName{Namespace: "ns", Name: "cluster-" + infraID}, InfraID: infraID,
		Platform: hivev1.Platform{VSphere: &runtime.RawExtension{Raw: raw}},
	}
}

// newPower returns an Actuator, which is closed when the test ends.
func newPower(t *testing.T, h *hub) *Actuator {
	t.Helper()
	p := New(h.secrets, nil)
	t.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return p
}
