package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	_ "github.com/vmware/govmomi/vapi/simulator" // tags
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	vim "github.com/vmware/govmomi/vim25/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// An adopted cluster in a vCenter: what users write, and what becomes of its machines.
func TestAClusterOnVSphereHibernatesAndResumes(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	v := newVCenter(t)
	v.cluster(t, "vs-12345", "master-0", "worker-0", "worker-1")
	v.want(t, vim.VirtualMachinePowerStatePoweredOn)
	api := newSpoke(t, v)

	h.create(t,
		secret(ns, "kubeconfig", map[string][]byte{hivev1.SecretKeyKubeconfig: api.kubeconfig(t)}),
		secret(ns, "vcenter-ca", map[string][]byte{"ca.crt": v.ca()}),
		secret(ns, "vcenter-creds", map[string][]byte{"username": []byte(vcenterUser), "password": []byte(vcenterPassword)}),
	)
	if r := h.apply(t, adopted(ns, v.Listener.Addr().String())); r.code != 0 {
		t.Fatal(r.all())
	}
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vs"}}
	h.power(t, cd, hivev1.StatusRunning)

	t.Log("it hibernates")
	h.kubectl(t, "patch", "cd", "vs", "-n", ns, "--type=merge", "-p", `{"spec":{"powerState":"Hibernating"}}`)
	h.power(t, cd, hivev1.StatusHibernating)
	v.want(t, vim.VirtualMachinePowerStatePoweredOff)

	t.Log("it resumes")
	h.kubectl(t, "patch", "cd", "vs", "-n", ns, "--type=merge", "-p", `{"spec":{"powerState":"Running"}}`)
	h.power(t, cd, hivev1.StatusRunning)
	v.want(t, vim.VirtualMachinePowerStatePoweredOn)
}

// adopted is the manifest of a cluster that others have installed.
func adopted(namespace, vcenter string) string {
	host, port, _ := strings.Cut(vcenter, ":")
	return fmt.Sprintf(`
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: vs, namespace: %s}
spec:
  clusterName: vs
  baseDomain: lab.example.com
  installed: true
  preserveOnDelete: true
  clusterMetadata:
    clusterID: 5d2f3a51-7f0a-4a54-9d3c-000000000001
    infraID: vs-12345
    adminKubeconfigSecretRef: {name: kubeconfig}
  platform:
    vsphere:
      credentialsSecretRef: {name: vcenter-creds}
      certificatesSecretRef: {name: vcenter-ca}
      infrastructure:
        vcenters:
        - {server: %s, port: %s, datacenters: [DC0]}
`, namespace, host, port)
}

func secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// power waits until a cluster has arrived at a power state, by the word and by the conditions.
func (h *hub) power(t *testing.T, cd *hivev1.ClusterDeployment, want string) {
	t.Helper()
	eventually(t, "the cluster is "+want, func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil {
			return err
		}
		on := func(kind string) bool {
			return slices.ContainsFunc(cd.Status.Conditions, func(c hivev1.Condition) bool {
				return c.Type == kind && c.Status == corev1.ConditionTrue
			})
		}
		sleeps, runs := on(hivev1.ClusterHibernating), on(hivev1.ClusterReady)
		if cd.Status.PowerState != want || sleeps != (want == hivev1.StatusHibernating) || runs != (want == hivev1.StatusRunning) {
			return fmt.Errorf("powerState %q, conditions %v", cd.Status.PowerState, cd.Status.Conditions)
		}
		return nil
	})
}

const (
	vcenterUser     = "hotspare@vsphere.local"
	vcenterPassword = "Simul8ted!"
)

// vcenter is govmomi's simulator of a vCenter, with one host, behind TLS.
type vcenter struct {
	*simulator.Server
	admin    *govmomi.Client
	machines []vim.ManagedObjectReference
}

func newVCenter(t *testing.T) *vcenter {
	t.Helper()
	model := simulator.VPX()
	model.Cluster, model.Host, model.Machine = 0, 1, 0
	t.Cleanup(model.Remove)
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	model.Service.Listen = &url.URL{User: url.UserPassword(vcenterUser, vcenterPassword)}
	model.Service.TLS, model.Service.RegisterEndpoints = &tls.Config{}, true //nolint:gosec // the client says which versions it takes
	v := &vcenter{Server: model.Service.NewServer()}
	t.Cleanup(v.Close)
	var err error
	if v.admin, err = govmomi.NewClient(t.Context(), v.URL, true); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *vcenter) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.Certificate().Raw})
}

// cluster makes machines that run, with the tag that the installer attaches.
func (v *vcenter) cluster(t *testing.T, infraID string, roles ...string) {
	t.Helper()
	ctx := t.Context()
	f := find.NewFinder(v.admin.Client)
	folder, err1 := f.Folder(ctx, "/DC0/vm")
	pool, err2 := f.ResourcePool(ctx, "/DC0/host/DC0_H0/Resources")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		task, err := folder.CreateVM(ctx, vim.VirtualMachineConfigSpec{
			Name: infraID + "-" + role, GuestId: "rhel9_64Guest", Files: &vim.VirtualMachineFileInfo{VmPathName: "[LocalDS_0]"},
		}, pool, nil)
		if err != nil {
			t.Fatal(err)
		}
		made, err := task.WaitForResult(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ref := made.Result.(vim.ManagedObjectReference)
		on, err := object.NewVirtualMachine(v.admin.Client, ref).PowerOn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := on.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		v.machines = append(v.machines, ref)
	}
	if err := v.tag(ctx, infraID); err != nil {
		t.Fatal(err)
	}
}

func (v *vcenter) tag(ctx context.Context, infraID string) error {
	c := rest.NewClient(v.admin.Client)
	if err := c.Login(ctx, v.URL.User); err != nil {
		return err
	}
	m := tags.NewManager(c)
	category, err := m.CreateCategory(ctx, &tags.Category{Name: "openshift-" + infraID, Cardinality: "SINGLE", AssociableTypes: []string{"VirtualMachine"}})
	if err != nil {
		return err
	}
	tag, err := m.CreateTag(ctx, &tags.Tag{Name: infraID, CategoryID: category})
	if err != nil {
		return err
	}
	for _, ref := range v.machines {
		err = errors.Join(err, m.AttachTag(ctx, tag, ref))
	}
	return err
}

// want checks the power of all machines.
func (v *vcenter) want(t *testing.T, want vim.VirtualMachinePowerState) {
	t.Helper()
	for _, ref := range v.machines {
		if name, got := v.look(t.Context(), ref); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func (v *vcenter) look(ctx context.Context, ref vim.ManagedObjectReference) (name string, power vim.VirtualMachinePowerState) {
	var m mo.VirtualMachine
	if err := v.admin.RetrieveOne(ctx, ref, []string{"name", "runtime.powerState"}, &m); err != nil {
		return ref.Value, vim.VirtualMachinePowerState(err.Error())
	}
	return m.Name, m.Runtime.PowerState
}

// spoke is as much of a cluster's API as hotspare asks for. It is there while the
// control plane's machine is on, and so are the nodes while theirs are.
type spoke struct {
	*httptest.Server
	*vcenter
	mu     sync.Mutex
	errand *policyv1.PodDisruptionBudget
}

const spokeToken = "admin-of-the-spoke"

func newSpoke(t *testing.T, v *vcenter) *spoke {
	t.Helper()
	s := &spoke{vcenter: v}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes", s.nodes)
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", s.leases)
	mux.HandleFunc("GET /apis/certificates.k8s.io/v1/certificatesigningrequests", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"kind": "CertificateSigningRequestList", "apiVersion": "certificates.k8s.io/v1", "items": []any{}})
	})
	const budgets = "/apis/policy/v1/namespaces/kube-system/poddisruptionbudgets"
	mux.HandleFunc("POST "+budgets, s.take)
	mux.HandleFunc(budgets+"/hotspare-resume", s.tell)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	})
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, power := v.look(r.Context(), v.machines[0]); power != vim.VirtualMachinePowerStatePoweredOn {
			panic(http.ErrAbortHandler) // nobody is there
		}
		if r.Header.Get("Authorization") != "Bearer "+spokeToken {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Server.Close)
	return s
}

// kubeconfig is the administrator's.
func (s *spoke) kubeconfig(t *testing.T) []byte {
	t.Helper()
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"vs": {
			Server:                   s.Server.URL,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Server.Certificate().Raw}),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: spokeToken}},
		Contexts:       map[string]*clientcmdapi.Context{"admin": {Cluster: "vs", AuthInfo: "admin"}},
		CurrentContext: "admin",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked has left
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	reply(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason})
}

func (s *spoke) nodes(w http.ResponseWriter, r *http.Request) {
	list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
	for _, ref := range s.machines {
		name, power := s.look(r.Context(), ref)
		ready := corev1.ConditionTrue
		if power != vim.VirtualMachinePowerStatePoweredOn {
			ready = corev1.ConditionUnknown
		}
		list.Items = append(list.Items, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		})
	}
	reply(w, http.StatusOK, list)
}

// leases are those of kubelets that run: renewed just now.
func (s *spoke) leases(w http.ResponseWriter, r *http.Request) {
	list := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}}
	for _, ref := range s.machines {
		if name, power := s.look(r.Context(), ref); power == vim.VirtualMachinePowerStatePoweredOn {
			now := metav1.NewMicroTime(time.Now())
			list.Items = append(list.Items, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}})
		}
	}
	reply(w, http.StatusOK, list)
}

// take has the controller manager look at the errand at once.
func (s *spoke) take(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &policyv1.PodDisruptionBudget{}
	if err := json.NewDecoder(r.Body).Decode(b); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	if s.errand != nil && r.Method == http.MethodPost {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	}
	b.Generation = 1
	if s.errand != nil {
		b.Generation = s.errand.Generation + 1
	}
	b.Status.ObservedGeneration = b.Generation
	s.errand = b
	reply(w, http.StatusCreated, b)
}

func (s *spoke) tell(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		s.take(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errand == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	reply(w, http.StatusOK, s.errand)
	if r.Method == http.MethodDelete {
		s.errand = nil
	}
}
