package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power/csr/csrtest"
)

// A cluster sleeps until its nodes' certificates have expired. Its nodes come back
// by requests that the hub has judged; what an impostor asks for meanwhile stays
// as it is.
func TestAClusterThatSleptPastItsCertificatesComesBack(t *testing.T) {
	h := shared(t)
	cd := shortLived(h.namespace(t), "napper")
	h.create(t, cd)
	t.Cleanup(func() { _ = h.Delete(context.Background(), cd) }) // its namespace goes, too
	h.conditioned(t, cd, hivev1.ClusterHibernating, corev1.ConditionTrue)
	nodes := h.expired(t, cd)

	before := cd.DeepCopy()
	cd.Spec.PowerState = hivev1.PowerRunning
	if err := h.Patch(t.Context(), cd, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	admin := h.spoke(t, cd)
	evil := impostures(t, admin, cd.Spec.ClusterMetadata.InfraID)

	t.Log("the impostor's requests are judged, and told")
	eventually(t, "the refusals are told", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil {
			return err
		}
		return told(cd, evil)
	})

	t.Log("the nodes come back")
	h.conditioned(t, cd, hivev1.ClusterReady, corev1.ConditionTrue)
	granted := slices.Compact(readmitted(t, admin)) // a certificate of a minute may have expired before the others came back
	if want := slices.Sorted(slices.Values(nodes)); !slices.Equal(granted, want) {
		t.Errorf("let in again by the hub: %v, want %v", granted, want)
	}
	for _, name := range evil {
		if r := request(t, admin, name); len(r.Status.Conditions) > 0 || len(r.Status.Certificate) > 0 {
			t.Errorf("%s was answered: %+v", name, r.Status.Conditions)
		}
	}
	h.approvals(t, cd, len(nodes))
}

// shortLived is a cluster whose nodes' certificates live as short as can be, and
// which sleeps as soon as it is installed.
func shortLived(namespace, name string) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: name, BaseDomain: "example.com", PowerState: hivev1.PowerHibernating,
			Platform:     hivev1.Platform{Local: &hivev1.LocalPlatform{Workers: ptr.To[int32](1), CertificateDuration: "1m"}},
			Provisioning: &hivev1.Provisioning{ImageSetRef: &hivev1.ClusterImageSetReference{Name: "kubernetes"}},
		},
	}
}

// expired waits until the certificates of all nodes have, and returns the nodes.
func (h *hub) expired(t *testing.T, cd *hivev1.ClusterDeployment) []string {
	t.Helper()
	dir := filepath.Join(h.machines(), cd.Spec.ClusterMetadata.InfraID)
	machines, err := foldersIn(dir)
	if err != nil || len(machines) != 2 {
		t.Fatalf("machines %v: %v", machines, err)
	}
	idle(func() {
		eventually(t, "the certificates expire", func(context.Context) error {
			for _, m := range machines {
				path := filepath.Join(dir, m, "disk", "pki", "kubelet-client.pem")
				pair, err := tls.LoadX509KeyPair(path, path)
				if err != nil {
					return err
				}
				if now := time.Now(); !now.After(pair.Leaf.NotAfter) {
					return fmt.Errorf("that of %s is good for %s", m, pair.Leaf.NotAfter.Sub(now))
				}
			}
			return nil
		})
	})
	return machines
}

// spoke returns how to talk to a cluster's API as its administrator.
func (h *hub) spoke(t *testing.T, cd *hivev1.ClusterDeployment) *rest.Config {
	t.Helper()
	kubeconfig, _ := h.adminSecrets(t, cd)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Data[hivev1.SecretKeyKubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// impostures posts, as soon as the API answers, what somebody with a machine's
// bootstrap credential might: for a node that there is not, and for more than a node.
func impostures(t *testing.T, admin *rest.Config, infraID string) []string {
	t.Helper()
	machine := rest.CopyConfig(admin)
	machine.Impersonate = rest.ImpersonationConfig{
		UserName: csrtest.BootstrapUser,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
	}
	api := kubernetes.NewForConfigOrDie(machine).CertificatesV1().CertificateSigningRequests()
	stranger := csrtest.ClientRequest(t, "evil-stranger", infraID+"-worker-9", time.Time{})
	master := csrtest.ClientRequest(t, "evil-master", infraID+"-worker-0", time.Time{})
	master.Spec.Request = csrtest.RequestPEM(t, "system:node:"+infraID+"-worker-0", "system:nodes", "system:masters")
	var names []string
	for _, r := range []certificatesv1.CertificateSigningRequest{stranger, master} {
		r.ResourceVersion = ""
		eventually(t, "request "+r.Name+" is taken", func(ctx context.Context) error {
			_, err := api.Create(ctx, &r, metav1.CreateOptions{})
			return err
		})
		names = append(names, r.Name)
	}
	return names
}

// told is an error until Ready tells of all these requests.
func told(cd *hivev1.ClusterDeployment, names []string) error {
	for _, c := range cd.Status.Conditions {
		if c.Type != hivev1.ClusterReady {
			continue
		}
		for _, name := range names {
			if c.Reason != hivev1.ReasonWaitingForNodes || !strings.Contains(c.Message, name+" (") {
				return errors.New(c.Message)
			}
		}
		return nil
	}
	return errors.New("no condition Ready")
}

// readmitted are the nodes that the hub has let have client certificates.
func readmitted(t *testing.T, admin *rest.Config) []string {
	t.Helper()
	list, err := kubernetes.NewForConfigOrDie(admin).CertificatesV1().CertificateSigningRequests().List(patient(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list.Items {
		for _, c := range r.Status.Conditions {
			if c.Reason == "ClusterResumed" && r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
				out = append(out, strings.TrimSuffix(strings.TrimPrefix(c.Message, "Approved by hotspare: node "), " resumed with its cluster."))
			}
		}
	}
	slices.Sort(out)
	return out
}

func request(t *testing.T, admin *rest.Config, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	r, err := kubernetes.NewForConfigOrDie(admin).CertificatesV1().CertificateSigningRequests().Get(patient(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// approvals waits until at least n approvals are told by events.
func (h *hub) approvals(t *testing.T, cd *hivev1.ClusterDeployment, n int) {
	t.Helper()
	eventually(t, "approvals are told by events", func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := h.List(ctx, &list, client.InNamespace(cd.Namespace)); err != nil {
			return err
		}
		found := 0
		for _, e := range list.Items {
			if e.Reason == "CertificateApproved" && strings.Contains(e.Note, certificatesv1.KubeAPIServerClientKubeletSignerName) {
				found++
			}
		}
		if found < n {
			return fmt.Errorf("%d, want at least %d", found, n)
		}
		return nil
	})
}
