package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hotspare.io/hotspare/internal/power"
)

// keeper is a spoke's API that keeps one PodDisruptionBudget, or refuses to.
type keeper struct {
	kept *policyv1.PodDisruptionBudget
	code int
}

const budgets = "/apis/policy/v1/namespaces/kube-system/poddisruptionbudgets"

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var in policyv1.PodDisruptionBudget
	raw, _ := io.ReadAll(r.Body)
	_, _, _ = scheme.Codecs.UniversalDeserializer().Decode(raw, nil, &in) // clients may speak protobuf
	switch {
	case r.URL.Path != budgets && r.URL.Path != budgets+"/hotspare-resume":
		_ = json.NewEncoder(w).Encode(metav1.List{})
	case k.code != 0:
		k.fail(w, k.code, "")
	case r.Method == http.MethodPost && k.kept != nil:
		k.fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case r.Method != http.MethodPost && k.kept == nil:
		k.fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodDelete:
		k.kept = nil
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusSuccess})
	default:
		if r.Method == http.MethodPost {
			in.Generation = 1
		} else if r.Method == http.MethodPut && *in.Spec.MinAvailable != *k.kept.Spec.MinAvailable {
			in.Generation = k.kept.Generation + 1
		}
		if r.Method != http.MethodGet {
			k.kept = &in
		}
		_ = json.NewEncoder(w).Encode(k.kept)
	}
}

func (k *keeper) fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: secret})
}

func newKeeper(t *testing.T) (*keeper, *Connector) {
	t.Helper()
	k := &keeper{}
	server := httptest.NewTLSServer(k)
	t.Cleanup(server.Close)
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string][]byte{"kubeconfig": []byte(kubeconfig(server, `"token":"`+secret+`"`))},
	}
	return k, New(fake.NewClientBuilder().WithObjects(s).Build(), nil)
}

func TestResumeProbe(t *testing.T) {
	k, c := newKeeper(t)
	look := func(what string, want power.ResumeProbe) {
		t.Helper()
		s, err := c.ObserveSpoke(t.Context(), key, ObserveOptions{ResumeProbe: true})
		if err != nil || !s.Reachable || s.ResumeProbe != want {
			t.Errorf("%s: %+v, %v; want %+v", what, s, err, want)
		}
	}
	send := func(mark string) {
		t.Helper()
		if sent, refused, err := c.CreateResumeProbe(t.Context(), key, mark); !sent || refused != "" || err != nil {
			t.Errorf("sending %s: %t, %q, %v", mark, sent, refused, err)
		}
	}
	look("before", power.ResumeProbe{})
	send("one")
	look("sent", power.ResumeProbe{Mark: "one"})
	k.kept.Status.ObservedGeneration = k.kept.Generation
	look("seen by the controller manager", power.ResumeProbe{Mark: "one", Done: true})
	send("two")
	look("sent in another resume", power.ResumeProbe{Mark: "two"})
	send("three")
	k.kept.Status.ObservedGeneration = k.kept.Generation - 1
	look("an older one was seen", power.ResumeProbe{Mark: "three"})
	if err := c.DeleteResumeProbe(t.Context(), key); err != nil || k.kept != nil {
		t.Errorf("after the end %v is left: %v", k.kept, err)
	}
	look("afterwards", power.ResumeProbe{})
	if err := c.DeleteResumeProbe(t.Context(), key); err != nil {
		t.Errorf("taking away what is gone: %v", err)
	}
}

func TestRefusedResumeProbe(t *testing.T) {
	for code, want := range map[int]struct {
		send, look string
		answers    bool
	}{
		http.StatusForbidden:           {"the admin kubeconfig may not write PodDisruptionBudgets in namespace kube-system, or a policy of the cluster forbids it", "the admin kubeconfig may not write PodDisruptionBudgets in namespace kube-system, or a policy of the cluster forbids it", true},
		http.StatusNotFound:            {"the cluster has no PodDisruptionBudgets", "", true},
		http.StatusUnprocessableEntity: {"the cluster rejects PodDisruptionBudget hotspare-resume", "", false},
		http.StatusInternalServerError: {"", "", false}, // a webhook that has not come up yet, say
	} {
		k, c := newKeeper(t)
		k.code = code
		sent, refused, err := c.CreateResumeProbe(t.Context(), key, "one")
		if sent || refused != want.send || err != nil {
			t.Errorf("%d: sent %t, %q, %v; want %q", code, sent, refused, err, want.send)
		}
		if s, err := c.ObserveSpoke(t.Context(), key, ObserveOptions{ResumeProbe: true}); err != nil || s.Reachable != want.answers || s.ResumeProbe.Refused != want.look {
			t.Errorf("%d: %+v, %v; want %q", code, s, err, want.look)
		}
	}
}
